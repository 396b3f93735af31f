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

constexpr int sample_pairs = sampled_states / 2;

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
        buckets_(iteration.buckets.stated),
        lost_(buckets_.size()) {}

  [[nodiscard]] SampledScenario world(const Draw& draw) const {
    const Losses losses = losses_of(draw);
    // A compute time that was calibrated on several ranks has their waiting in it, whatever the
    // sample says of that.
    return {.compute = sampled(1, it_.fast_compute, it_.slow_compute, draw.compute) *
                       waiting_factor(losses, ranks_) * stated_waiting_ /
                       waiting_factor(losses, calibrated_),
            .interference = interference(draw, losses),
            .links = draw.links,
            .launch = losses.collective_launch};
  }
  // The period of the sketch.
  [[nodiscard]] double period(const SampledScenario& world) {
    set_buckets(world.links, world.launch);
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      lost_[i] = world.interference.lost(bus_bytes(it_.moved[i], it_.ranks), buckets_[i]);
    return it_.sketch.period(world.compute, buckets_, lost_).value();
  }

 private:
  [[nodiscard]] Interference interference(const Draw& draw, const Losses& losses) const {
    if (!it_.by_kernels || it_.ranks == 1) return {};
    const auto estimated = [&](const Losses& of) {
      return estimated_interference(of, it_.multiprocessors, it_.memory);
    };
    if (!it_.calibrated_beside) return estimated(losses);
    return calibrated_interference(estimated(stated_losses(it_.effects)),
                                   sampled(*it_.calibrated_beside, draw.slowdown),
                                   it_.calibrated_bus);
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
  std::vector<Seconds> lost_;     // what each takes from computation
};

// The factors, each with its own draw of what is unexplained.
std::vector<double> with_unexplained(std::vector<double> factors, double unexplained,
                                     std::uint64_t seed) {
  Random random(seed + 1);
  for (std::size_t i = 0; i + 1 < factors.size(); i += 2) {
    const double factor = std::exp(unexplained * random.normal());
    factors[i] *= factor;
    factors[i + 1] /= factor;
  }
  return factors;
}

// The middle 90 % of the factors, with 1 and with the factor where no latency is hidden.
IntervalFactors interval_of(std::vector<double> factors, double unhidden) {
  std::sort(factors.begin(), factors.end());
  return {std::min({1.0, unhidden, quantile(factors, interval_tail)}),
          std::max({1.0, unhidden, quantile(factors, 1 - interval_tail)})};
}

// One sample for each draw and its mirror image.
template <class T, class F>
std::vector<T> of_each_draw(std::uint64_t seed, F sample) {
  Random random(seed);
  std::vector<T> samples;
  samples.reserve(2 * sample_pairs);
  for (int i = 0; i < sample_pairs; ++i) {
    const Draw draw = drawn(random);
    samples.push_back(sample(draw));
    samples.push_back(sample(mirrored(draw)));
  }
  return samples;
}

}  // namespace

double unexplained_deviation(const models::Effects& effects, double doublings, double exposed) {
  return std::hypot(effects.unexplained.value,
                    effects.unexplained_doubling.value * std::sqrt(doublings),
                    effects.unexplained_exposed.value * exposed);
}

std::vector<double> IterationSpread::with_unhidden() const {
  std::vector<double> with = factors;
  if (unhidden == 0) return with;
  Random random(seed + 2);
  for (std::size_t i = 0; i < with.size(); i += 2) {
    const double share = random.uniform();
    with[i] *= 1 + share * unhidden;
    if (i + 1 < with.size()) with[i + 1] *= 1 + (1 - share) * unhidden;
  }
  return with;
}

std::vector<double> IterationSpread::samples() const {
  return with_unexplained(with_unhidden(), unexplained, seed);
}

IntervalFactors IterationSpread::interval() const {
  return interval_of(samples(), 1 + unhidden);
}

IterationSpread sampled_spread(const UncertainIteration& iteration) {
  Sampler sampler(iteration);
  std::vector<SampledScenario> worlds = of_each_draw<SampledScenario>(
      iteration.seed, [&](const Draw& draw) { return sampler.world(draw); });
  double stated = sampler.period(sampler.world({}));
  if (!iteration.slowest.empty()) {
    PACELINE_ASSERT(iteration.slowest.size() == worlds.size(), "each state has its slowest rank");
    double sum = 0;
    for (std::size_t i = 0; i < worlds.size(); ++i) {
      SampledScenario world = sampler.world({});
      world.compute *= iteration.slowest[i];
      sum += sampler.period(world);
      worlds[i].compute *= iteration.slowest[i];
    }
    stated = sum / static_cast<double>(worlds.size());
  }
  IterationSpread spread;
  spread.seed = iteration.seed;
  for (const SampledScenario& world : worlds)
    spread.factors.push_back(sampler.period(world) / stated);
  spread.doublings =
      std::log2(std::max(1.0, static_cast<double>(iteration.ranks) / iteration.calibrated_ranks));
  spread.exposed = iteration.exposed;
  spread.unexplained = unexplained_deviation(iteration.effects, spread.doublings, spread.exposed);
  return spread;
}

Figure<double> unhidden_latency() {
  return {
      0, 0, 1, Provenance::assumed,
      "from the flow engine to one in-order stream; 0.19 to 0.54 measured with Gloo on two streams "
      "(experiments/ddp)"};
}

SampledScenarios sampled_scenarios(const UncertainIteration& iteration) {
  const Sampler sampler(iteration);
  return {sampler.world({}), of_each_draw<SampledScenario>(iteration.seed, [&](const Draw& draw) {
            return sampler.world(draw);
          })};
}

IterationSpread spread_between(IntervalFactors ends, std::uint64_t seed) {
  IterationSpread spread;
  spread.seed = seed;
  spread.factors = of_each_draw<double>(
      seed, [&](const Draw& draw) { return sampled(1, ends.low, ends.high, draw.compute); });
  return spread;
}

IntervalFactors ratio_interval(const IterationSpread& iteration, const IterationSpread& against,
                               double unexplained) {
  PACELINE_ASSERT(iteration.factors.size() == against.factors.size(),
                  "both iterations have the same samples");
  std::vector<double> ratios = iteration.with_unhidden();
  const std::vector<double> others = against.with_unhidden();
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= others[i];
  return interval_of(with_unexplained(std::move(ratios), unexplained, iteration.seed),
                     (1 + iteration.unhidden) / (1 + against.unhidden));
}

}  // namespace paceline::simulator
