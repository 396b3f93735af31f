#include "simulator/planner/merged_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "models/base/parse_units.h"
#include "simulator/planner/recurrence.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using namespace paceline::literals;

// `elements` in backward order.
std::vector<models::Gradient> gradients_of(const std::vector<std::int64_t>& elements) {
  return test::chain_network({elements.rbegin(), elements.rend()}).gradients;
}

std::vector<int> counts(const std::vector<models::Bucket>& buckets) {
  std::vector<int> counts;
  for (const models::Bucket& bucket : buckets) counts.push_back(bucket.gradient_count);
  return counts;
}

// 2 ms and 1 ms an element. The second gradient comes 1 ms after the first, and so joins it: they
// start at 11 ms and end at 16. The third is there at 15, before 16 + 2, and joins the fourth, which
// comes at 17.5.
TEST(MergedGradients, ABucketTakesWhatComesBeforeItCouldStart) {
  const auto takes = [](std::int64_t elements) {
    return 2_ms + static_cast<double>(elements) * 1_ms;
  };
  const std::vector<Seconds> times = {10_ms, 11_ms, 15_ms, 17.5_ms, 30_ms};
  const auto buckets = merged_gradients(gradients_of({1, 2, 3, 4, 5}), times, 2_ms, takes);
  EXPECT_EQ(counts(buckets), (std::vector<int>{2, 2, 1}));
  EXPECT_EQ(buckets[0].elements, 3);
  EXPECT_EQ(buckets[1].elements, 7);
  EXPECT_EQ(buckets[1].first_gradient, 2);
}

TEST(MergedGradients, NothingIsMergedWhereNothingIsSaved) {
  const auto takes = [](std::int64_t) { return 1_ms; };
  const std::vector<Seconds> times = {1_ms, 3_ms, 5_ms};
  EXPECT_EQ(counts(merged_gradients(gradients_of({1, 1, 1}), times, 0_ms, takes)),
            (std::vector<int>{1, 1, 1}));
  EXPECT_TRUE(merged_gradients({}, {}, 1_ms, takes).empty());
}

// Theorem 1 of the paper: where an all-reduce of n elements takes a + n b, no plan of contiguous
// buckets that waits for gradients less long is done earlier than a merged one, against no fusion.
TEST(MergedGradients, AreNeverSlowerThanEachByItself) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::int64_t> elements(1 + random() % 20);
    std::vector<Seconds> times;
    Seconds now;
    for (auto& count : elements) {
      count = 1 + static_cast<std::int64_t>(random() % 100);
      times.push_back(now += static_cast<double>(random() % 50) * 0.1_ms);
    }
    const Seconds startup = static_cast<double>(random() % 40) * 0.1_ms;
    const auto takes = [&](std::int64_t n) { return startup + static_cast<double>(n) * 0.02_ms; };
    const auto finish = [&](const std::vector<models::Bucket>& buckets) {
      std::vector<Seconds> ready;
      std::vector<Seconds> durations;
      for (const models::Bucket& bucket : buckets) {
        ready.push_back(
            times[static_cast<std::size_t>(bucket.first_gradient + bucket.gradient_count - 1)]);
        durations.push_back(takes(bucket.elements));
      }
      return last_finish(ready, durations);
    };
    const auto gradients = gradients_of(elements);
    const auto merged = merged_gradients(gradients, times, startup, takes);
    int next = 0;
    for (const models::Bucket& bucket : merged) {
      EXPECT_EQ(bucket.first_gradient, next);
      next += bucket.gradient_count;
    }
    EXPECT_EQ(next, static_cast<int>(elements.size()));
    const auto alone = merged_gradients(gradients, times, -1_s, takes);
    ASSERT_EQ(alone.size(), elements.size());
    EXPECT_LE(finish(merged).value(), finish(alone).value() + 1e-12);
  }
}

// 1 ms of startup and 1 GB/s: 19 ms reach 0.95, which is 19 MB, and three times that is 57 MB. Less is
// raised to 50 MiB, and more is cut to 2000 MiB.
TEST(SaturatingBucket, ReachesTheShareOfTheBandwidth) {
  const auto bucket = [](Seconds startup) {
    const auto takes = [&](Bytes bytes) { return startup + Seconds{bytes.value() / 1e9}; };
    return saturating_bucket(1_MiB, takes(1_MiB), 1024_MiB, takes(1024_MiB));
  };
  EXPECT_NEAR(bucket(1_ms).value(), 57e6, 1);
  EXPECT_EQ(bucket(1_us), 50_MiB);
  EXPECT_EQ(bucket(1_s), 2000_MiB);
  EXPECT_EQ(saturating_bucket(1_MiB, 0_s, 2_MiB, 0_s), 50_MiB);
  EXPECT_EQ(saturating_bucket(1_MiB, 1_s, 2_MiB, 1_s), 2000_MiB);
}

}  // namespace
}  // namespace paceline::simulator
