// Tests: tests/simulator/sampled_interval_test.cc.
#include "simulator/iteration/sampled_interval.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "models/base/error.h"
#include "models/base/interval.h"
#include "models/base/random.h"

namespace paceline::simulator {
namespace {

constexpr int sample_pairs = 256;
constexpr std::uint64_t seed = 17;
constexpr std::uint64_t unexplained_seed = 18;

// Whatever is slow or fast by itself, as standard deviations from the median.
struct Draw {
  double compute = 0;
  double links = 0;
  double rank_spread = 0;
  double jitter = 0;
  double crowding = 0;
  double slowdown = 0;
  double memory_bound = 0;
  double collective_launch = 0;
};

Draw drawn(Random& random) {
  Draw draw;
  for (double* z : {&draw.compute, &draw.links, &draw.rank_spread, &draw.jitter, &draw.crowding,
                    &draw.slowdown, &draw.memory_bound, &draw.collective_launch})
    *z = random.normal();
  return draw;
}

Draw mirrored(const Draw& draw) {
  return {-draw.compute,  -draw.links,    -draw.rank_spread,  -draw.jitter,
          -draw.crowding, -draw.slowdown, -draw.memory_bound, -draw.collective_launch};
}

// A figure at z standard deviations: log-normal on either side of the median, or
// normal where an end is 0.
double sampled(double value, double low, double high, double z) {
  const double end = z < 0 ? low : high;
  const double reach = std::abs(z) / normal_reach;
  if (value > 0 && end > 0) return value * std::pow(end / value, reach);
  return std::max(0.0, value + (end - value) * reach);
}

double sampled(const Figure<double>& figure, double z) {
  return sampled(figure.value, figure.low, figure.high, z);
}

class Sampler {
 public:
  explicit Sampler(const UncertainIteration& iteration)
      : it_(iteration),
        ranks_(iteration.ranks, iteration.ranks_per_node),
        calibrated_(iteration.calibrated_ranks, iteration.ranks_per_node),
        stated_waiting_(waiting_factor(stated_losses(iteration.effects), calibrated_)),
        buckets_(iteration.buckets.stated) {}

  // The period of the sketch at the stated figures.
  [[nodiscard]] double stated() { return period(Draw{}); }
  [[nodiscard]] double period(const Draw& draw) {
    const Losses losses = losses_of(draw);
    // A compute time that was calibrated on several ranks has their waiting in it, whatever the
    // sample says of that.
    const double compute = sampled(1, it_.fast_compute, it_.slow_compute, draw.compute) *
                           waiting_factor(losses, ranks_) * stated_waiting_ /
                           waiting_factor(losses, calibrated_);
    set_buckets(draw.links, losses.collective_launch);
    return it_.sketch.period(compute, beside(draw, losses), buckets_).value();
  }

 private:
  // Compute time beside a collective over that alone.
  [[nodiscard]] double beside(const Draw& draw, const Losses& losses) const {
    if (!it_.by_kernels) return 1;
    if (it_.calibrated_beside)
      return std::max(1.0, sampled(*it_.calibrated_beside, draw.slowdown));
    return beside_collective(losses, it_.multiprocessors, it_.memory, it_.bus_bandwidth);
  }

  [[nodiscard]] Losses losses_of(const Draw& draw) const {
    const models::Effects& effects = it_.effects;
    const Figure<Seconds>& launch = effects.collective_launch;
    return {.rank_spread = sampled(effects.rank_spread, draw.rank_spread),
            .jitter = sampled(effects.jitter, draw.jitter),
            .crowding = sampled(effects.crowding, draw.crowding),
            .slowdown = sampled(effects.slowdown, draw.slowdown),
            .memory_bound = sampled(effects.memory_bound, draw.memory_bound),
            .collective_launch = Seconds{sampled(launch.value.value(), launch.low.value(),
                                                 launch.high.value(), draw.collective_launch)}};
  }

  void set_buckets(double z, Seconds launch) {
    const BucketRange& range = it_.buckets;
    const std::vector<Seconds>& end = z < 0 ? range.fast : range.slow;
    const double reach = std::abs(z) / normal_reach;
    // However fast the links are, they are not much faster than their fast end.
    constexpr double least = 0.5;
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      buckets_[i] =
          std::max(least * range.fast[i], range.stated[i] + reach * (end[i] - range.stated[i])) +
          launch;
  }

  const UncertainIteration& it_;
  WaitingRanks ranks_;
  WaitingRanks calibrated_;
  double stated_waiting_;
  std::vector<Seconds> buckets_;  // of the sample
};

// The middle 90 % of the factors, each with its own draw of what is unexplained.
IntervalFactors interval_of(std::vector<double> factors, double unexplained) {
  Random random(unexplained_seed);
  for (std::size_t i = 0; i + 1 < factors.size(); i += 2) {
    const double factor = std::exp(unexplained * random.normal());
    factors[i] *= factor;
    factors[i + 1] /= factor;
  }
  std::sort(factors.begin(), factors.end());
  return {std::min(1.0, quantile(factors, interval_tail)),
          std::max(1.0, quantile(factors, 1 - interval_tail))};
}

}  // namespace

double unexplained_deviation(const models::Effects& effects, double doublings, double exposed) {
  return std::hypot(effects.unexplained.value,
                    effects.unexplained_doubling.value * std::sqrt(doublings),
                    effects.unexplained_exposed.value * exposed);
}

IntervalFactors IterationSpread::interval() const {
  return interval_of(factors, unexplained);
}

IterationSpread sampled_spread(const UncertainIteration& iteration) {
  Sampler sampler(iteration);
  const double stated = sampler.stated();
  Random random(seed);
  IterationSpread spread;
  spread.factors.reserve(2 * sample_pairs);
  for (int i = 0; i < sample_pairs; ++i) {
    const Draw draw = drawn(random);
    spread.factors.push_back(sampler.period(draw) / stated);
    spread.factors.push_back(sampler.period(mirrored(draw)) / stated);
  }
  spread.doublings =
      std::log2(std::max(1.0, static_cast<double>(iteration.ranks) / iteration.calibrated_ranks));
  spread.exposed = iteration.exposed;
  spread.unexplained = unexplained_deviation(iteration.effects, spread.doublings, spread.exposed);
  return spread;
}

IntervalFactors ratio_interval(const IterationSpread& iteration, const IterationSpread& against,
                               double unexplained) {
  PACELINE_ASSERT(iteration.factors.size() == against.factors.size(),
                  "both iterations have the same samples");
  std::vector<double> ratios = iteration.factors;
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= against.factors[i];
  return interval_of(std::move(ratios), unexplained);
}

}  // namespace paceline::simulator
