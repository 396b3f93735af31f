// The times of ranks: a timeline by hand, and what travels between ranks and into a file.
#include "models/timeline/rank_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using test::error_of;
using testing::HasSubstr;

// Two layers and two buckets, of layer 1 and of layer 0. In ms, of an iteration of 100:
//   forward 0 to 10, 10 to 19; a gap of 1; backward of layer 1 20 to 40, of layer 0 40 to 50
//   bucket 0 cast 42 to 43, transfer 43 to 60, unpack 60 to 62
//   bucket 1 cast 55 to 56 while bucket 0 travels, transfer 60 to 70, unpack 70 to 71
//   update 72 to 80
TracedTimeline by_hand(int iterations = 3) {
  TracedTimeline traced;
  traced.job = {.network = "hand",
                .strategy = "fused-ring",
                .ranks = 2,
                .wire = WireType::fp16,
                .overlap = Overlap::wait_free,
                .streams = 1,
                .layers = {{"a", "convolution"}, {"b", "loss"}},
                .buckets = {}};
  for (const int layer : {1, 0}) {
    TracedBucket bucket;
    bucket.gradients = 1;
    bucket.first_gradient = layer == 1 ? "b.weight" : "a.weight";
    bucket.ready_after = layer;
    bucket.bytes = Bytes{1000};
    bucket.schedule = "ring";
    traced.job.buckets.push_back(bucket);
  }
  traced.timeline.title = "by hand";
  traced.timeline.provenance = "measured";
  for (int i = 0; i < iterations; ++i) {
    const auto add = [&](TaskKind kind, Resource resource, int index, double from, double to) {
      traced.timeline.events.push_back({.kind = kind,
                                        .resource = resource,
                                        .index = index,
                                        .iteration = i,
                                        .start = Seconds{(100.0 * i + from) * 1e-3},
                                        .duration = Seconds{(to - from) * 1e-3}});
    };
    add(TaskKind::forward, Resource::compute, 0, 0, 10);
    add(TaskKind::forward, Resource::compute, 1, 10, 19);
    add(TaskKind::backward, Resource::compute, 1, 20, 40);
    add(TaskKind::backward, Resource::compute, 0, 40, 50);
    add(TaskKind::cast, Resource::communication, 0, 42, 43);
    add(TaskKind::all_reduce, Resource::communication, 0, 43, 60);
    add(TaskKind::unpack, Resource::communication, 0, 60, 62);
    add(TaskKind::cast, Resource::communication, 1, 55, 56);
    add(TaskKind::all_reduce, Resource::communication, 1, 60, 70);
    add(TaskKind::unpack, Resource::communication, 1, 70, 71);
    add(TaskKind::update, Resource::compute, -1, 72, 80);
  }
  return traced;
}

double ms(Seconds time) {
  return time.value() * 1e3;
}

TEST(RankTimes, CoverTheStreamsWithoutAHole) {
  const RankRecord record = rank_record(by_hand());
  EXPECT_NEAR(ms(record.times.forward[0]), 10, 1e-9);
  EXPECT_NEAR(ms(record.times.forward[1]), 10, 1e-9);  // with the gap behind it
  EXPECT_NEAR(ms(record.times.backward[1]), 20, 1e-9);
  EXPECT_NEAR(ms(record.times.backward[0]), 10, 1e-9);
  EXPECT_NEAR(ms(record.times.update), 8, 1e-9);
  EXPECT_NEAR(ms(record.times.rest), 100 - 71 - 8, 1e-9);
  ASSERT_EQ(record.buckets.size(), 3U);
  for (const std::vector<BucketUse>& buckets : record.buckets) {
    EXPECT_NEAR(ms(buckets[0].hand_over), 2, 1e-9);
    EXPECT_NEAR(ms(buckets[0].made_ready), 1, 1e-9);
    EXPECT_NEAR(ms(buckets[0].transfer), 17, 1e-9);
    EXPECT_NEAR(ms(buckets[0].unpack), 2, 1e-9);
    // Until 62 the stream is that of bucket 0.
    EXPECT_NEAR(ms(buckets[1].hand_over), 0, 1e-9);
    EXPECT_NEAR(ms(buckets[1].made_ready), 0, 1e-9);
    EXPECT_NEAR(ms(buckets[1].transfer), 8, 1e-9);
    EXPECT_NEAR(ms(buckets[1].unpack), 1, 1e-9);
  }
}

// Without an iteration behind it, an iteration ends with its update.
TEST(RankTimes, OfOneIterationEndWithTheUpdate) {
  EXPECT_NEAR(ms(rank_record(by_hand(1)).times.rest), 1, 1e-9);
}

// With double buffering, the update waits for the buckets of the iteration before.
TEST(RankTimes, OfDoubleBufferingCountFromTheBucketsBefore) {
  TracedTimeline traced = by_hand();
  traced.job.overlap = Overlap::double_buffered;
  EXPECT_NEAR(ms(rank_record(traced).times.rest), 100 - 50 - 8, 1e-9);
}

TEST(RankTimes, OfLayersAddUpToTheMedianOfTheirSum) {
  TracedTimeline traced = by_hand(5);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  std::vector<double> sums(5);
  for (TimelineEvent& event : traced.timeline.events) {
    if (event.kind != TaskKind::backward || event.index != 0) continue;
    event.duration *= factor(random);
    sums[static_cast<std::size_t>(event.iteration)] = 40 + ms(event.duration);
  }
  std::sort(sums.begin(), sums.end());
  EXPECT_NEAR(ms(rank_record(traced).times.passes()), sums[2], 1e-9);
}

TEST(RunTimes, TakeTheTransferOfTheRankThatComesLast) {
  RankRecord early = rank_record(by_hand());
  RankRecord late = early;
  late.buckets[0][0].transfer = Seconds{0.005};
  early.buckets[1][0].transfer = Seconds{0.003};
  late.buckets[2][0].transfer = Seconds{0.004};
  const RunTimes run = run_times({early, late});
  ASSERT_EQ(run.ranks.size(), 2U);
  EXPECT_NEAR(ms(run.transfers[0]), 4, 1e-9);
  EXPECT_NEAR(ms(run.transfers[1]), 8, 1e-9);
  // An iteration that one rank lacks counts for none.
  late.buckets.resize(1);
  EXPECT_NEAR(ms(run_times({early, late}).transfers[0]), 5, 1e-9);
}

TEST(RankRecord, TravelsBetweenRanks) {
  const TracedTimeline traced = by_hand();
  const RankRecord record = rank_record(traced);
  const std::vector<float> numbers = packed(record, traced.job, 10);
  EXPECT_EQ(numbers.size(), packed(rank_record(by_hand(1)), traced.job, 10).size());
  const RankRecord back = unpacked(numbers, traced.job);
  ASSERT_EQ(back.buckets.size(), 3U);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    EXPECT_NEAR(ms(back.times.forward[layer]), ms(record.times.forward[layer]), 1e-5);
    EXPECT_NEAR(ms(back.times.backward[layer]), ms(record.times.backward[layer]), 1e-5);
  }
  EXPECT_NEAR(ms(back.times.rest), ms(record.times.rest), 1e-5);
  EXPECT_NEAR(ms(back.buckets[2][1].transfer), 8, 1e-5);
}

TEST(RunTimes, StandInTheTimelineOfRankZero) {
  const TracedTimeline traced = by_hand();
  RankRecord other = rank_record(traced);
  other.times.backward[0] *= 2;
  const RunTimes run = run_times({rank_record(traced), other});
  const std::string text = chrome_trace(traced, run);
  const RunTimes back = parse_run_times(text, "run.json", traced.job);
  ASSERT_EQ(back.ranks.size(), 2U);
  EXPECT_NEAR(ms(back.ranks[1].backward[0]), 20, 1e-5);
  EXPECT_NEAR(ms(back.transfers[1]), 8, 1e-5);
  EXPECT_EQ(parse_chrome_trace(text, "run.json").size(), 1U);
  EXPECT_TRUE(parse_run_times(chrome_trace({traced}), "run.json", traced.job).ranks.empty());
}

TEST(RunTimes, OfAnotherJobAreRefused) {
  const TracedTimeline traced = by_hand();
  const std::string text = chrome_trace(traced, run_times({rank_record(traced)}));
  const auto parsed = [&](const TracedJob& job) {
    return error_of([&] { return parse_run_times(text, "run.json", job); });
  };
  EXPECT_THAT(parsed(traced.job), HasSubstr("1 ranks of 2"));
  TracedJob job = traced.job;
  job.layers.push_back({"c", "loss"});
  job.ranks = 1;
  EXPECT_THAT(parsed(job), HasSubstr("2 times of 3 layers"));
  job = traced.job;
  job.buckets.pop_back();
  EXPECT_THAT(parsed(job), HasSubstr("run.json"));
}

}  // namespace
}  // namespace paceline::models
