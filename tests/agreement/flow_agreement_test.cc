// The flow engine against the step engine where no link is shared, against itself without collapse,
// and against a slow judge everywhere.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/fluid_engine.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

void expect_equal(double found, double expected) {
  RC_ASSERT(std::fabs(found - expected) <= 1e-8 * expected);
}

std::vector<double> ready_times(int ranks, double latest) {
  std::vector<double> ready(static_cast<std::size_t>(ranks));
  for (double& time : ready) time = test::drawn_up_to(latest);
  return ready;
}

std::vector<Seconds> in_seconds(const std::vector<double>& times) {
  std::vector<Seconds> seconds;
  for (const double time : times) seconds.emplace_back(time);
  return seconds;
}

RC_GTEST_PROP(FlowAgreement, EqualsTheSlowJudgeFromAnyReadyTimes, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(10);
  const CommunicationCost cost = *test::communication_costs(schedule.ranks());
  const double bytes = test::drawn_up_to(1e8);
  const std::vector<double> ready =
      ready_times(schedule.ranks(), *rc::gen::element(10.0, 1e-2, 1e-5, 0.0));
  FlowEngine engine({&schedule, 1}, cost, Collapse::none);
  const Completion completion = engine.completion(0, Bytes{bytes}, in_seconds(ready));
  const auto expected = test::FluidEngine(cost, schedule.ranks())
                            .completion({{.schedule = schedule, .bytes = bytes, .ready = ready}});
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    expect_equal(completion.of(rank).value(), expected.front()[static_cast<std::size_t>(rank)]);
}

// Several collectives, over the same ranks, that start at different times.
RC_GTEST_PROP(FlowAgreement, EqualsTheSlowJudgeWithSeveralInFlight, ()) {
  const int g = test::drawn_ranks_per_node();
  const int nodes = *rc::gen::element(1, 2, 3, 4, 4, 6, 8);
  const CommunicationCost cost = test::drawn_cost(g, nodes, test::drawn(0, 3) > 0);
  const int ranks = test::drawn(0, 3) == 0 ? test::drawn(1, g * nodes) : g * nodes;
  RC_PRE(ranks <= 24);
  std::vector<models::Schedule> schedules;
  std::vector<test::FluidEngine::Collective> collectives;
  for (int i = test::drawn(1, 4); i > 0; --i) {
    schedules.push_back(test::drawn_all_reduce(ranks, test::drawn(0, 1)));
    const double at = test::drawn_up_to(1e-3);
    collectives.push_back({.schedule = schedules.back(),
                           .bytes = test::drawn_up_to(1e6),
                           .ready = std::vector<double>(static_cast<std::size_t>(ranks), at)});
  }
  const auto expected = test::FluidEngine(cost, ranks).completion(collectives);
  FlowEngine engine(schedules, cost);
  RC_CLASSIFY(engine.positions() < ranks, "collapsed");
  std::size_t done = 0;
  double latest = 0;
  engine.run(
      [&](Launcher& launcher) {
        for (std::size_t i = 0; i < schedules.size(); ++i)
          launcher.launch(static_cast<int>(i), {.schedule = static_cast<int>(i),
                                                .bytes = Bytes{collectives[i].bytes},
                                                .at = Seconds{collectives[i].ready.front()}});
      },
      [&](int id, Seconds at, Launcher&) {
        const auto& finish = expected[static_cast<std::size_t>(id)];
        expect_equal(at.value(), *std::max_element(finish.begin(), finish.end()));
        RC_ASSERT(at.value() >= latest);
        latest = at.value();
        ++done;
      });
  RC_ASSERT(done == schedules.size());
}

// Where no link is shared the two engines agree, from equal and from unequal ready times.
RC_GTEST_PROP(FlowAgreement, EqualsTheStepEngineWhereNoLinkIsShared, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(64);
  const CommunicationCost cost = *rc::gen::oneOf(test::communication_costs(), test::flat_costs());
  RC_PRE(!shares_links(schedule, cost));
  const Bytes bytes{test::drawn_up_to(1e8)};
  const std::vector<Seconds> ready =
      in_seconds(ready_times(schedule.ranks(), *rc::gen::element(10.0, 1e-2, 1e-5, 0.0)));
  FlowEngine flow({&schedule, 1}, cost, Collapse::none);
  const Completion expected = StepEngine(schedule, cost, Collapse::none).completion(bytes, ready);
  const Completion found = flow.completion(0, bytes, ready);
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    expect_equal(found.of(rank).value(), expected.of(rank).value());
  expect_equal(FlowEngine({&schedule, 1}, cost).completion(0, bytes).last().value(),
               StepEngine(schedule, cost).time(bytes).value());
}

RC_GTEST_PROP(FlowAgreement, CollapsedEqualsEnumerated, ()) {
  const int g = test::drawn_ranks_per_node();
  const int nodes = *rc::gen::element(1, 2, 3, 4, 5, 6, 8, 8, 9, 10, 12, 12);
  const CommunicationCost cost = test::drawn_cost(g, nodes, test::drawn(0, 7) > 0);
  const int ranks = g * nodes;
  const models::Schedule schedule = test::drawn_all_reduce(ranks, test::drawn(0, 2));
  const Bytes bytes{test::drawn_up_to(1e8)};
  FlowEngine collapsed({&schedule, 1}, cost);
  FlowEngine enumerated({&schedule, 1}, cost, Collapse::none);
  RC_CLASSIFY(collapsed.positions() < ranks, "collapsed");
  const Completion expected = enumerated.completion(0, bytes);
  const Completion found = collapsed.completion(0, bytes);
  for (int rank = 0; rank < ranks; ++rank)
    expect_equal(found.of(rank).value(), expected.of(rank).value());
}

// Long chains of sharing amplify rounding: a torus of 10 x 100 that is followed rank by rank comes
// out 5e-5 apart from itself by 40 positions.
TEST(FlowAgreement, CollapsedEqualsEnumeratedOnLargeClusters) {
  std::mt19937 random(5);
  for (const int p : {96, 256, 1000}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      if (p > 256 && name.find("S=") != std::string::npos) continue;
      CommunicationCost cost{.ranks_per_node = 8,
                             .intra = {Seconds{3e-6}, SecondsPerByte{1e-10}},
                             .nic = {Seconds{1e-5}, SecondsPerByte{4e-10}},
                             .gamma = SecondsPerByte{1e-11}};
      std::int64_t messages = 0;
      for (int step = 0; step < schedule.steps(); step += schedule.repeats(step)) {
        models::for_each_transfer(schedule, step, models::Span<double>{0.0, 1.0},
                                  [&](const auto&) { ++messages; });
      }
      if (messages > (p <= 256 ? 8'000 : 3'000)) continue;
      FlowEngine collapsed({&schedule, 1}, cost);
      FlowEngine enumerated({&schedule, 1}, cost, Collapse::none);
      const double expected = enumerated.completion(0, Bytes{3e7}).last().value();
      EXPECT_NEAR(collapsed.completion(0, Bytes{3e7}).last().value(), expected,
                  (p <= 256 ? 1e-9 : 1e-3) * expected)
          << name << " p=" << p;
    }
  }
}

// Every pair of ranks exchanges messages, on nodes that may not all be full: alike ranks, links and
// messages are computed once, and both engines say what they say of every rank by itself.
RC_GTEST_PROP(FlowAgreement, ADirectExchangeIsTheSameCollapsedAndRankByRank, ()) {
  const int g = test::drawn(1, 6);
  const int nodes = test::drawn(2, 6);
  const int ranks = g * nodes + test::drawn(0, g - 1);
  const CommunicationCost cost = test::drawn_cost(g, nodes + 1, true);
  const models::Schedule once = models::parameter_server(ranks, ranks, 0);
  const models::Schedule schedule = test::drawn(0, 2) > 0 ? once : models::pipelined(2, once);
  const Bytes bytes{test::drawn_up_to(1e8)};
  FlowEngine collapsed({&schedule, 1}, cost);
  RC_CLASSIFY(collapsed.positions() < ranks, "collapsed");
  RC_CLASSIFY(collapsed.positions() < ranks && ranks % g != 0, "collapsed, last node not full");
  FlowEngine by_rank({&schedule, 1}, cost, Collapse::none);
  const Completion found = collapsed.completion(0, bytes);
  const Completion expected = by_rank.completion(0, bytes);
  const Completion steps = StepEngine(schedule, cost).completion(bytes);
  const Completion steps_by_rank = StepEngine(schedule, cost, Collapse::none).completion(bytes);
  for (int rank = 0; rank < ranks; ++rank) {
    expect_equal(found.of(rank).value(), expected.of(rank).value());
    expect_equal(steps.of(rank).value(), steps_by_rank.of(rank).value());
  }
}

}  // namespace
}  // namespace paceline::simulator
