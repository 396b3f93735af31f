// The step engine against the closed forms, against itself without collapse, and against a slow
// reference: one definition of each algorithm, and every reader says the same of it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "simulator/cost/closed_form.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/event_engine.h"
#include "tests/support/generators.h"
#include "tests/support/reference_engine.h"
#include "tests/support/schedules.h"
#include "tests/support/thoroughness.h"

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

// Small p one by one, and large ones.
std::vector<int> rank_counts() {
  auto counts =
      test::cases<std::vector<int>>({48, 64, 100, 128}, {48, 64, 96, 100, 128, 600, 1000, 1024});
  for (int p = 1; p <= 40; ++p) counts.push_back(p);
  return counts;
}

// Every algorithm with a closed form, with all its options, on `cost`.
void expect_closed_forms(const AlphaBetaGamma& link, const CommunicationCost& cost, int ranks,
                         Bytes bytes) {
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    if (algorithm.name == "direct-exchange" && ranks > 128) continue;
    for (const models::ScheduleOptions& options : test::option_sets(algorithm, ranks)) {
      if (ranks > 64 && (options.servers > 8 || options.segments > 3 || options.group_size > 64))
        continue;
      const auto form = algorithm.closed_form(options);
      if (!form) continue;
      const double expected = closed_form_time(link, *form, bytes).value();
      const Seconds time = StepEngine(algorithm.build(options), cost).time(bytes);
      EXPECT_NEAR(time.value(), expected, 1e-9 * expected)
          << models::described(algorithm.name, options) << " p=" << ranks;
    }
  }
}

TEST(EngineAgreement, StepEngineEqualsTheClosedFormsOnHomogeneousClusters) {
  std::mt19937 random(1);
  for (const int p : rank_counts()) {
    for (int trial = 0; trial < (p > 128 ? 1 : 4); ++trial) {
      const auto uniform = [&random](double high) {
        return std::uniform_real_distribution<double>(0, high)(random);
      };
      const AlphaBetaGamma link{Seconds{uniform(1e-4)},
                                SecondsPerByte{trial == 1 ? 0 : uniform(1e-8)},
                                SecondsPerByte{trial == 2 ? 0 : uniform(1e-9)}};
      const Bytes bytes{trial == 3 ? 0 : uniform(1e9)};
      expect_closed_forms(link, homogeneous(link), p, bytes);
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
  for (const int p : test::cases<std::vector<int>>({96, 256}, {96, 100, 256, 768, 1000, 1024})) {
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

// In one node no NIC takes part, and a port carries one message a step.
TEST(EngineAgreement, StepEngineEqualsTheClosedFormsInsideOneNode) {
  std::mt19937 random(6);
  for (const int p : rank_counts()) {
    const auto uniform = [&random](double high) {
      return std::uniform_real_distribution<double>(0, high)(random);
    };
    const AlphaBetaGamma link{Seconds{p % 5 == 0 ? 0 : uniform(1e-4)},
                              SecondsPerByte{p % 7 == 0 ? 0 : uniform(1e-8)},
                              SecondsPerByte{p % 3 == 0 ? 0 : uniform(1e-9)}};
    const CommunicationCost cost = {.ranks_per_node = p,
                                    .intra = {link.alpha, link.beta},
                                    .nic = {Seconds{1e9}, SecondsPerByte{1e9}},
                                    .gamma = link.gamma};
    expect_closed_forms(link, cost, p, Bytes{uniform(1e9)});
  }
}

// A ring sends one message out of each node in each step: with equal links nothing is shared.
TEST(EngineAgreement, ARingOverNodesOfSeveralRanksEqualsTheClosedForm) {
  std::mt19937 random(7);
  for (const int g : {2, 3, 4, 6, 8}) {
    for (const int nodes : {1, 2, 3, 5, 16, 125, 256}) {
      for (const models::NicUse use : {models::NicUse::striped, models::NicUse::affinity}) {
        const AlphaBetaGamma link{
            Seconds{std::uniform_real_distribution<double>(0, 1e-4)(random)},
            SecondsPerByte{std::uniform_real_distribution<double>(0, 1e-8)(random)},
            SecondsPerByte{std::uniform_real_distribution<double>(0, 1e-9)(random)}};
        // Striped NICs only help, and the ports bound what a message gets.
        const CommunicationCost cost = {.ranks_per_node = g,
                                        .intra = {link.alpha, link.beta},
                                        .nic = {link.alpha, link.beta},
                                        .nics_per_node = g,
                                        .nic_use = use,
                                        .gamma = link.gamma};
        const double expected =
            closed_form_time(link, models::ring_form(g * nodes), Bytes{1e8}).value();
        const Seconds time = StepEngine(models::ring_all_reduce(g * nodes), cost).time(Bytes{1e8});
        EXPECT_NEAR(time.value(), expected, 1e-9 * expected) << "g=" << g << " nodes=" << nodes;
      }
    }
  }
}

std::vector<double> ready_times(int ranks, double latest) {
  std::vector<double> ready(static_cast<std::size_t>(ranks));
  for (double& time : ready) time = test::drawn_up_to(latest);
  return ready;
}

void expect_equal(double found, double expected) {
  RC_ASSERT(std::fabs(found - expected) <= 1e-11 * expected);
}

RC_GTEST_PROP(EngineAgreement, CollapsedEqualsEnumeratedForAnyComposition, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(64);
  const CommunicationCost cost = *test::communication_costs();
  const Bytes bytes{test::drawn_up_to(1e8)};
  const Completion collapsed = StepEngine(schedule, cost).completion(bytes);
  const Completion enumerated = StepEngine(schedule, cost, Collapse::none).completion(bytes);
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    expect_equal(collapsed.of(rank).value(), enumerated.of(rank).value());
}

// The same where ranks fill their nodes, so that there is something to collapse.
RC_GTEST_PROP(EngineAgreement, CollapsedEqualsEnumeratedOnWholeNodes, ()) {
  const int g = test::drawn_ranks_per_node();
  const int nodes = *rc::gen::element(1, 2, 3, 4, 5, 6, 8, 8, 9, 10, 12, 12, 16, 16);
  const int ranks = g * nodes;
  const CommunicationCost cost = test::drawn_cost(g, nodes, test::drawn(0, 7) > 0);
  const models::Schedule schedule = test::drawn_all_reduce(ranks, test::drawn(0, 2));
  const Bytes bytes{test::drawn_up_to(1e8)};
  const StepEngine engine(schedule, cost);
  RC_CLASSIFY(engine.positions() < ranks, "collapsed");
  const Completion collapsed = engine.completion(bytes);
  const Completion enumerated = StepEngine(schedule, cost, Collapse::none).completion(bytes);
  for (int rank = 0; rank < ranks; ++rank)
    expect_equal(collapsed.of(rank).value(), enumerated.of(rank).value());
}

// Both judges, one that loops over steps and one that queues events, from ready times that differ
// by much more, about as much, and much less than a step takes.
RC_GTEST_PROP(EngineAgreement, UnequalReadyTimesEqualBothJudges, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(20);
  const CommunicationCost cost = *test::communication_costs(20);
  const double bytes = test::drawn_up_to(1e8);
  const std::vector<double> ready_s =
      ready_times(schedule.ranks(), *rc::gen::element(10.0, 1e-2, 1e-5, 1e-9, 0.0));
  std::vector<Seconds> ready;
  for (const double time : ready_s) ready.emplace_back(time);
  const Completion completion =
      StepEngine(schedule, cost, Collapse::none).completion(Bytes{bytes}, ready);
  const std::vector<double> by_steps = test::reference_completion(schedule, cost, bytes, ready_s);
  const std::vector<double> by_events =
      test::EventEngine(schedule, cost, bytes).completion(ready_s);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    expect_equal(by_steps[r], by_events[r]);
    expect_equal(completion.of(rank).value(), by_events[r]);
  }
}

// A rank that is late by less than a step's rounding, or by a little more, in a long run of alike
// steps: the run must not be cut short before the delay has gone around.
TEST(EngineAgreement, SmallDelaysInLongRunsEqualTheReference) {
  for (const int p : {64, 257}) {
    for (const double delay : {1e-16, 1e-14, 1e-12, 1e-9, 1e-6}) {
      const CommunicationCost cost =
          homogeneous({Seconds{1e-5}, SecondsPerByte{1e-9}, SecondsPerByte{1e-10}});
      const models::Schedule schedule = models::ring_all_reduce(p);
      std::vector<double> ready_s(static_cast<std::size_t>(p), 0.0);
      ready_s[static_cast<std::size_t>(p / 3)] = delay;
      std::vector<Seconds> ready;
      for (const double time : ready_s) ready.emplace_back(time);
      const Completion completion =
          StepEngine(schedule, cost, Collapse::none).completion(Bytes{1e6}, ready);
      const std::vector<double> expected = test::reference_completion(schedule, cost, 1e6, ready_s);
      for (int rank = 0; rank < p; ++rank) {
        const double time = expected[static_cast<std::size_t>(rank)];
        EXPECT_NEAR(completion.of(rank).value(), time, 1e-11 * time) << "delay " << delay;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
