// SimGrid against the step engine and the flow engine where no link is shared, and against max-min
// by hand where links are.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/simgrid_engine.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/engine_comparison.h"
#include "tests/support/error_of.h"
#include "tests/support/thoroughness.h"

namespace paceline::simulator {
namespace {

using models::Schedule;

class SimgridAgreement : public testing::Test {
 protected:
  void SetUp() override {
    if (!SimgridEngine::is_built_in()) GTEST_SKIP() << "built without SimGrid";
  }
};

double uniform(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

std::vector<int> rank_counts() {
  std::vector<int> counts = {2, 3, 5, 8, 12};
  if (!test::is_thorough()) return counts;
  counts = {24, 32, 33, 48, 64};
  for (int p = 2; p <= 16; ++p) counts.push_back(p);
  return counts;
}

std::vector<std::pair<std::string, Schedule>> catalogued(int p) {
  std::vector<std::pair<std::string, Schedule>> list;
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    try {
      list.emplace_back(std::string(algorithm.name), algorithm.build({.ranks = p}));
    } catch (const InputError&) {
      // Not over this many ranks.
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

// 0.1 % is what engines owe each other. SimGrid's solver and clock are set to much less, and a
// difference of more than this is an error of ours.
constexpr double tolerance = 1e-7;

// The tolerance where a rank may finish within microseconds: SimGrid's clock has a precision of 1e-12 s
// (simulator/engine/simgrid_engine.cc).
double tolerance_of(const Completion& expected, int ranks) {
  constexpr double clock_s = 1e-12;
  double first_s = expected.of(0).value();
  for (int rank = 1; rank < ranks; ++rank) first_s = std::min(first_s, expected.of(rank).value());
  return first_s > 0 ? std::max(tolerance, clock_s / first_s) : tolerance;
}

// All schedules of one cluster, from equal and from `seeds` unequal ready times.
void expect_agreement(const std::vector<std::pair<std::string, Schedule>>& named, int ranks,
                      const CommunicationCost& cost, int seeds, std::mt19937& random) {
  SimgridEngine simgrid(only_schedules(named), cost);
  FlowEngine flow(only_schedules(named), cost, Collapse::none);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const auto& [name, schedule] = named[i];
    const StepEngine step(schedule, cost, Collapse::none);
    const int number = static_cast<int>(i);
    const Bytes bytes{std::exp(uniform(random, 0, std::log(1e9)))};
    const Completion expected = simgrid.completion(number, bytes);
    EXPECT_LE(test::worst_difference(expected, step.completion(bytes), ranks), tolerance)
        << name << " p=" << ranks << ", " << bytes;
    EXPECT_LE(test::worst_difference(expected, flow.completion(number, bytes), ranks), tolerance)
        << name << " p=" << ranks << ", " << bytes << ", flow engine";
    for (int seed = 0; seed < seeds; ++seed) {
      // Ready times differ by much less than a step takes, up to much more.
      const auto ready =
          ready_times(ranks, std::exp(uniform(random, std::log(1e-7), std::log(10))), random);
      const Completion late = simgrid.completion(number, bytes, ready);
      const double allowed = tolerance_of(late, ranks);
      EXPECT_LE(test::worst_difference(late, step.completion(bytes, ready), ranks), allowed)
          << name << " p=" << ranks << ", " << bytes << ", unequal ready times";
      EXPECT_LE(test::worst_difference(late, flow.completion(number, bytes, ready), ranks), allowed)
          << name << " p=" << ranks << ", " << bytes << ", unequal ready times, flow engine";
    }
  }
}

TEST_F(SimgridAgreement, EqualsOursOnLinksThatAreNotShared) {
  std::mt19937 random(1);
  for (const int p : rank_counts()) {
    const CommunicationCost cost =
        on_platform(test::unshared_platform(p, random), SecondsPerByte{uniform(random, 0, 1e-10)});
    expect_agreement(catalogued(p), p, cost, p <= 16 ? test::cases(1, 3) : 1, random);
  }
}

// NICs and ports that count as shared, and of which no schedule here makes use of twice at a time.
TEST_F(SimgridAgreement, EqualsOursWhereNoMessagesMeet) {
  std::mt19937 random(2);
  for (const int p : rank_counts()) {
    std::vector<std::pair<std::string, Schedule>> single;
    for (const auto& named : catalogued(p)) {
      if (test::has_single_messages(named.second)) single.push_back(named);
    }
    EXPECT_GE(single.size(), 8U) << "p=" << p;
    CommunicationCost cost;
    cost.intra = {Seconds{uniform(random, 0, 1e-5)}, SecondsPerByte{uniform(random, 0, 1e-9)}};
    cost.nic = {Seconds{uniform(random, 0, 1e-4)}, SecondsPerByte{uniform(random, 1e-11, 1e-8)}};
    cost.gamma = SecondsPerByte{uniform(random, 0, 1e-9)};
    expect_agreement(single, p, cost, 1, random);
    cost.ranks_per_node = p;
    expect_agreement(single, p, cost, 1, random);
  }
}

// Equal messages that start together on one link: max-min is the step engine's sharing rule.
TEST_F(SimgridAgreement, EqualsOursWhereEqualMessagesMeet) {
  for (const int p : {2, 5, 16, 33}) {
    const std::vector<std::pair<std::string, Schedule>> named = {
        {"direct push", Schedule(models::ServerPush{p, p})},
        {"direct pull", Schedule(models::ServerPull{p, p})}};
    CommunicationCost cost;
    cost.intra = {Seconds{0}, SecondsPerByte{0}};
    cost.nic = {Seconds{3e-6}, SecondsPerByte{1e-10}};
    cost.gamma = SecondsPerByte{1e-11};
    std::mt19937 random(3);
    expect_agreement(named, p, cost, 0, random);
  }
}

TEST_F(SimgridAgreement, HoldsForTheSmallestMessagesAndForNone) {
  std::mt19937 random(4);
  for (const int p : test::cases<std::vector<int>>({2, 7, 17}, {2, 7, 33, 64})) {
    const auto named = catalogued(p);
    CommunicationCost cost = on_platform(test::unshared_platform(p, random), SecondsPerByte{1e-11});
    SimgridEngine simgrid(only_schedules(named), cost);
    for (std::size_t i = 0; i < named.size(); ++i) {
      const StepEngine step(named[i].second, cost, Collapse::none);
      for (const double bytes : {0.0, 1.0, 100.0}) {
        EXPECT_LE(test::worst_difference(simgrid.completion(static_cast<int>(i), Bytes{bytes}),
                                         step.completion(Bytes{bytes}), p),
                  tolerance)
            << named[i].first << " p=" << p << ", " << bytes << " bytes";
      }
    }
  }
}

TEST_F(SimgridAgreement, HoldsWhereNothingTakesTime) {
  CommunicationCost cost;
  cost.intra = cost.nic = {Seconds{0}, SecondsPerByte{0}};
  const std::vector<Schedule> schedules = {models::ring_all_reduce(64)};
  EXPECT_EQ(SimgridEngine(schedules, cost).completion(0, Bytes{1e9}).last(), Seconds{0});
}

// The clock's rounding grows with the time; dates must neither merge nor be missed.
TEST_F(SimgridAgreement, HoldsLateInTheDay) {
  std::mt19937 random(5);
  const int p = 16;
  const CommunicationCost cost =
      on_platform(test::unshared_platform(p, random), SecondsPerByte{1e-11});
  const auto named = catalogued(p);
  SimgridEngine simgrid(only_schedules(named), cost);
  for (std::size_t i = 0; i < named.size(); ++i) {
    const StepEngine step(named[i].second, cost, Collapse::none);
    for (const double start : {1.0, 1e3, 1e4, 1e6}) {
      std::vector<Seconds> ready = ready_times(p, 1e-4, random);
      for (Seconds& time : ready) time += Seconds{start};
      const Seconds found = simgrid.completion(static_cast<int>(i), Bytes{1e5}, ready).last();
      const Seconds expected = step.completion(Bytes{1e5}, ready).last();
      EXPECT_NEAR(found.value(), expected.value(), 1e-3 * (expected.value() - start))
          << named[i].first << " from " << start;
    }
  }
}

// The clock moves by a difference of dates, and that is rounded: the later date must not be missed.
TEST_F(SimgridAgreement, LongFlowsEnd) {
  std::mt19937 random(6);
  models::PlatformLink slow{
      .name = "slow", .bandwidth = BytesPerSecond{1}, .latency = Seconds{0}, .is_shared = true};
  const auto cost = on_platform(test::platform(2, {slow}, {{{0, 1}, {0}}}), SecondsPerByte{0});
  const std::vector<Schedule> schedules = {test::message(2, 0, 1)};
  SimgridEngine simgrid(schedules, cost);
  for (int i = 0; i < 100; ++i) {
    const Launch launch{0, Bytes{std::round(std::exp(uniform(random, 9, 20)))},
                        Seconds{uniform(random, 0, 100)}};
    const double expected = launch.at.value() + launch.bytes.value();
    EXPECT_NEAR(test::finish_times(simgrid, {&launch, 1})[0], expected, 1e-12 * expected);
  }
}

TEST_F(SimgridAgreement, OneRankIsDoneWhenItIsReady) {
  const std::vector<Schedule> schedules = {models::ring_all_reduce(1)};
  SimgridEngine simgrid(schedules, {});
  const Seconds ready{0.25};
  EXPECT_EQ(simgrid.completion(0, Bytes{1e6}, {&ready, 1}).last(), ready);
}

models::PlatformLink link(double bandwidth, double latency = 0) {
  return {.name = "l" + std::to_string(bandwidth),
          .bandwidth = BytesPerSecond{bandwidth},
          .latency = Seconds{latency},
          .is_shared = true};
}

// SimGrid alone would give the flow of the lower latency more of the link: 0.12 s and 0.2 s.
TEST_F(SimgridAgreement, LatencyDoesNotWeighTheShares) {
  const auto cost = on_platform(test::platform(3, {link(1e12, 2e-6), link(1e12, 10e-6), link(10e9)},
                                               {{{0, 2}, {0, 2}}, {{1, 2}, {1, 2}}}),
                                SecondsPerByte{0});
  const std::vector<Schedule> schedules = {test::message(3, 0, 2), test::message(3, 1, 2)};
  SimgridEngine simgrid(schedules, cost);
  const std::vector<Launch> launches = {{0, Bytes{1e9}, Seconds{0}}, {1, Bytes{1e9}, Seconds{0}}};
  const auto finish_s = test::finish_times(simgrid, launches);
  // Alone from 2 to 10 us, at 10 GB/s: 80 kB. Then both at 5 GB/s until one is through, and its
  // 80 kB at 10 GB/s again.
  EXPECT_NEAR(finish_s[0], 10e-6 + (1e9 - 8e4) / 5e9, 1e-9);
  EXPECT_NEAR(finish_s[1], 10e-6 + (1e9 - 8e4) / 5e9 + 8e4 / 10e9, 1e-9);
}

// Links A (10 GB/s) and B (4 GB/s) in a row. Flow 0 passes both, flow 1 A only, flow 2 B only.
TEST_F(SimgridAgreement, ParkingLotIsSharedMaxMin) {
  const auto cost = on_platform(
      test::platform(4, {link(10e9), link(4e9)}, {{{0, 1}, {0, 1}}, {{0, 2}, {0}}, {{0, 3}, {1}}}),
      SecondsPerByte{0});
  const std::vector<Schedule> schedules = {test::message(4, 0, 1), test::message(4, 0, 2),
                                           test::message(4, 0, 3)};
  SimgridEngine simgrid(schedules, cost);
  const std::vector<Launch> launches = {
      {0, Bytes{4e9}, Seconds{0}}, {1, Bytes{6e9}, Seconds{0}}, {2, Bytes{1e9}, Seconds{0}}};
  const auto finish_s = test::finish_times(simgrid, launches);
  // B bounds flows 0 and 2 at 2 GB/s each, and leaves 8 of A to flow 1. At 0.5 s flow 2 is through:
  // A would give 5 to each, B bounds flow 0 at 4, 6 are left to flow 1, which has 2 GB to go.
  EXPECT_NEAR(finish_s[2], 0.5, 1e-9);
  EXPECT_NEAR(finish_s[1], 0.5 + 2.0 / 6, 1e-9);
  // Flow 0 has 3 GB to go at 0.5 s, and B to itself.
  EXPECT_NEAR(finish_s[0], 0.5 + 3.0 / 4, 1e-9);
}

// Three links of 12, 9 and 4 GB/s, one flow over all, and 2, 1 and 1 flows over one each: rates
// fill up to 2 on the last link, then (9 - 2) and (12 - 2) / 2 on the others.
TEST_F(SimgridAgreement, LongParkingLotIsSharedMaxMin) {
  const auto cost = on_platform(
      test::platform(
          6, {link(12e9), link(9e9), link(4e9)},
          {{{0, 1}, {0, 1, 2}}, {{0, 2}, {0}}, {{0, 3}, {0}}, {{0, 4}, {1}}, {{0, 5}, {2}}}),
      SecondsPerByte{0});
  std::vector<Schedule> schedules;
  for (int to = 1; to < 6; ++to) schedules.push_back(test::message(6, 0, to));
  SimgridEngine simgrid(schedules, cost);
  // Sizes such that all end together at 1 s.
  const std::vector<double> gigabytes = {2, 5, 5, 7, 2};
  std::vector<Launch> launches;
  for (int i = 0; i < 5; ++i)
    launches.push_back({i, Bytes{1e9 * gigabytes[static_cast<std::size_t>(i)]}, Seconds{0}});
  for (const double finish : test::finish_times(simgrid, launches)) EXPECT_NEAR(finish, 1, 1e-9);
}

// A link that is not shared bounds each flow by itself.
TEST_F(SimgridAgreement, UnsharedLinkBoundsEachFlow) {
  models::PlatformLink backbone = link(3e9);
  backbone.is_shared = false;
  const auto cost =
      on_platform(test::platform(3, {link(10e9), backbone}, {{{0, 1}, {0, 1}}, {{0, 2}, {0, 1}}}),
                  SecondsPerByte{0});
  const std::vector<Schedule> schedules = {test::message(3, 0, 1), test::message(3, 0, 2)};
  SimgridEngine simgrid(schedules, cost);
  const std::vector<Launch> launches = {{0, Bytes{3e9}, Seconds{0}}, {1, Bytes{6e9}, Seconds{0}}};
  const auto finish_s = test::finish_times(simgrid, launches);
  EXPECT_NEAR(finish_s[0], 1, 1e-9);
  EXPECT_NEAR(finish_s[1], 2, 1e-9);
}

TEST_F(SimgridAgreement, CollectivesInFlightShareLinksAndLaunchMore) {
  const auto cost = on_platform(test::platform(2, {link(10e9)}, {{{0, 1}, {0}}, {{1, 0}, {}}}),
                                SecondsPerByte{0});
  const std::vector<Schedule> schedules = {test::message(2, 0, 1)};
  SimgridEngine simgrid(schedules, cost);
  std::vector<std::pair<int, double>> finished;
  simgrid.run(
      [](Launcher& launcher) {
        launcher.launch(7, {0, Bytes{10e9}, Seconds{0}});
        launcher.launch(8, {0, Bytes{1e9}, Seconds{0}});
      },
      [&](int id, Seconds at, Launcher& launcher) {
        finished.emplace_back(id, at.value());
        if (id == 8) launcher.launch(9, {0, Bytes{2e9}, at + Seconds{0.1}});
        if (id == 7) launcher.launch(10, {0, Bytes{0}, at});
      });
  // 5 GB/s each until 0.2 s; 7 alone until 0.3 s, 8 GB to go; 5 GB/s each until 9 is through at
  // 0.7 s, 6 GB to go.
  ASSERT_EQ(finished.size(), 4U);
  const std::vector<std::pair<int, double>> expected = {{8, 0.2}, {9, 0.7}, {7, 1.3}, {10, 1.3}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(finished[i].first, expected[i].first);
    EXPECT_NEAR(finished[i].second, expected[i].second, 1e-9);
  }
}

// Two rings over the same NICs in the same direction take each twice its bandwidth's time.
TEST_F(SimgridAgreement, TwoRingsAtOnceHalveTheBandwidth) {
  CommunicationCost cost;
  cost.nic = {Seconds{1e-5}, SecondsPerByte{8e-11}};
  const int p = 8;
  const std::vector<Schedule> schedules = {models::ring_all_reduce(p)};
  SimgridEngine simgrid(schedules, cost);
  const std::vector<Launch> launches(2, {0, Bytes{1e8}, Seconds{0}});
  const double steps = 2.0 * (p - 1);
  for (const double finish : test::finish_times(simgrid, launches))
    EXPECT_NEAR(finish, steps * (1e-5 + 2 * 1e8 / p * 8e-11), 1e-9);
}

TEST_F(SimgridAgreement, RunWithoutLaunchesEndsAtOnce) {
  const std::vector<Schedule> schedules = {models::ring_all_reduce(4)};
  SimgridEngine simgrid(schedules, {});
  simgrid.run([](Launcher&) {}, [](int, Seconds, Launcher&) { FAIL() << "nothing was launched"; });
}

// Each prediction has a process of its own.
TEST_F(SimgridAgreement, PredictionsDoNotKnowOfEachOther) {
  CommunicationCost cost;
  cost.nic = {Seconds{1e-5}, SecondsPerByte{8e-11}};
  const std::vector<Schedule> schedules = {models::ring_all_reduce(8)};
  SimgridEngine first(schedules, cost);
  const Seconds alone = first.completion(0, Bytes{1e8}).last();
  SimgridEngine second(schedules, cost);
  Seconds inside{0};
  second.run(
      [](Launcher& launcher) {
        launcher.launch(0, {0, Bytes{1e8}, Seconds{0}});
      },
      [&](int, Seconds, Launcher&) { inside = first.completion(0, Bytes{1e8}).last(); });
  EXPECT_EQ(inside, alone);
  EXPECT_EQ(first.completion(0, Bytes{1e8}).last(), alone);
  EXPECT_GT(first.run_cpu_s(), 0);
}

// The first child of this process; 0 if it has none.
pid_t first_child() {
  std::ifstream children("/proc/self/task/" + std::to_string(gettid()) + "/children");
  pid_t child = 0;
  children >> child;
  return child;
}

TEST_F(SimgridAgreement, AChildThatIsKilledIsOneClearError) {
  const std::vector<Schedule> schedules = {models::ring_all_reduce(4)};
  CommunicationCost cost;
  cost.nic = {Seconds{1e-5}, SecondsPerByte{8e-11}};
  SimgridEngine simgrid(schedules, cost);
  std::string message = "no error";
  try {
    simgrid.run(
        [](Launcher& launcher) {
          launcher.launch(0, {0, Bytes{1}, Seconds{0}});
          launcher.launch(1, {0, Bytes{1}, Seconds{1}});
        },
        [](int, Seconds, Launcher&) {
          const pid_t child = first_child();
          if (child == 0) FAIL() << "no child, or no /proc";
          kill(child, SIGKILL);
        });
  } catch (const RunError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "cannot simulate with SimGrid: its process was killed by signal 9 (Killed)");
  EXPECT_EQ(first_child(), 0);
  EXPECT_GT(simgrid.completion(0, Bytes{1}).last(), Seconds{0});
}

TEST_F(SimgridAgreement, AnErrorOfTheCallersReachesTheCaller) {
  const std::vector<Schedule> schedules = {models::ring_all_reduce(4)};
  SimgridEngine simgrid(schedules, {});
  EXPECT_THROW(simgrid.run(
                   [](Launcher& launcher) {
                     launcher.launch(0, {0, Bytes{1}, Seconds{0}});
                   },
                   [](int, Seconds, Launcher&) { throw std::out_of_range("the caller's"); }),
               std::out_of_range);
  EXPECT_EQ(first_child(), 0);
}

TEST_F(SimgridAgreement, IsSilent) {
  const std::vector<Schedule> schedules = {models::ring_all_reduce(4)};
  SimgridEngine simgrid(schedules, {});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::fputs("written once", stdout);
  static_cast<void>(simgrid.completion(0, Bytes{1e6}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "written once");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(SimgridAgreement, RefusesWhatIsTooLarge) {
  const std::vector<Schedule> schedules = {models::ring_all_reduce(4)};
  EXPECT_EQ(test::error_of([&] { return SimgridEngine(schedules, {}).completion(0, Bytes{2e13}); }),
            "a bucket of 20000000000000 bytes is too large for SimGrid; choose at most "
            "10000000000000 bytes");
  const std::vector<Schedule> large = {models::ring_all_reduce(1500)};
  EXPECT_EQ(test::error_of([&] { return SimgridEngine(large, {}).run_cpu_s(); }),
            "1500 ranks send too many messages for SimGrid; choose fewer ranks, or another engine");
}

TEST(SimgridAbsent, SaysHowToGetIt) {
  std::string message = "no error";
  try {
    const std::vector<Schedule> schedules = {models::ring_all_reduce(4)};
    const SimgridEngine engine(schedules, {});
  } catch (const UnavailableError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, SimgridEngine::is_built_in()
                         ? "no error"
                         : "built without SimGrid: install libsimgrid-dev 3.32 and pkg-config, and "
                           "configure again");
}

}  // namespace
}  // namespace paceline::simulator
