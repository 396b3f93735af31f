// Tests: tests/simulator/compute_interference_test.cc.
#include "simulator/iteration/compute_interference.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

bool is_pass(const Task& task) {
  const bool is_layer = task.kind == TaskKind::forward || task.kind == TaskKind::backward;
  return is_layer && !task.is_whole_pass;
}

// Whether the task slows computation down.
bool slows(const Task& task, const ComputeTimes& compute) {
  const bool travels = task.kind == TaskKind::all_reduce || task.kind == TaskKind::reduce_scatter ||
                       task.kind == TaskKind::all_gather;
  return travels && task.duration > Seconds{0} &&
         (task.runs_as_kernels || !compute.beside_kernels_only);
}

struct Transfer {
  Seconds start;
  Seconds end;
  double load = 1;  // while it is on its way, as a share of full load
};

Transfer transfer_of(const Task& task, Seconds start, const ComputeTimes& compute) {
  return {start, start + task.duration,
          compute.load.full(task.moved, task.duration) / task.duration};
}

bool starts_before(const Transfer& a, const Transfer& b) {
  return a.start < b.start;
}

// The transfers of each stage of a pipeline, sorted by start. A stage's ranks see no others.
using Transfers = std::vector<std::vector<Transfer>>;

// Collectives of the iterations before the steady one that may still be on their way.
Transfers transfers_before(const IterationDag& dag, const SteadyIteration& steady,
                           const ComputeTimes& compute) {
  constexpr int iterations = 2;  // as far back as an update reaches
  Transfers all(to_size(compute.layout.layout.pipeline));
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    const Task& task = dag.tasks()[i];
    if (!slows(task, compute)) continue;
    for (int before = 1; before <= iterations; ++before) {
      const Seconds start = steady.start[i] - static_cast<double>(before) * steady.period;
      all[to_size(task.stage)].push_back(transfer_of(task, start, compute));
    }
  }
  for (std::vector<Transfer>& of_stage : all)
    std::sort(of_stage.begin(), of_stage.end(), starts_before);
  return all;
}

// One iteration, evaluated task by task, with what travels while each pass computes.
class Sweep {
 public:
  Sweep(const IterationDag& dag, const SteadyIteration& steady, const ComputeTimes& compute)
      : dag_(dag),
        steady_(steady),
        compute_(compute),
        finish_(dag.tasks().size()),
        transfers_(transfers_before(dag, steady, compute)) {}

  // When the task starts. Those that it waits for were evaluated.
  [[nodiscard]] Seconds start(int task) const {
    const auto t = to_size(task);
    Seconds start;
    for (std::size_t i = dag_.first_into()[t]; i < dag_.first_into()[t + 1]; ++i) {
      const Dependency& d = dag_.into()[i];
      const auto from = to_size(d.from);
      start = std::max(start, d.lag == 0 ? finish_[from]
                                         : steady_.previous_finish[from] -
                                               static_cast<double>(d.lag - 1) * steady_.period);
    }
    return start;
  }

  void finish(int task, Seconds start, Seconds duration) {
    const auto t = to_size(task);
    finish_[t] = start + duration;
    if (!slows(dag_.tasks()[t], compute_)) return;
    const Transfer transfer = transfer_of(dag_.tasks()[t], start, compute_);
    std::vector<Transfer>& transfers = transfers_[to_size(dag_.tasks()[t].stage)];
    transfers.insert(std::upper_bound(transfers.begin(), transfers.end(), transfer, starts_before),
                     transfer);
  }

  // How long a pass takes that begins at `start`. No pass of a stage begins before the one of it that
  // was asked about last has ended.
  [[nodiscard]] Seconds stretched(int stage, Seconds start, Seconds alone, Seconds beside) {
    std::vector<Transfer>& transfers = transfers_[to_size(stage)];
    std::erase_if(transfers, [start](const Transfer& t) { return t.end <= start; });
    if (alone <= Seconds{0} || beside <= Seconds{0}) return alone;
    const double most_lost = 1 - alone / beside;  // of its speed, under full load
    Seconds now = start;
    Seconds left = alone;  // of work, at full speed
    while (left > Seconds{0}) {
      const Stretch stretch = stretch_from(transfers, now);
      const double speed = 1 - most_lost * stretch.load;
      if (!stretch.end || left <= speed * (*stretch.end - now)) return now + left / speed - start;
      left -= speed * (*stretch.end - now);
      now = *stretch.end;
    }
    return now - start;
  }

 private:
  // A stretch of time with the same transfers on their way; without an end, if none follows.
  struct Stretch {
    double load = 0;  // at most 1
    std::optional<Seconds> end = {};
  };
  [[nodiscard]] static Stretch stretch_from(const std::vector<Transfer>& transfers, Seconds now) {
    Stretch stretch;
    for (const Transfer& transfer : transfers) {
      if (transfer.end <= now) continue;
      const bool is_on_its_way = transfer.start <= now;
      const Seconds changes = is_on_its_way ? transfer.end : transfer.start;
      stretch.end = std::min(stretch.end.value_or(changes), changes);
      if (!is_on_its_way) break;  // the others start later
      stretch.load = std::min(1.0, stretch.load + transfer.load);
    }
    return stretch;
  }

  const IterationDag& dag_;
  const SteadyIteration& steady_;
  const ComputeTimes& compute_;
  std::vector<Seconds> finish_;
  Transfers transfers_;  // that had not ended when the last pass of the stage began
};

}  // namespace

std::vector<LayerTime> layers_beside_traffic(const IterationDag& dag, const SteadyIteration& steady,
                                             const ComputeTimes& compute) {
  PACELINE_ASSERT(compute.beside_traffic.size() == compute.layers.size(),
                  "every layer has its time beside traffic");
  Sweep sweep(dag, steady, compute);
  std::vector<LayerTime> layers = compute.layers;
  for (const int i : dag.order()) {
    const Task& task = dag.tasks()[to_size(i)];
    const Seconds start = sweep.start(i);
    if (!is_pass(task)) {
      sweep.finish(i, start, task.duration);
      continue;
    }
    const auto layer = to_size(task.index);
    const auto pass = task.kind == TaskKind::forward ? &LayerTime::forward : &LayerTime::backward;
    const Seconds whole =
        sweep.stretched(task.stage, start, task.times * (compute.layers[layer].*pass),
                        task.times * (compute.beside_traffic[layer].*pass));
    layers[layer].*pass = whole / task.times;
    sweep.finish(i, start, whole);
  }
  return layers;
}

}  // namespace paceline::simulator
