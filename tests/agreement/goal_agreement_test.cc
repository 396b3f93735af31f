// What machines that read GOAL make of an exported schedule, against the step engine: one with our
// synchronous steps, and one with LogGOPSim's hosts (tests/support/goal_replay.h).
#include <gtest/gtest.h>

#include <cmath>
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

constexpr double alpha_ns = 1700;
constexpr double beta_ns = 3;  // for each byte
constexpr double gamma_ns = 2;

// A schedule, a bucket that is a multiple of its natural chunks, so that whole elements are
// fractions, and the file.
struct Exported {
  models::Schedule schedule;
  std::int64_t elements = 0;
  double gamma = 0;
  test::GoalFile file;
};

Exported exported(const models::Schedule& schedule, double gamma, std::int64_t multiple = 6) {
  Exported made{schedule, multiple * schedule.natural_chunks(), gamma, {}};
  models::GoalOptions options{.title = "test", .elements = made.elements};
  if (gamma > 0) options.gamma = SecondsPerByte{gamma * 1e-9};
  made.file = test::parse_goal(goal(schedule, options));
  return made;
}

double engine_time(const Exported& e) {
  const CommunicationCost cost{.ranks_per_node = e.schedule.ranks(),
                               .intra = {Seconds{alpha_ns}, SecondsPerByte{beta_ns}},
                               .nic = {},
                               .gamma = SecondsPerByte{e.gamma}};
  return StepEngine(e.schedule, cost).time(Bytes{4.0 * static_cast<double>(e.elements)}).value();
}

double synchronous_time(const Exported& e) {
  return test::SynchronousMachine(e.file, alpha_ns, beta_ns).run();
}

// A message of s bytes takes L + (s-1) G there: with L = alpha + beta that is alpha + s beta.
double loggops_time(const Exported& e, std::uint64_t largest_eager) {
  const test::LogGops parameters{
      .L = std::llround(alpha_ns + beta_ns), .G = std::llround(beta_ns), .S = largest_eager};
  return static_cast<double>(test::LogGopsMachine(e.file, parameters).run());
}

constexpr std::uint64_t always_rendezvous = 0;
constexpr std::uint64_t always_eager = std::uint64_t{1} << 40;

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

// The synchronous machine takes the engine's time exactly, except where a port carries several
// messages of a step. In the engine these share the port and are through together. The machine lets
// one pass after the other, which helps the first and delays what waits for the last.
TEST(GoalAgreement, WithSynchronousStepsAFileTakesTheEnginesTime) {
  int equal = 0;
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 24, 32}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const double gamma : {0.0, gamma_ns}) {
        const Exported e = exported(schedule, gamma);
        const double engine = engine_time(e);
        const double replay = synchronous_time(e);
        if (one_port(schedule)) {
          ++equal;
          EXPECT_NEAR(replay, engine, 1e-9 * engine) << name << " p=" << p << " " << gamma;
        } else {
          EXPECT_LE(replay, 1.05 * engine) << name << " p=" << p << " " << gamma;
          EXPECT_GE(replay, 0.5 * engine) << name << " p=" << p << " " << gamma;
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
      const Exported e = exported(models::all_reduce_algorithm(name).build({.ranks = p}), 0);
      const double engine = engine_time(e);
      EXPECT_NEAR(synchronous_time(e), engine, 1e-9 * engine) << name << " p=" << p;
    }
  }
}

// Receiving occupies a host of LogGOPSim for (s-1) G, and it starts no send meanwhile. Where all
// ranks go in step, and each sends and receives one message at a time, it has none to start.
TEST(GoalAgreement, LogGopsTakesTheEnginesTimeWhereRanksGoInStep) {
  int equal = 0;
  for (const int p : {2, 3, 4, 5, 6, 8, 12, 16, 23, 32}) {
    const bool power = (p & (p - 1)) == 0;
    for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue()) {
      const bool in_step = algorithm.name == "ring" || algorithm.name == "torus-2d" ||
                           (power && (algorithm.name == "halving-doubling" ||
                                      algorithm.name == "recursive-doubling"));
      if (!in_step) continue;
      const Exported e = exported(algorithm.build({.ranks = p}), gamma_ns);
      const double engine = engine_time(e);
      for (const std::uint64_t eager : {always_rendezvous, always_eager}) {
        ++equal;
        EXPECT_NEAR(loggops_time(e, eager), engine, 1e-9 * engine) << algorithm.name << " p=" << p;
      }
    }
  }
  EXPECT_GE(equal, 50);
}

// Where a rank has something to send while it receives, a host of LogGOPSim is later than a
// full-duplex port, which does both at once, by as much as docs/formats.md says. It is sooner where
// a receiver is late, because a message leaves without it.
TEST(GoalAgreement, LogGopsIsLaterWhereRanksSendWhileTheyReceive) {
  const auto expect_later = [](const char* name, const models::ScheduleOptions& options,
                               std::int64_t multiple, double least, double most) {
    const Exported e = exported(models::all_reduce_algorithm(name).build(options), 0, multiple);
    const double engine = engine_time(e);
    for (const std::uint64_t eager : {always_rendezvous, always_eager}) {
      const double times = loggops_time(e, eager) / engine;
      EXPECT_GE(times, least) << models::described(name, options);
      EXPECT_LE(times, most) << models::described(name, options);
    }
  };
  for (const int p : {6, 8, 12, 16, 32})
    expect_later("double-binary-tree", {.ranks = p}, 60'000, 1.22, 1.42);
  expect_later("direct-exchange", {.ranks = 32}, 600, 1.15, 2);
  expect_later("multi-ring", {.ranks = 16, .group_size = 8}, 600, 1.5, 1.67);
  const Exported late =
      exported(models::all_reduce_algorithm("binary-blocks").build({.ranks = 6}), 0, 60'000);
  EXPECT_LT(loggops_time(late, always_eager), 0.9 * engine_time(late));
}

// Rank 0 takes in 101 bytes from rank 1 from 1000 ns on, for 100 G = 1000 ns. The message of rank 2
// at 1100 ns waits for that, and so does the answer, which arrives 1000 ns + 10 G after 2000 ns.
TEST(LogGopsMachine, ReceivingOccupiesTheHost) {
  const test::GoalFile file = test::parse_goal(R"(num_ranks 3

rank 0 {
r1: recv 101b from 1 tag 0
r2: recv 1b from 2 tag 0
s: send 11b to 2 tag 0
s requires r2
}

rank 1 {
s: send 101b to 0 tag 0
}

rank 2 {
c: calc 100
s: send 1b to 0 tag 0
s requires c
r: recv 11b from 0 tag 0
}
)");
  EXPECT_EQ(test::LogGopsMachine(file, {.L = 1000, .G = 10}).run(), 3100);
}

// Matching is one to one for everything in the catalogue, or the machine would throw.
TEST(GoalAgreement, EveryCollectiveRunsToItsEnd) {
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    for (const int p : {1, 2, 7, 12}) {
      for (const std::int64_t elements : {1, 5, 1000}) {
        const std::string text = goal(algorithm.build({.ranks = p}), {.elements = elements});
        const test::GoalFile file = test::parse_goal(text);
        EXPECT_NO_THROW((void)test::SynchronousMachine(file, 1, 1).run()) << algorithm.name << p;
        EXPECT_NO_THROW((void)test::LogGopsMachine(file, {.L = 1, .G = 1}).run())
            << algorithm.name << " p=" << p;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
