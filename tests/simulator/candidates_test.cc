// No all-reduce that is left out of a planner's candidates is the fastest for any bucket.
#include "simulator/planner/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/step_engine.h"
#include "simulator/engine/step_program.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

constexpr double sizes[] = {64, 1e3, 7e3, 3e4, 1e5, 1e6, 1e7, 1e8};

struct Case {
  const char* cluster;
  int ranks;
};
constexpr Case cases[] = {{"jizhi-p40", 16},       {"jizhi-p40", 32},   {"goyal-p100", 24},
                          {"pfn-mn1", 16},         {"pfn-mn1-10g", 32}, {"aws-p3-16xlarge", 16},
                          {"sony-abci", 24},       {"paisoar-25g", 12}, {"h200-ndr", 24},
                          {"aws-p4d-24xlarge", 16}};

std::vector<models::PlannedSchedule> followed_by_flows(const Case& c, const CommunicationCost& cost,
                                                       CollectiveTimer& own) {
  std::vector<models::PlannedSchedule> all;
  for (const CandidateOptions& candidate : catalogue_options(c.ranks, cost.ranks_per_node)) {
    try {
      models::PlannedSchedule schedule{std::string(candidate.algorithm->name), candidate.options,
                                       candidate.algorithm->build(candidate.options)};
      constexpr double most_followed = 3e4;
      if (followed_messages(schedule.schedule(), cost) <= most_followed &&
          own.engine(schedule) == EngineKind::flow)
        all.push_back(std::move(schedule));
    } catch (const InputError&) {
      // The algorithm has no schedule for these options.
    }
  }
  return all;
}

TEST(Candidates, StepsOfAlikeMessagesAreALowerBoundOfTheFlowEngine) {
  double closest = 0;
  int below_nine_tenths = 0;  // of the step engine's own time
  for (const Case& c : cases) {
    const CommunicationCost cost =
        communication_cost(models::catalog_cluster(c.cluster), nullptr, Bound::stated, c.ranks);
    CollectiveTimer own(cost, EngineKind::automatic);
    CollectiveTimer by_steps(cost);
    const Routes routes(cost, c.ranks);
    for (const models::PlannedSchedule& schedule : followed_by_flows(c, cost, own)) {
      const StepEngine bound(std::make_shared<StepProgram>(make_step_program(
                                 schedule.schedule(), routes, Collapse::equal_positions,
                                 most_prepared_messages, Load::alike)),
                             routes, cost.gamma.value());
      for (const double bytes : sizes) {
        const double time_s = own.time(schedule, Bytes{bytes}).value();
        const double least_s = bound.time(Bytes{bytes}).value();
        ASSERT_LE(least_s, time_s * (1 + 1e-9)) << models::described(schedule) << " of " << bytes
                                                << " B, " << c.ranks << " ranks of " << c.cluster;
        closest = std::max(closest, least_s / time_s);
        if (time_s < 0.9 * by_steps.time(schedule, Bytes{bytes}).value()) ++below_nine_tenths;
      }
    }
  }
  EXPECT_GT(closest, 0.99);
  EXPECT_GT(below_nine_tenths, 0);
}

TEST(Candidates, NoneThatIsLeftOutIsTheFastest) {
  int left_out = 0;
  for (const Case& c : cases) {
    const CommunicationCost cost =
        communication_cost(models::catalog_cluster(c.cluster), nullptr, Bound::stated, c.ranks);
    CollectiveTimer search(cost);
    CollectiveTimer own(cost, EngineKind::automatic);
    const models::NetworkWork network = test::chain_network({16, 25'000'000});
    PlanningJob job{.network = network, .ranks = c.ranks, .wire = models::WireType::fp32};
    const Candidates kept = make_candidates(job, {search, BucketTimer(own)});
    const std::vector<models::PlannedSchedule> all = followed_by_flows(c, cost, own);
    for (const double bytes : sizes) {
      double best_s = 1e300;
      for (const models::PlannedSchedule& schedule : kept.schedules)
        best_s = std::min(best_s, own.time(schedule, Bytes{bytes}).value());
      for (const models::PlannedSchedule& schedule : all) {
        if (std::find(kept.schedules.begin(), kept.schedules.end(), schedule) !=
            kept.schedules.end())
          continue;
        ++left_out;
        // Curves are joined from samples, and may be that much apart from the times.
        constexpr double joined = 1e-3;
        EXPECT_GE(own.time(schedule, Bytes{bytes}).value(), best_s * (1 - joined))
            << models::described(schedule) << " of " << bytes << " B, " << c.ranks << " ranks of "
            << c.cluster;
      }
    }
  }
  EXPECT_GT(left_out, 200);
}

}  // namespace
}  // namespace paceline::simulator
