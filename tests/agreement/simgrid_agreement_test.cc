// SimGrid against the step engine where no link is shared, and against max-min by hand where links
// are. Prints nothing; the worst differences seen are recorded as test properties.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "models/base/error.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/simgrid_engine.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/engine_comparison.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using models::Schedule;

class SimgridAgreement : public testing::Test {
 protected:
  void SetUp() override {
    if (!SimgridEngine::is_built_in()) GTEST_SKIP() << "built without SimGrid";
  }
};

using SimgridEngineTest = SimgridAgreement;

double uniform(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

std::vector<int> rank_counts() {
  std::vector<int> counts = {24, 32, 33, 48, 64};
  for (int p = 2; p <= 16; ++p) counts.push_back(p);
  return counts;
}

std::vector<std::pair<std::string, Schedule>> catalogued(int p) {
  std::vector<std::pair<std::string, Schedule>> list;
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    try {
      list.emplace_back(std::string(algorithm.name), algorithm.build({.ranks = p}));
    } catch (const InputError&) {
      // Not over so many ranks.
    }
  }
  return list;
}

std::vector<Schedule> only_schedules(const std::vector<std::pair<std::string, Schedule>>& named) {
  std::vector<Schedule> list;
  for (const auto& [name, schedule] : named) list.push_back(schedule);
  return list;
}

std::vector<Seconds> ready_times(int ranks, double latest, std::mt19937& random) {
  std::vector<Seconds> ready;
  for (int rank = 0; rank < ranks; ++rank) ready.emplace_back(uniform(random, 0, latest));
  return ready;
}

CommunicationCost on_platform(std::shared_ptr<const models::Platform> platform,
                              SecondsPerByte gamma) {
  CommunicationCost cost;
  cost.gamma = gamma;
  cost.platform = std::move(platform);
  return cost;
}

// What both promise.
constexpr double tolerance = 1e-3;

TEST_F(SimgridAgreement, EqualsTheStepEngineOnLinksOfTheirOwn) {
  std::mt19937 random(1);
  double worst = 0;
  for (const int p : rank_counts()) {
    const CommunicationCost cost =
        on_platform(test::unshared_platform(p, random), SecondsPerByte{uniform(random, 0, 1e-10)});
    const auto named = catalogued(p);
    SimgridEngine simgrid(only_schedules(named), cost);
    for (std::size_t i = 0; i < named.size(); ++i) {
      const auto& [name, schedule] = named[i];
      const StepEngine step(schedule, cost, Collapse::none);
      const Bytes bytes{std::exp(uniform(random, 0, std::log(1e9)))};
      const double difference = test::worst_difference(
          simgrid.completion(static_cast<int>(i), bytes), step.completion(bytes), p);
      EXPECT_LE(difference, tolerance) << name << " p=" << p << ", " << bytes;
      worst = std::max(worst, difference);
      const std::vector<Seconds> ready =
          ready_times(p, std::exp(uniform(random, std::log(1e-6), 0)), random);
      const double with_ready = test::worst_difference(
          simgrid.completion(static_cast<int>(i), bytes, ready), step.completion(bytes, ready), p);
      EXPECT_LE(with_ready, tolerance) << name << " p=" << p << ", ready times, " << bytes;
      worst = std::max(worst, with_ready);
    }
  }
  std::printf("worst relative difference: %.2g\n", worst);
}

}  // namespace
}  // namespace paceline::simulator
