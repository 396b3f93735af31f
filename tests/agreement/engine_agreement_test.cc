// The step engine against the closed forms, against itself without collapse, and against a slow
// reference: one definition of each algorithm, and every reader says the same of it.
#include <gtest/gtest.h>

#include <random>

#include "simulator/cost/closed_form.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/reference_engine.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

// Equal ranks that share no link: one on each node, ports that cost nothing.
CommunicationCost homogeneous(const AlphaBetaGamma& link) {
  return {.ranks_per_node = 1,
          .intra = {Seconds{0}, SecondsPerByte{0}},
          .nic = {link.alpha, link.beta},
          .nics_per_node = 1,
          .nic_use = models::NicUse::striped,
          .gamma = link.gamma};
}

CommunicationCost random_cost(std::mt19937& random) {
  const auto uniform = [&random](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  CommunicationCost cost;
  cost.ranks_per_node = std::vector<int>{1, 2, 3, 4, 6, 8}[random() % 6];
  cost.intra = {Seconds{uniform(0, 1e-5)}, SecondsPerByte{uniform(1e-12, 1e-9)}};
  cost.nic = {Seconds{uniform(0, 1e-4)}, SecondsPerByte{uniform(1e-12, 1e-8)}};
  cost.nics_per_node = 1 + static_cast<int>(random() % static_cast<unsigned>(cost.ranks_per_node));
  cost.nic_use = random() % 2 == 0 ? models::NicUse::striped : models::NicUse::affinity;
  cost.gamma = SecondsPerByte{uniform(0, 1e-9)};
  return cost;
}

TEST(EngineAgreement, StepEngineEqualsTheClosedFormsOnHomogeneousClusters) {
  std::mt19937 random(1);
  std::vector<int> counts = {100, 128, 600, 1000, 1024, 2048};
  for (int p = 1; p <= 40; ++p) counts.push_back(p);
  for (const int p : counts) {
    for (int trial = 0; trial < 5; ++trial) {
      const auto uniform = [&random](double high) {
        return std::uniform_real_distribution<double>(0, high)(random);
      };
      const AlphaBetaGamma link{Seconds{uniform(1e-4)},
                                SecondsPerByte{trial == 0 ? 0 : uniform(1e-8)},
                                SecondsPerByte{trial == 1 ? 0 : uniform(1e-9)}};
      const Bytes bytes{trial == 2 ? 0 : uniform(1e9)};
      const auto check = [&](const models::Schedule& schedule, Seconds expected, const char* name) {
        const Seconds time = StepEngine(schedule, homogeneous(link)).time(bytes);
        EXPECT_NEAR(time.value(), expected.value(), 1e-9 * expected.value()) << name << " p=" << p;
      };
      check(models::ring_all_reduce(p), ring_time(link, p, bytes), "ring");
      check(models::halving_doubling_all_reduce(p), halving_doubling_time(link, p, bytes),
            "halving-doubling");
      for (int k = 1; k <= std::min(p, 64); ++k) {
        if (p % k == 0)
          check(models::hierarchical_all_reduce(p, k), hierarchical_time(link, p, k, bytes),
                "hierarchical");
      }
    }
  }
}

TEST(EngineAgreement, CollapsedEqualsEnumeratedAndTheReference) {
  std::mt19937 random(2);
  for (int p = 1; p <= 32; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      const CommunicationCost cost = random_cost(random);
      const double bytes = std::uniform_real_distribution<double>(0, 1e8)(random);
      const Completion collapsed = StepEngine(schedule, cost).completion(Bytes{bytes});
      const Completion enumerated =
          StepEngine(schedule, cost, Collapse::none).completion(Bytes{bytes});
      const std::vector<double> reference = test::reference_completion(
          schedule, cost, bytes, std::vector<double>(static_cast<std::size_t>(p), 0.0));
      for (int rank = 0; rank < p; ++rank) {
        const double expected = reference[static_cast<std::size_t>(rank)];
        EXPECT_NEAR(collapsed.of(rank).value(), expected, 1e-11 * expected)
            << name << " p=" << p << " g=" << cost.ranks_per_node;
        EXPECT_NEAR(enumerated.of(rank).value(), expected, 1e-11 * expected) << name << " p=" << p;
      }
    }
  }
}

TEST(EngineAgreement, CollapsedEqualsEnumeratedOnLargeClusters) {
  std::mt19937 random(3);
  for (const int p : {96, 100, 256, 768, 1000, 1024}) {
    for (const auto& algorithm : models::all_reduce_catalogue()) {
      const models::Schedule schedule = algorithm.build({.ranks = p, .group_size = 0});
      const CommunicationCost cost = random_cost(random);
      const Seconds enumerated = StepEngine(schedule, cost, Collapse::none).time(Bytes{3e7});
      EXPECT_NEAR(StepEngine(schedule, cost).time(Bytes{3e7}).value(), enumerated.value(),
                  1e-10 * enumerated.value())
          << algorithm.name << " p=" << p;
    }
  }
}

TEST(EngineAgreement, UnequalReadyTimesEqualTheReference) {
  std::mt19937 random(4);
  for (int p = 2; p <= 24; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      const CommunicationCost cost = random_cost(random);
      std::vector<double> ready_s(static_cast<std::size_t>(p));
      std::vector<Seconds> ready;
      for (double& time : ready_s) {
        time = std::uniform_real_distribution<double>(0, 0.1)(random);
        ready.emplace_back(time);
      }
      const Completion completion =
          StepEngine(schedule, cost, Collapse::none).completion(Bytes{1e6}, ready);
      const std::vector<double> reference =
          test::reference_completion(schedule, cost, 1e6, ready_s);
      for (int rank = 0; rank < p; ++rank) {
        const double expected = reference[static_cast<std::size_t>(rank)];
        EXPECT_NEAR(completion.of(rank).value(), expected, 1e-11 * expected) << name << " p=" << p;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
