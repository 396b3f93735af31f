// Tests: tests/simulator/goodput_test.cc.
#include "simulator/iteration/goodput.h"

#include <algorithm>
#include <cmath>

#include "models/base/random.h"
#include "models/base/seeds.h"

namespace paceline::simulator {
namespace {

// A run with an interval: what a stretch of work takes with its checkpoint, over the work.
double with_checkpoints(const Interruptions& of, Seconds interval) {
  return interval > Seconds{0} ? (interval + of.checkpoint) / interval : 1;
}

class Run {
 public:
  Run(const Interruptions& of, Seconds work, Seconds interval, std::uint64_t seed)
      : of_(of), work_(work), interval_(interval), random_(seed) {}

  Seconds time() {
    const double stretch = with_checkpoints(of_, interval_);
    Seconds time;
    Seconds done;
    for (;;) {
      const Seconds left = stretch * (work_ - done);
      const Seconds until = next();
      if (until >= left) return time + left;
      done += saved(until, stretch);
      time += until + recovery();
    }
  }

 private:
  Seconds next() { return -std::log(random_.uniform()) * of_.between; }
  [[nodiscard]] Seconds saved(Seconds time, double stretch) const {
    if (interval_ <= Seconds{0}) return time;
    return std::floor(time / (stretch * interval_)) * interval_;
  }
  Seconds recovery() {
    Seconds time;
    for (Seconds until = next(); until < of_.recovery; until = next()) time += until;
    return time + of_.recovery;
  }

  const Interruptions& of_;
  Seconds work_;
  Seconds interval_;
  Random random_;
};

}  // namespace

// With x = t / M and y = d / M the derivative is 0 where (1 - x) e^(x + y) = 1, whose left side falls from e^y
// at 0 to 0 at 1.
Seconds best_interval(const Interruptions& of) {
  constexpr int halvings = 200;
  const double y = of.checkpoint / of.between;
  double low = 0;
  double high = 1;
  for (int i = 0; i < halvings; ++i) {
    const double x = (low + high) / 2;
    (std::log1p(-x) + x + y > 0 ? low : high) = x;
  }
  return low * of.between;
}

Seconds interrupted_time(const Interruptions& of, Seconds work, Seconds interval) {
  const Seconds stretch = std::min(interval, work);
  const double share = stretch > Seconds{0} ? std::expm1((stretch + of.checkpoint) / of.between) *
                                                  (of.between / stretch)
                                            : 1;
  return std::exp(of.recovery / of.between) * share * work;
}

std::vector<Seconds> interrupted_times(const Interruptions& of, Seconds work, Seconds interval,
                                       int runs, std::uint64_t seed) {
  std::vector<Seconds> times;
  for (int i = 0; i < runs; ++i)
    times.push_back(
        Run(of, work, std::min(interval, work), mixed_seed(seed, static_cast<std::uint64_t>(i)))
            .time());
  std::ranges::sort(times);
  return times;
}

}  // namespace paceline::simulator
