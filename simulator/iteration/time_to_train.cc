// Tests: tests/simulator/time_to_train_test.cc.
#include "simulator/iteration/time_to_train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/cluster/placement.h"
#include "simulator/iteration/goodput.h"

namespace paceline::simulator {
namespace {

// Counts of whole lengths are not lost to rounding: 90 epochs have 90 epochs in them.
constexpr double rounding = 1e-9;

Figure<Seconds> nothing() {
  return Figure<Seconds>::exact(Seconds{0}, Provenance::predicted, "");
}

Figure<Seconds> times(const Figure<Seconds>& figure, double factor) {
  return {factor * figure.value, factor * figure.low, factor * figure.high, Provenance::predicted,
          figure.source};
}

void add(Figure<Seconds>& sum, const Figure<Seconds>& part) {
  sum.value += part.value;
  sum.low += part.low;
  sum.high += part.high;
}

// How far a run has come, in each of the measures.
struct Progress {
  double epochs = 0;
  double samples = 0;
  double iterations = 0;

  [[nodiscard]] double in(models::Measure measure) const {
    switch (measure) {
      case models::Measure::epochs:
        return epochs;
      case models::Measure::samples:
        return samples;
      case models::Measure::iterations:
        return iterations;
    }
    return 0;
  }
};

// How many times `every` ends between the two.
double times_passed(const models::Length& every, const Progress& before, const Progress& after) {
  const auto passed = [&every](const Progress& progress) {
    return std::floor(progress.in(every.measure) / every.count * (1 + rounding));
  };
  return passed(after) - passed(before);
}

// The product of figures that have nothing to do with each other, in the unit of the value.
template <class Q>
class Product {
 public:
  explicit Product(double value) : value_(value) {}

  void is_off_as(double value, double low, double high) {
    if (value <= 0) return;
    below_ += square(std::log(value / std::max(low, value * least_share)));
    above_ += square(std::log(high / value));
  }
  template <class R>
  void is_off_as(const Figure<R>& figure) {
    if constexpr (std::is_same_v<R, double>) {
      is_off_as(figure.value, figure.low, figure.high);
    } else {
      is_off_as(figure.value.value(), figure.low.value(), figure.high.value());
    }
  }

  [[nodiscard]] Figure<Q> figure() const {
    return {Q{value_}, Q{value_ * std::exp(-std::sqrt(below_))},
            Q{value_ * std::exp(std::sqrt(above_))}, Provenance::predicted, ""};
  }

 private:
  // An interval that reaches down to 0 has no logarithm.
  static constexpr double least_share = 1e-3;
  static double square(double x) { return x * x; }

  double value_;
  double below_ = 0;
  double above_ = 0;
};

// Adds what interruptions cost to the sum over phases, whose checkpoints are those at fixed lengths. The ends are
// those of all figures at once, because all of them say how bad a run is.
void add_interruptions(const models::TrainingRun& run, int ranks, TimeToTrain& sum) {
  constexpr double most_stretch = 1000;
  constexpr double most_drawn = 2e6;  // interruptions of all simulated runs
  constexpr std::uint64_t seed = 2026;
  const models::Failures& failures = *run.failures;
  const models::Checkpoint& checkpoint = *run.checkpoint;
  const auto at = [&](Seconds Figure<Seconds>::*end, Seconds Figure<Seconds>::*other) {
    return Interruptions{failures.between.*other / ranks, failures.recovery.*end,
                         checkpoint.time.*end};
  };
  const Interruptions stated = at(&Figure<Seconds>::value, &Figure<Seconds>::value);
  const Seconds work = sum.training.value + sum.evaluation.value;
  double written = 0;
  for (const PhaseTime& phase : sum.phases) written += phase.checkpoints;
  Interrupted made;
  made.between = stated.between;
  made.interval =
      checkpoint.at_best ? std::min(work, best_interval(stated)) : work / std::max(1.0, written);
  if (checkpoint.at_best && made.interval > Seconds{0}) written = work / made.interval;
  sum.checkpoint = times(checkpoint.time, written);
  const auto lost = [&](Seconds Figure<Seconds>::*end, Seconds Figure<Seconds>::*other) {
    const Seconds of_end = sum.training.*end + sum.evaluation.*end;
    return interrupted_time(at(end, other), of_end, made.interval) - of_end - sum.checkpoint.*end;
  };
  made.lost = {lost(&Figure<Seconds>::value, &Figure<Seconds>::value),
               lost(&Figure<Seconds>::low, &Figure<Seconds>::high),
               lost(&Figure<Seconds>::high, &Figure<Seconds>::low), Provenance::predicted, ""};
  const bool gets_on = made.lost.high < most_stretch * work;
  if (!gets_on)
    throw InputError({"--failures"},
                     fmt::format("{} devices are interrupted every {}, and get nowhere with {} of "
                                 "recovery",
                                 ranks, to_text(stated.between), to_text(stated.recovery)),
                     "choose fewer devices, a shorter recovery, or shorter checkpoints");
  made.interruptions = (work + sum.checkpoint.value + made.lost.value) / stated.between;
  const int runs =
      static_cast<int>(std::clamp(most_drawn / std::max(1.0, made.interruptions), 100.0, 1000.0));
  const std::vector<Seconds> drawn = interrupted_times(stated, work, made.interval, runs, seed);
  const auto percentile = [&](double share) {
    const double place = share * static_cast<double>(drawn.size() - 1);
    return sum.start_up.value + drawn[to_size(std::llround(place))];
  };
  made.median = percentile(0.5);
  made.p90 = percentile(0.9);
  made.p99 = percentile(0.99);
  sum.interrupted = made;
}

}  // namespace

TimeToTrain time_to_train(const models::TrainingRun& run,
                          std::span<const PhaseIteration> iterations, int ranks) {
  PACELINE_ASSERT(iterations.size() == run.phases.size(), "an iteration for each phase");
  const double dataset = run.dataset ? run.dataset->samples : 0;
  TimeToTrain sum;
  sum.training = sum.evaluation = sum.checkpoint = sum.total = nothing();
  sum.start_up = run.start_up ? times(*run.start_up, 1) : nothing();
  Progress progress;
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const PhaseIteration& at = iterations[i];
    PhaseTime phase;
    phase.samples = models::samples(run.phases[i].length, at.samples, dataset);
    phase.iterations = phase.samples / at.samples;
    const Progress before = progress;
    progress.samples += phase.samples;
    progress.iterations += phase.iterations;
    if (dataset > 0) progress.epochs = progress.samples / dataset;
    const auto passed = [&](const auto& what) {
      return what ? times_passed(what->every, before, progress) : 0;
    };
    phase.evaluations = passed(run.evaluation);
    phase.checkpoints = run.checkpoint && run.checkpoint->at_best ? 0 : passed(run.checkpoint);
    phase.training = times(at.iteration, phase.iterations);
    // Forward passes are as uncertain as the iterations that they are a part of.
    phase.evaluation =
        times(at.iteration, phase.evaluations * (at.evaluation / at.iteration.value));
    phase.checkpoint = run.checkpoint ? times(run.checkpoint->time, phase.checkpoints) : nothing();
    add(sum.training, phase.training);
    add(sum.evaluation, phase.evaluation);
    add(sum.checkpoint, phase.checkpoint);
    sum.phases.push_back(std::move(phase));
  }
  if (run.failures) add_interruptions(run, ranks, sum);
  for (const Figure<Seconds>* part :
       {&sum.start_up, &sum.training, &sum.evaluation, &sum.checkpoint})
    add(sum.total, *part);
  if (sum.interrupted) add(sum.total, sum.interrupted->lost);
  sum.samples = progress.samples;
  sum.iterations = progress.iterations;
  return sum;
}

EvaluationShare evaluation_share(std::int64_t samples, int ranks, int batch) {
  const auto parts = [](std::int64_t whole, std::int64_t part) {
    return (whole + part - 1) / part;
  };
  const std::int64_t of_a_rank = parts(samples, ranks);
  const auto passes = parts(of_a_rank, batch);
  return {passes, static_cast<int>(parts(of_a_rank, passes))};
}

int nodes_of(const models::Cluster& cluster, int ranks) {
  const int g = cluster.ranks_per_node;
  if (cluster.slots.empty()) return (ranks + g - 1) / g;
  std::set<int> nodes;
  for (int rank = 0; rank < ranks; ++rank)
    nodes.insert(models::node_of(cluster.slots[to_size(rank)], g));
  return static_cast<int>(nodes.size());
}

std::optional<Figure<Watts>> power_of(const models::Cluster& cluster, int ranks) {
  const models::Power& power = cluster.power;
  const Figure<double>& pue = power.pue;
  if (power.node) {
    Product<Watts> product(nodes_of(cluster, ranks) * power.node->value.value() * pue.value);
    product.is_off_as(*power.node);
    product.is_off_as(pue);
    return product.figure();
  }
  if (!cluster.device.power) return std::nullopt;
  const Figure<Watts>& rated = *cluster.device.power;
  const Figure<double>& share = power.training_share;
  const Figure<double>& host = power.host_share;
  Product<Watts> product(ranks * rated.value.value() * share.value * (1 + host.value) * pue.value);
  product.is_off_as(rated);
  product.is_off_as(share);
  product.is_off_as(1 + host.value, 1 + host.low, 1 + host.high);
  product.is_off_as(pue);
  return product.figure();
}

Expenses expenses(const models::Cluster& cluster, int ranks, const Figure<Seconds>& time,
                  int spares) {
  const auto device_hours = [ranks](Seconds t) { return ranks * in_hours(t); };
  Expenses all;
  all.nodes = nodes_of(cluster, ranks);
  all.device_hours = {device_hours(time.value), device_hours(time.low), device_hours(time.high),
                      Provenance::predicted, ""};
  if (cluster.price) {
    Product<Usd> product(((all.nodes + spares) * (cluster.price->value * time.value)).value());
    product.is_off_as(time);
    product.is_off_as(*cluster.price);
    all.cost = product.figure();
  }
  if (const auto power = power_of(cluster, ranks)) {
    Product<KilowattHours> product((power->value * time.value).value());
    product.is_off_as(time);
    product.is_off_as(*power);
    all.energy = product.figure();
  }
  return all;
}

}  // namespace paceline::simulator
