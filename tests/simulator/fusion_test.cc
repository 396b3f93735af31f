#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "simulator/planner/optimal_fusion.h"
#include "simulator/planner/size_curve.h"
#include "simulator/planner/theta_search.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

double uniform(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

StreamClock random_clock(std::mt19937& random, int gradients) {
  StreamClock clock;
  double now = uniform(random, 0, 2);
  for (int i = 0; i < gradients; ++i) {
    if (random() % 3 != 0) now += uniform(random, 0, 1);
    clock.ready_s.push_back(now);
  }
  clock.computed_s = now + (random() % 2 == 0 ? 0 : uniform(random, 0, 1));
  clock.update_s = uniform(random, 0, 1);
  clock.slowing = random() % 3 == 0 ? 0 : uniform(random, 0, 0.9);
  return clock;
}

// Costs of every interval, drawn one by one: they neither grow with the interval nor are convex.
struct AnyCosts {
  int gradients;
  std::vector<BucketCost> of;
  AnyCosts(std::mt19937& random, int count) : gradients(count) {
    for (int i = 0; i < count * (count + 1); ++i) {
      const double traffic = random() % 5 == 0 ? 0 : uniform(random, 0, 1);
      of.push_back({traffic + (random() % 2 == 0 ? 0 : uniform(random, 0, 0.5)), traffic});
    }
  }
  BucketCost operator()(int first, int end) const {
    return of[static_cast<std::size_t>(first * (gradients + 1) + end)];
  }
};

// The ends of the buckets of plan number `plan` of 2^(L-1).
std::vector<int> ends_of(unsigned plan, int gradients) {
  std::vector<int> ends;
  for (int end = 1; end < gradients; ++end)
    if ((plan >> (end - 1) & 1U) != 0) ends.push_back(end);
  ends.push_back(gradients);
  return ends;
}

TEST(OptimalFusion, IsTheBestOfAllPlansWhateverTheCosts) {
  std::mt19937 random(1911);
  for (int round = 0; round < 400; ++round) {
    const int gradients = 1 + static_cast<int>(random() % 11);
    const StreamClock clock = random_clock(random, gradients);
    const AnyCosts costs(random, gradients);
    double best = 1e300;
    for (unsigned plan = 0; plan < 1U << (gradients - 1); ++plan)
      best = std::min(best, done_s(clock, ends_of(plan, gradients), costs));
    const FusionOptimum found = optimal_fusion(clock, costs);
    ASSERT_NEAR(found.done_s, best, 1e-12 * best) << "round " << round;
    ASSERT_NEAR(done_s(clock, found.ends, costs), best, 1e-12 * best) << "round " << round;
    const double bound = least_done_s(clock, costs, [](int end) { return std::pair(0, end); });
    ASSERT_LE(bound, best * (1 + 1e-12)) << "round " << round;
    if (clock.slowing == 0) {
      ASSERT_NEAR(bound, best, 1e-12 * best);
    }
  }
}

// A state that is behind in f and ahead in B may win: to keep the least f alone is not enough.
TEST(OptimalFusion, KeepsAStateThatSlowedComputationLess) {
  const StreamClock clock{
      .ready_s = {1, 1, 10}, .computed_s = 10, .update_s = 0, .slowing = 0.5, .is_even = true};
  const auto cost = [](int first, int end) -> BucketCost {
    if (end == 3) return first == 2 ? BucketCost{1, 1} : BucketCost{100, 100};
    if (first == 0 && end == 2) return {6, 1};  // long on its stream, and hardly any traffic
    return {2, 2};
  };
  const FusionOptimum found = optimal_fusion(clock, cost);
  EXPECT_EQ(found.ends, (std::vector<int>{2, 3}));
  EXPECT_DOUBLE_EQ(found.done_s, 10 + 0.5 + 1);
}

struct RandomSizes {
  models::NetworkWork network;
  std::vector<std::int64_t> sums;
  StreamClock clock;
  SizeCurve curve;
  BucketAside aside;

  RandomSizes(std::mt19937& random, int gradients) : clock(random_clock(random, gradients)) {
    std::vector<std::int64_t> elements;
    for (int i = 0; i < gradients; ++i)
      elements.push_back(static_cast<std::int64_t>(std::exp(uniform(random, 0, 12))));
    network = test::chain_network(elements);
    sums = element_sums(network.gradients);
    std::vector<SizeCurve::Piece> pieces;
    for (double from = 1; from < 4.0 * static_cast<double>(sums.back());
         from *= uniform(random, 1.5, 20))
      pieces.push_back({from, uniform(random, 0.01, 0.3), uniform(random, 0, 3e-6), 0});
    curve = SizeCurve(pieces);
    aside = {uniform(random, 0, 0.01), uniform(random, 0, 1e-7), uniform(random, 0, 2e-7)};
  }
  [[nodiscard]] IntervalCost cost() const { return {sums, 4, curve, aside, true}; }
};

TEST(ThetaSearch, IsTheBestOfAllTheta) {
  std::mt19937 random(77);
  for (int round = 0; round < 200; ++round) {
    const RandomSizes job(random, 1 + static_cast<int>(random() % 25));
    const IntervalCost cost = job.cost();
    double best = 1e300;
    std::size_t outcomes = 0;
    for (std::int64_t theta = 1; theta <= job.sums.back(); ++outcomes) {
      const ThetaOutcome outcome = outcome_of_theta(job.clock, job.sums, cost, theta);
      ASSERT_GE(outcome.up_to, theta);
      best = std::min(best, outcome.done_s);
      const ThetaOutcome last = outcome_of_theta(job.clock, job.sums, cost, outcome.up_to);
      ASSERT_EQ(last.ends, outcome.ends) << "all theta of an outcome make its buckets";
      theta = outcome.up_to + 1;
    }
    const ThetaSearch exact = best_theta(job.clock, job.sums, cost, 0);
    ASSERT_TRUE(exact.is_complete);
    ASSERT_NEAR(exact.best.done_s, best, 1e-12 * best) << "round " << round;
    ASSERT_LE(exact.tried, 2 * static_cast<int>(outcomes));  // ranges may end inside of one
    const ThetaSearch rough = best_theta(job.clock, job.sums, cost, 0.05);
    ASSERT_LE(rough.best.done_s, best + 0.05 * (rough.best.done_s + job.clock.update_s) + 1e-12);
    ASSERT_LE(rough.least_done_s, best * (1 + 1e-12));
    // No theta is better than the best contiguous fusion.
    ASSERT_GE(best, optimal_fusion(job.clock, cost).done_s * (1 - 1e-12));
  }
}

// make_plan() is what a runtime does with theta.
TEST(ThetaSearch, MakesTheBucketsOfThePlan) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const RandomSizes job(random, 1 + static_cast<int>(random() % 30));
    const auto theta = 1 + static_cast<std::int64_t>(random()) % (job.sums.back() + 5);
    const ThetaOutcome outcome = outcome_of_theta(job.clock, job.sums, job.cost(), theta);
    const double bytes = round_theta_bytes(outcome.elements, outcome.up_to, 4);
    for (const double size : {4.0 * static_cast<double>(theta), bytes}) {
      const models::Plan plan =
          models::make_plan(models::strategy("fused-ring"), job.network.gradients, 4,
                            models::WireType::fp32, {.fusion = Bytes{size}});
      std::vector<int> ends;
      for (const models::Bucket& bucket : plan.buckets)
        ends.push_back(bucket.first_gradient + bucket.gradient_count);
      ASSERT_EQ(ends, outcome.ends) << size;
    }
  }
}

TEST(SizeCurve, FindsThePiecesOfAConvexFunction) {
  std::mt19937 random(40);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<double, double>> lines;
    for (int i = 0; i <= static_cast<int>(random() % 8); ++i)
      lines.emplace_back(std::exp(uniform(random, -14, -3)), std::exp(uniform(random, -25, -18)));
    int calls = 0;
    const auto time = [&](double bytes) {
      ++calls;
      double most = 0;
      for (const auto& [alpha, beta] : lines) most = std::max(most, alpha + beta * bytes);
      return most;
    };
    const double least = std::exp(uniform(random, 2, 8));
    const double most = least * std::exp(uniform(random, 0, 15));
    const SizeCurve curve = convex_pieces(time, least, most, 1e-9);
    EXPECT_LE(calls, 60);
    for (int i = 0; i < 200; ++i) {
      const double bytes = least * std::pow(most / least, i / 199.0);
      ASSERT_NEAR(curve.at(bytes), time(bytes), 2e-9 * time(bytes)) << "round " << round;
    }
  }
}

TEST(SizeCurve, TheLeastOfTwoIsTheLeastEverywhere) {
  std::mt19937 random(41);
  for (int round = 0; round < 200; ++round) {
    std::vector<SizeCurve> curves;
    for (int which = 0; which < 4; ++which) {
      std::vector<SizeCurve::Piece> pieces;
      double at = uniform(random, 0, 1);
      for (double from = 10; from < 1e6; from *= uniform(random, 2, 30)) {
        const double slope = uniform(random, 0, 1e-5);
        pieces.push_back({from, at, slope, which});
        at += uniform(random, 0, 1);
      }
      curves.emplace_back(pieces);
    }
    SizeCurve least = curves.front();
    for (std::size_t i = 1; i < curves.size(); ++i) least = least_of(least, curves[i], 10, 1e6);
    for (int i = 0; i < 500; ++i) {
      const double bytes = uniform(random, 10, 1e6);
      double expected = 1e300;
      for (const SizeCurve& curve : curves) expected = std::min(expected, curve.at(bytes));
      ASSERT_NEAR(least.at(bytes), expected, 1e-9 * expected);
      const auto& piece = least[least.find(bytes)];
      ASSERT_NEAR(curves[static_cast<std::size_t>(piece.which)].at(bytes), expected,
                  1e-9 * expected);
    }
    const SizeCurve both = joined(curves[0], curves[1], 5000, 1e6);
    EXPECT_DOUBLE_EQ(both.at(5000), curves[0].at(5000));
    EXPECT_DOUBLE_EQ(both.at(5001), curves[1].at(5001));
    EXPECT_DOUBLE_EQ(both.at(10), curves[0].at(10));
    EXPECT_DOUBLE_EQ(both.at(9e5), curves[1].at(9e5));
  }
}

}  // namespace
}  // namespace paceline::simulator
