// The cost of interruptions: the best interval, and expected times against published ones and simulated runs.
#include "simulator/iteration/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>

namespace paceline::simulator {
namespace {

constexpr double hour = 3600;

Interruptions drawn() {
  const auto between = static_cast<double>(*rc::gen::inRange(60, 1'000'000));
  return {Seconds{between}, Seconds{between * *rc::gen::inRange(0, 50) / 100.0},
          Seconds{between * *rc::gen::inRange(1, 200) / 100.0}};
}

// Daly 2006, equation 37: an expansion in d / 2M, for d < 2 M.
TEST(Goodput, TheBestIntervalIsDalys) {
  for (const double share : {1e-6, 1e-4, 1e-2, 0.1, 0.5}) {
    const Interruptions of{Seconds{hour}, Seconds{60}, Seconds{share * hour}};
    const double half = share / 2;
    const double daly = std::sqrt(2 * share) * (1 + std::sqrt(half) / 3 + half / 9) - share;
    EXPECT_NEAR(best_interval(of) / Seconds{hour}, daly, 6e-3 * daly + 1e-9) << share;
  }
}

RC_GTEST_PROP(Goodput, NoOtherIntervalIsShorter, ()) {
  const Interruptions of = drawn();
  const Seconds work{1e9};
  const Seconds best = interrupted_time(of, work, best_interval(of));
  const double factor = *rc::gen::inRange(1, 1000) / 100.0;
  RC_ASSERT(interrupted_time(of, work, factor * best_interval(of)) >= best * (1 - 1e-9));
}

// shared/reference/sharded.md, 9: 16,384 devices and an interruption in 50,000 hours of one; what is lost is
// within a tenth of the first order's share.
TEST(Goodput, LosesWhatTheFirstOrderSays) {
  for (const auto& [checkpoint, recovery, lost] :
       {std::tuple{60.0, 600.0, 0.159}, {5.0, 180.0, 0.047}}) {
    const Interruptions of{Seconds{50'000.0 / 16'384 * hour}, Seconds{recovery},
                           Seconds{checkpoint}};
    const Seconds work{54 * 24 * hour};
    const double share = interrupted_time(of, work, best_interval(of)) / work - 1;
    EXPECT_NEAR(share, lost, 0.1 * lost);
  }
}

RC_GTEST_PROP(Goodput, SimulatedRunsHaveTheExpectedMean, ()) {
  Interruptions of = drawn();
  of.checkpoint = of.between * (*rc::gen::inRange(1, 30) / 100.0);
  const Seconds interval = of.between * (*rc::gen::inRange(5, 100) / 100.0);
  // A whole number of intervals, because a last part of one is a part of its checkpoint here.
  const Seconds work = *rc::gen::inRange(1, 30) * interval;
  const std::vector<Seconds> times = interrupted_times(of, work, interval, 4000, 7);
  const Seconds sum = std::accumulate(times.begin(), times.end(), Seconds{0});
  const Seconds mean = sum / static_cast<double>(times.size());
  double variance = 0;
  for (const Seconds time : times) variance += std::pow((time - mean).value(), 2);
  const double error = std::sqrt(variance) / static_cast<double>(times.size());
  RC_ASSERT(std::abs((mean - interrupted_time(of, work, interval)).value()) <
            5 * error + 1e-6 * mean.value());
  RC_ASSERT(std::is_sorted(times.begin(), times.end()));
  RC_ASSERT(times.front() >= work);
}

TEST(Goodput, WithoutCheckpointsWorkIsLostFromTheStart) {
  const Interruptions of{Seconds{hour}, Seconds{0}, Seconds{0}};
  EXPECT_NEAR(interrupted_time(of, Seconds{hour}, Seconds{1e9}) / Seconds{hour}, std::exp(1) - 1,
              1e-9);
  EXPECT_EQ(best_interval(of), Seconds{0});
  EXPECT_EQ(interrupted_time(of, Seconds{hour}, Seconds{0}), Seconds{hour});
}

}  // namespace
}  // namespace paceline::simulator
