// What another simulator makes of an exported schedule, against the step engine.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"
#include "models/collective/export/goal.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/goal_replay.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

using test::Departure;

constexpr double alpha_ns = 1700;
constexpr double beta_ns = 3;  // for each byte
constexpr double gamma_ns = 2;

struct Times {
  double engine;
  double replay;
};

// The bucket is a multiple of the natural chunks, so that whole elements are fractions.
Times times(const models::Schedule& schedule, double gamma, Departure departure) {
  const std::int64_t elements = 6 * schedule.natural_chunks();
  const CommunicationCost cost{.ranks_per_node = schedule.ranks(),
                               .intra = {Seconds{alpha_ns}, SecondsPerByte{beta_ns}},
                               .nic = {},
                               .gamma = SecondsPerByte{gamma}};
  models::GoalOptions options{.title = "test", .elements = elements};
  if (gamma > 0) options.gamma = SecondsPerByte{gamma * 1e-9};
  test::GoalMachine machine(test::parse_goal(goal(schedule, options)), alpha_ns, beta_ns,
                            departure);
  return {StepEngine(schedule, cost).time(Bytes{4.0 * static_cast<double>(elements)}).value(),
          machine.run()};
}

// Does each rank send, and receive, at most one message in each step?
bool one_port(const models::Schedule& schedule) {
  for (int step = 0; step < schedule.steps(); ++step) {
    std::set<int> sends;
    std::set<int> receives;
    bool once = true;
    models::for_each_transfer(schedule, step, models::Span<double>{0.0, 1.0},
                              [&](const models::Transfer<double>& t) {
                                once = sends.insert(t.from).second && once;
                                once = receives.insert(t.to).second && once;
                              });
    if (!once) return false;
  }
  return true;
}

// With synchronous sends a LogGP machine takes the engine's time exactly, but where a port carries
// several messages of a step: in the engine they share it and are through together, the machine
// lets one pass after the other, which helps the first and delays what the last one is needed for.
TEST(GoalAgreement, ReplayedWithSynchronousSendsItTakesTheEnginesTime) {
  int equal = 0;
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 24, 32}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const double gamma : {0.0, gamma_ns}) {
        const Times t = times(schedule, gamma, Departure::both);
        if (one_port(schedule)) {
          ++equal;
          EXPECT_NEAR(t.replay, t.engine, 1e-9 * t.engine) << name << " p=" << p << " " << gamma;
        } else {
          EXPECT_LE(t.replay, 1.05 * t.engine) << name << " p=" << p << " " << gamma;
          EXPECT_GE(t.replay, 0.5 * t.engine) << name << " p=" << p << " " << gamma;
        }
      }
    }
  }
  EXPECT_GT(equal, 300);
}

// Servers are busy all the time: their ports' order makes no difference to the end.
TEST(GoalAgreement, IncastTakesTheEnginesTime) {
  for (const int p : {2, 3, 8, 15, 16}) {
    for (const char* name : {"direct-exchange", "parameter-server"}) {
      const models::Schedule schedule = models::all_reduce_algorithm(name).build({.ranks = p});
      for (const Departure departure : {Departure::both, Departure::sender}) {
        const Times t = times(schedule, 0, departure);
        EXPECT_NEAR(t.replay, t.engine, 1e-9 * t.engine) << name << " p=" << p;
      }
    }
  }
}

// As LogGOPSim does it, a message leaves when its sender has come to it. Where all ranks go in step
// that is the same; else a late receiver finds its message there, and it can only be sooner.
TEST(GoalAgreement, ReplayedAsLogGOPSimDoesItIsNeverLater) {
  const std::set<std::string> in_step = {"ring", "bidirectional-ring", "multi-ring", "torus-2d",
                                         "direct-exchange"};
  for (const int p : {2, 3, 5, 6, 8, 12, 16, 23, 32}) {
    const bool power = (p & (p - 1)) == 0;
    for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue()) {
      const models::Schedule schedule = algorithm.build({.ranks = p});
      const std::string name(algorithm.name);
      const Times t = times(schedule, gamma_ns, Departure::sender);
      const bool same = in_step.contains(name) ||
                        (power && (name == "halving-doubling" || name == "recursive-doubling"));
      const double slack = one_port(schedule) ? 1e-9 : 0.05;
      EXPECT_LE(t.replay, t.engine * (1 + slack)) << name << " p=" << p;
      EXPECT_GE(t.replay, t.engine * (same ? 1 - 1e-9 : 0.5)) << name << " p=" << p;
    }
  }
}

// Matching is one to one for everything in the catalogue, or the machine would throw.
TEST(GoalAgreement, EveryCollectiveRunsToItsEnd) {
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    for (const int p : {1, 2, 7, 12}) {
      for (const std::int64_t elements : {1, 5, 1000}) {
        const std::string text = goal(algorithm.build({.ranks = p}), {.elements = elements});
        test::GoalMachine machine(test::parse_goal(text), 1, 1, Departure::both);
        EXPECT_NO_THROW(static_cast<void>(machine.run())) << algorithm.name << " p=" << p;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
