#include "calibration/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/prediction/timeline.h"

namespace paceline::calibration {
namespace {

using models::Resource;
using models::TaskKind;
using models::TimelineEvent;
using models::TracedTimeline;

// Three layers and two buckets: c and b's gradients, then a's. In ms, of an iteration of 100:
//   forward a 5, b 6, c 7; a gap of 2; backward c 10, b 12, a 14; the update at 80, for 8
//   bucket 0 ready at 42 (behind b), transfer 45 to 60; bucket 1 ready at 56, cast 60 to 61,
//   transfer 61 to 76, unpack 76 to 79
// so that 23 ms are exposed: 4 of bucket 0, 19 of bucket 1, 1 of neither.
class Hand {
 public:
  explicit Hand(const char* provenance, int iterations = 3) {
    traced_.job = {.network = "hand",
                   .strategy = "fused-ring",
                   .ranks = 2,
                   .wire = models::WireType::fp16,
                   .overlap = models::Overlap::wait_free,
                   .streams = 1,
                   .layers = {{"a", "convolution"}, {"b", "relu"}, {"c", "loss"}},
                   .buckets = {bucket("c.weight", 1, 1), bucket("a.weight", 2, 0)}};
    traced_.timeline.title = "by hand";
    traced_.timeline.provenance = provenance;
    traced_.timeline.batch_per_rank = 32;
    for (int i = 0; i < iterations; ++i) {
      begin_ = 100.0 * i;
      iteration_ = i;
      compute(TaskKind::forward, 0, 0, 5);
      compute(TaskKind::forward, 1, 5, 6);
      compute(TaskKind::forward, 2, 11, 7);
      compute(TaskKind::backward, 2, 20, 10);
      compute(TaskKind::backward, 1, 30, 12);
      compute(TaskKind::backward, 0, 42, 14);
      communicate(TaskKind::all_reduce, 0, 45, 15);
      communicate(TaskKind::cast, 1, 60, 1);
      communicate(TaskKind::all_reduce, 1, 61, 15);
      communicate(TaskKind::unpack, 1, 76, 3);
      compute(TaskKind::update, -1, 80, 8);
    }
  }

  TracedTimeline& traced() { return traced_; }
  // Changes every event of a kind and index.
  Hand& change(TaskKind kind, int index, const std::function<void(TimelineEvent&)>& by) {
    for (TimelineEvent& event : traced_.timeline.events) {
      if (event.kind == kind && event.index == index) by(event);
    }
    return *this;
  }

 private:
  static models::TracedBucket bucket(const char* gradient, int gradients, int ready_after) {
    models::TracedBucket b;
    b.gradients = gradients;
    b.first_gradient = gradient;
    b.ready_after = ready_after;
    b.bytes = Bytes{1000};
    b.schedule = "ring";
    return b;
  }
  void add(TaskKind kind, Resource resource, int index, double start_ms, double ms) {
    traced_.timeline.events.push_back({.kind = kind,
                                       .resource = resource,
                                       .index = index,
                                       .iteration = iteration_,
                                       .start = Seconds{(begin_ + start_ms) * 1e-3},
                                       .duration = Seconds{ms * 1e-3}});
  }
  void compute(TaskKind kind, int index, double start_ms, double ms) {
    add(kind, Resource::compute, index, start_ms, ms);
  }
  void communicate(TaskKind kind, int index, double start_ms, double ms) {
    add(kind, Resource::communication, index, start_ms, ms);
  }

  TracedTimeline traced_;
  double begin_ = 0;
  int iteration_ = 0;
};

double ms(Seconds time) {
  return time.value() * 1e3;
}
double difference_ms(const Compared& time) {
  return time.difference() ? ms(*time.difference()) : NAN;
}

const Compared& part(const Comparison& comparison, std::string_view name) {
  for (const ComparedPart& p : comparison.parts) {
    if (p.part == name) return p.time;
  }
  throw std::runtime_error("no part " + std::string(name));
}
const ComparedBucket& bucket(const Comparison& comparison, int index) {
  for (const ComparedBucket& b : comparison.buckets) {
    if (b.index == index) return b;
  }
  throw std::runtime_error("no such bucket");
}

// That nothing differs, but where the test says so.
void expect_zeros(const Comparison& comparison) {
  EXPECT_NEAR(difference_ms(comparison.iteration), 0, 1e-9);
  for (const ComparedPart& p : comparison.parts)
    EXPECT_NEAR(difference_ms(p.time), 0, 1e-9) << p.part;
  for (const ComparedLayer& layer : comparison.layers) {
    EXPECT_NEAR(difference_ms(layer.forward), 0, 1e-9) << layer.name;
    EXPECT_NEAR(difference_ms(layer.backward), 0, 1e-9) << layer.name;
  }
  for (const ComparedBucket& b : comparison.buckets) {
    for (const Compared* time :
         {&b.ready, &b.wait, &b.cast, &b.pack, &b.transfer, &b.unpack, &b.exposed}) {
      EXPECT_EQ(time->run.exists(), time->prediction.exists());
      if (time->run.exists()) EXPECT_NEAR(difference_ms(*time), 0, 1e-9) << b.index;
    }
  }
  EXPECT_TRUE(comparison.one_sided.empty());
  EXPECT_TRUE(comparison.notes.empty());
}

TEST(IterationTimes, AreThoseOfTheTimeline) {
  const IterationTimes times = iteration_times(Hand("measured").traced());
  EXPECT_EQ(times.iterations, 3);
  EXPECT_EQ(times.complete, 2);
  EXPECT_NEAR(ms(times.iteration.median), 100, 1e-9);
  EXPECT_NEAR(ms(times.forward.median), 18, 1e-9);
  EXPECT_NEAR(ms(times.backward.median), 36, 1e-9);
  EXPECT_NEAR(ms(times.update.median), 8, 1e-9);
  EXPECT_NEAR(ms(times.between_layers.median), 2, 1e-9);
  EXPECT_NEAR(ms(times.between_iterations.median), 12, 1e-9);
  EXPECT_NEAR(ms(times.exposed.median), 23, 1e-9);
  EXPECT_NEAR(ms(times.exposed_idle.median), 1, 1e-9);
  EXPECT_NEAR(ms(times.layers[1].backward.median), 12, 1e-9);
  const BucketTimes& first = times.buckets[0];
  EXPECT_NEAR(ms(first.ready.median), 42, 1e-9);
  EXPECT_NEAR(ms(first.wait.median), 3, 1e-9);
  EXPECT_NEAR(ms(first.transfer.median), 15, 1e-9);
  EXPECT_NEAR(ms(first.exposed.median), 4, 1e-9);
  EXPECT_FALSE(first.cast.exists());
  const BucketTimes& second = times.buckets[1];
  EXPECT_NEAR(ms(second.ready.median), 56, 1e-9);
  EXPECT_NEAR(ms(second.wait.median), 4, 1e-9);
  EXPECT_NEAR(ms(second.cast.median), 1, 1e-9);
  EXPECT_NEAR(ms(second.transfer.median), 15, 1e-9);
  EXPECT_NEAR(ms(second.unpack.median), 3, 1e-9);
  EXPECT_NEAR(ms(second.exposed.median), 19, 1e-9);
}

TEST(IterationTimes, AreMediansOverIterations) {
  Hand hand("measured", 5);
  int i = 0;
  hand.change(TaskKind::forward, 2, [&i](TimelineEvent& event) {
    constexpr double durations_ms[] = {7, 3, 8, 100, 6};
    event.duration = Seconds{durations_ms[i++] * 1e-3};
  });
  const Spread times = iteration_times(hand.traced()).layers[2].forward;
  EXPECT_NEAR(ms(times.median), 7, 1e-9);
  EXPECT_NEAR(ms(times.least), 3, 1e-9);
  EXPECT_NEAR(ms(times.most), 100, 1e-9);
  EXPECT_EQ(times.iterations, 5);
  EXPECT_NEAR(ms(spread({Seconds{1e-3}, Seconds{4e-3}, Seconds{2e-3}, Seconds{9e-3}}).median), 3,
              1e-9);
}

// A bucket that starts before its layer is done was ready when it started.
TEST(IterationTimes, ABucketIsReadyWhenItStarts) {
  Hand hand("measured");
  hand.change(TaskKind::all_reduce, 0, [](TimelineEvent& event) { event.start -= Seconds{6e-3}; });
  const BucketTimes times = iteration_times(hand.traced()).buckets[0];
  EXPECT_NEAR(ms(times.ready.median), 39, 1e-9);
  EXPECT_NEAR(ms(times.wait.median), 0, 1e-9);
}

TEST(Comparison, OfATimelineWithItselfIsAllZeros) {
  const Comparison comparison = compare(Hand("measured").traced(), Hand("predicted").traced());
  expect_zeros(comparison);
  EXPECT_EQ(comparison.run.provenance, "measured");
  EXPECT_EQ(comparison.prediction.provenance, "predicted");
}

TEST(Comparison, OfARealPredictionWithItselfIsAllZeros) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  for (const models::Overlap overlap :
       {models::Overlap::wait_free, models::Overlap::none, models::Overlap::double_buffered,
        models::Overlap::priority}) {
    const simulator::StrategyRun run =
        simulator::Predictor({{.batch_per_rank = 2, .overlap = overlap},
                              network,
                              cluster,
                              nullptr,
                              64,
                              models::WireType::fp16})
            .run(models::strategy("fused-ring"));
    TracedTimeline predicted = {models::traced_job(network, run.plan),
                                simulator::predicted_timeline(run, "")};
    predicted.timeline.batch_per_rank = 2;
    TracedTimeline measured = predicted;
    measured.timeline.provenance = "measured";
    const Comparison comparison = compare(measured, predicted);
    expect_zeros(comparison);
    // The parts are those that the simulator counts.
    EXPECT_NEAR(comparison.iteration.prediction.median / run.steady.period, 1, 1e-9);
    const simulator::TimeSpent spent = simulator::time_spent(run.dag, run.steady);
    EXPECT_NEAR((part(comparison, "exposed communication").prediction.median +
                 part(comparison, "exposed, no bucket under way").prediction.median)
                    .value(),
                spent.exposed_communication.value(), 1e-9 * run.steady.period.value())
        << name(overlap);
    EXPECT_NEAR(part(comparison, "rest of the medians").prediction.median.value(), 0, 1e-9);
  }
}

// d ms more of one bucket's transfer, with all that is behind it moved: the iteration takes d more,
// and the blame is that bucket's.
RC_GTEST_PROP(Comparison, AddedTimeShowsWhereItWasAdded, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const double d = std::uniform_real_distribution<double>(0.01, 40)(random);
  const int slow = static_cast<int>(random() % 2);
  Hand run("measured");
  for (TimelineEvent& event : run.traced().timeline.events) {
    const double at = ms(event.start) - 100 * event.iteration;
    event.start += Seconds{d * 1e-3 * event.iteration};
    const bool is_communication =
        event.resource == Resource::communication || event.kind == TaskKind::update;
    if (is_communication && at > (slow == 0 ? 46 : 62)) event.start += Seconds{d * 1e-3};
    if (event.kind == TaskKind::all_reduce && event.index == slow)
      event.duration += Seconds{d * 1e-3};
  }
  const Comparison comparison = compare(run.traced(), Hand("predicted").traced());
  EXPECT_NEAR(difference_ms(comparison.iteration), d, 1e-9);
  EXPECT_NEAR(difference_ms(part(comparison, "exposed communication")), d, 1e-9);
  EXPECT_EQ(comparison.parts.front().part, "exposed communication");
  EXPECT_EQ(comparison.buckets.front().index, slow);
  EXPECT_NEAR(difference_ms(bucket(comparison, slow).transfer), d, 1e-9);
  EXPECT_NEAR(difference_ms(bucket(comparison, slow).exposed), d, 1e-9);
  EXPECT_NEAR(*bucket(comparison, slow).transfer.relative(), d / 15, 1e-9);
  const ComparedBucket& other = bucket(comparison, 1 - slow);
  EXPECT_NEAR(difference_ms(other.transfer), 0, 1e-9);
  EXPECT_NEAR(difference_ms(other.exposed), 0, 1e-9);
  // The second waits for the first.
  EXPECT_NEAR(difference_ms(other.wait), slow == 0 ? d : 0, 1e-9);
  EXPECT_NEAR(difference_ms(part(comparison, "backward")), 0, 1e-9);
}

// The parts always add up to the iteration, whatever the times are.
RC_GTEST_PROP(Comparison, PartsAddUp, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  Hand run("measured", 6);
  for (TimelineEvent& event : run.traced().timeline.events) {
    event.start += Seconds{std::uniform_real_distribution<double>(0, 5e-3)(random)};
    event.duration *= std::uniform_real_distribution<double>(0.2, 2)(random);
  }
  const Comparison comparison = compare(run.traced(), Hand("predicted").traced());
  double sum = 0;
  for (const ComparedPart& p : comparison.parts) sum += difference_ms(p.time);
  EXPECT_NEAR(sum, difference_ms(comparison.iteration), 1e-9);
  for (std::size_t i = 1; i + 1 < comparison.parts.size(); ++i) {
    EXPECT_GE(std::abs(difference_ms(comparison.parts[i - 1].time)),
              std::abs(difference_ms(comparison.parts[i].time)) - 1e-12);
  }
}

TEST(Comparison, NothingIsMeasuredInWhatRoundingLeaves) {
  const Spread ms_2{Seconds{2e-3}, Seconds{2e-3}, Seconds{2e-3}, 1};
  const Spread nothing{Seconds{-1e-17}, Seconds{-1e-17}, Seconds{-1e-17}, 2};
  EXPECT_FALSE((Compared{ms_2, nothing}).relative());
  EXPECT_NEAR((Compared{ms_2, nothing}).difference()->value(), 2e-3, 1e-12);
  EXPECT_FALSE((Compared{ms_2, {}}).difference());
  EXPECT_EQ((Compared{ms_2, ms_2}).relative(), 0);
}

TEST(Comparison, LayersComeByWhatTheyDiffer) {
  Hand run("measured");
  run.change(TaskKind::backward, 2, [](TimelineEvent& event) { event.duration -= Seconds{4e-3}; });
  run.change(TaskKind::forward, 1, [](TimelineEvent& event) { event.duration -= Seconds{1e-3}; });
  const Comparison comparison = compare(run.traced(), Hand("predicted").traced());
  EXPECT_EQ(comparison.layers[0].name, "c");
  EXPECT_NEAR(difference_ms(comparison.layers[0].backward), -4, 1e-9);
  EXPECT_EQ(comparison.layers[1].name, "b");
  EXPECT_NEAR(difference_ms(comparison.layers[1].forward), -1, 1e-9);
  EXPECT_EQ(comparison.layers[2].name, "a");
  EXPECT_NEAR(difference_ms(part(comparison, "backward")), -4, 1e-9);
  EXPECT_NEAR(difference_ms(part(comparison, "between layers")), 5, 1e-9);
}

TEST(Comparison, WhatOneSideHasIsListed) {
  Hand run("measured");
  Hand prediction("predicted");
  std::erase_if(run.traced().timeline.events, [](const TimelineEvent& event) {
    return event.kind == TaskKind::cast || (event.kind == TaskKind::forward && event.index == 1);
  });
  std::erase_if(prediction.traced().timeline.events,
                [](const TimelineEvent& event) { return event.kind == TaskKind::unpack; });
  const Comparison comparison = compare(run.traced(), prediction.traced());
  ASSERT_EQ(comparison.one_sided.size(), 3u);
  EXPECT_TRUE(comparison.one_sided[0].is_run);
  EXPECT_EQ(comparison.one_sided[0].task, "unpack");
  EXPECT_NEAR(ms(comparison.one_sided[0].time), 3, 1e-9);
  EXPECT_FALSE(comparison.one_sided[1].is_run);
  EXPECT_EQ(comparison.one_sided[1].task, "cast");
  EXPECT_EQ(comparison.one_sided[1].tasks, 1);
  EXPECT_EQ(comparison.one_sided[2].task, "forward b");
  EXPECT_FALSE(bucket(comparison, 1).cast.difference());
  EXPECT_FALSE(bucket(comparison, 1).cast.run.exists());
}

TEST(Comparison, OneIterationIsTakenToItsLastTask) {
  const Comparison comparison = compare(Hand("measured", 1).traced(), Hand("predicted").traced());
  EXPECT_NEAR(ms(comparison.iteration.run.median), 88, 1e-9);
  ASSERT_EQ(comparison.notes.size(), 1u);
  EXPECT_THAT(comparison.notes[0], ::testing::HasSubstr("between iterations"));
  EXPECT_FALSE(part(comparison, "between iterations").difference());
}

TEST(Comparison, AnotherScheduleIsNoted) {
  Hand prediction("predicted");
  prediction.traced().job.buckets[1].schedule = "hierarchical";
  prediction.traced().job.buckets[1].group_size = 2;
  const Comparison comparison = compare(Hand("measured").traced(), prediction.traced());
  ASSERT_EQ(comparison.notes.size(), 1u);
  EXPECT_EQ(comparison.notes[0],
            "bucket 1 travelled by ring, and is predicted by hierarchical k=2 (strategies "
            "fused-ring and fused-ring): its transfer is not that of one schedule");
}

std::string error_of(const TracedTimeline& run, const TracedTimeline& prediction) {
  try {
    (void)compare(run, prediction);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Comparison, RefusesWhatIsNoRunOrNoPrediction) {
  const TracedTimeline run = Hand("measured").traced();
  const TracedTimeline prediction = Hand("predicted").traced();
  EXPECT_EQ(error_of(prediction, run),
            "the two are swapped: the first is the prediction, the second the run; give the run "
            "first");
  EXPECT_EQ(error_of(prediction, prediction),
            "the first is no run: its times are 'predicted'; give the --timeline of paceline train "
            "or replay first");
  EXPECT_EQ(error_of(run, run),
            "the second is no prediction: its times are 'measured'; give the --timeline of "
            "paceline predict second");
  TracedTimeline empty = run;
  empty.timeline.events.clear();
  EXPECT_EQ(error_of(empty, prediction),
            "the run has no forward pass; give a timeline as paceline train and predict write it "
            "(--timeline)");
}

TEST(Comparison, RefusesIterationsThatDoNotFollowOneAnother) {
  const TracedTimeline run = Hand("measured").traced();
  TracedTimeline backwards = Hand("predicted").traced();
  for (TimelineEvent& event : backwards.timeline.events) event.iteration = 2 - event.iteration;
  EXPECT_EQ(error_of(run, backwards),
            "iteration 1 of the prediction does not start after iteration 0; give a timeline as it "
            "was written");
}

TEST(Comparison, RefusesTwoJobs) {
  const TracedTimeline run = Hand("measured").traced();
  const auto with = [&](const std::function<void(TracedTimeline&)>& change) {
    TracedTimeline prediction = Hand("predicted").traced();
    change(prediction);
    return error_of(run, prediction);
  };
  const std::string job = "the run and the prediction are not of one job: ";
  EXPECT_EQ(with([](TracedTimeline& t) { t.job.ranks = 4; }),
            job + "2 and 4 ranks; predict --ranks 2");
  EXPECT_EQ(with([](TracedTimeline& t) { t.timeline.batch_per_rank = 64; }),
            job + "a batch of 32 per rank and of 64; predict --batch 32");
  EXPECT_EQ(with([](TracedTimeline& t) { t.job.wire = models::WireType::fp32; }),
            job + "fp16 and fp32 on the wire; predict --wire fp16");
  EXPECT_EQ(with([](TracedTimeline& t) { t.job.overlap = models::Overlap::none; }),
            job + "overlap wait-free and none; predict --overlap wait-free");
  EXPECT_EQ(with([](TracedTimeline& t) {
              t.job.network = "other";
              t.job.layers.pop_back();
            }),
            job + "'hand' and 'other'; predict --model 'hand'");
  EXPECT_EQ(with([](TracedTimeline& t) { t.job.layers[1].name = "x"; }),
            job + "layers of 'hand' differ from 'b' on; predict the network that ran");
  EXPECT_EQ(with([](TracedTimeline& t) {
              t.job.buckets.pop_back();
              t.job.strategy = "ring";
            }),
            job +
                "2 buckets ('fused-ring') and 1 bucket ('ring'); predict the plan that ran, with "
                "its --strategy and --theta");
  EXPECT_EQ(with([](TracedTimeline& t) { t.job.buckets[1].gradients = 3; }),
            job +
                "bucket 1 has 2 gradients from 'a.weight' on, and 3 from 'a.weight' on; predict "
                "the plan that ran, with its --strategy and --theta");
  EXPECT_EQ(with([](TracedTimeline& t) { t.job.buckets[1].bytes = Bytes{4}; }),
            job +
                "bucket 1 has 1000 and 4 bytes; predict the plan that ran, with its --strategy "
                "and --theta");
}

TEST(SideBySide, BeginsAnIterationOfBothAtOneTime) {
  Hand run("measured");
  for (TimelineEvent& event : run.traced().timeline.events) {
    event.start += Seconds{1};
    if (event.iteration > 0) event.start += Seconds{5e-3};  // the first is longer than the others
    if (event.iteration > 1) event.start -= Seconds{1e-3};
  }
  const TracedTimeline prediction = Hand("predicted", 2).traced();
  const std::vector<TracedTimeline> both = side_by_side(run.traced(), prediction);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].timeline.provenance, "measured");
  EXPECT_EQ(both[1].timeline.provenance, "predicted");
  const auto runs = iteration_starts(both[0].timeline);
  const auto predictions = iteration_starts(both[1].timeline);
  EXPECT_NEAR(runs.at(0).value(), 0, 1e-12);
  const bool is_at_one = std::abs((runs.at(0) - predictions.at(0)).value()) < 1e-12 ||
                         std::abs((runs.at(1) - predictions.at(0)).value()) < 1e-12;
  EXPECT_TRUE(is_at_one);
  EXPECT_NEAR(ms(predictions.at(1) - predictions.at(0)), 100, 1e-9);
  // A prediction whose first events are before its first forward moves the run.
  TracedTimeline late = prediction;
  late.timeline.events.push_back({.kind = TaskKind::read,
                                  .resource = Resource::storage,
                                  .index = 0,
                                  .iteration = 0,
                                  .start = Seconds{0},
                                  .duration = Seconds{1e-3}});
  for (TimelineEvent& event : late.timeline.events) {
    if (event.kind != TaskKind::read) event.start += Seconds{2e-3};
  }
  for (const TracedTimeline& traced : side_by_side(Hand("measured").traced(), late)) {
    for (const TimelineEvent& event : traced.timeline.events) EXPECT_GE(event.start, Seconds{0});
  }
}

}  // namespace
}  // namespace paceline::calibration
