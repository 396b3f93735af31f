// Tests: tests/simulator/beside_traffic_test.cc.
#include "simulator/iteration/beside_traffic.h"

#include <algorithm>
#include <span>
#include <vector>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

struct Transfer {
  Seconds start;
  Seconds end;
  bool is_of_this_iteration = false;
  int after = -1;  // the last pass that it waits for, as a task
};

// The last task of the compute stream that each task waits for in its own iteration, or -1 if there
// is none. The compute stream runs its tasks in the order in which they are listed.
std::vector<int> last_awaited(const IterationDag& dag) {
  std::vector<int> last(dag.tasks().size(), -1);
  for (const int task : dag.order()) {
    const auto t = static_cast<std::size_t>(task);
    for (std::size_t i = dag.first_into()[t]; i < dag.first_into()[t + 1]; ++i) {
      const Dependency& d = dag.into()[i];
      if (d.lag > 0) continue;
      const auto from = static_cast<std::size_t>(d.from);
      last[t] = std::max(
          {last[t], last[from], dag.tasks()[from].resource == Resource::compute ? d.from : -1});
    }
  }
  return last;
}

// Collectives of the iteration and of those before it that may still be on their way, by start.
std::vector<Transfer> transfers(const IterationDag& dag, const SteadyIteration& steady) {
  constexpr int iterations = 3;  // as far back as an update reaches
  const std::vector<int> after = last_awaited(dag);
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    const Task& task = dag.tasks()[i];
    const bool travels = task.kind == TaskKind::all_reduce ||
                         task.kind == TaskKind::reduce_scatter || task.kind == TaskKind::all_gather;
    if (!travels || task.duration <= Seconds{0}) continue;
    for (int before = 0; before < iterations; ++before) {
      const Seconds start = steady.start[i] - static_cast<double>(before) * steady.period;
      all.push_back({start, start + task.duration, before == 0, after[i]});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Transfer& a, const Transfer& b) { return a.start < b.start; });
  return all;
}

// How long a pass takes that begins at `start`. What waits for it is not beside it.
Seconds stretched(std::span<const Transfer> transfers, int pass, Seconds start, Seconds alone,
                  Seconds beside) {
  if (alone <= Seconds{0} || beside <= Seconds{0}) return alone;
  const double speed = alone / beside;
  Seconds now = start;
  Seconds left = alone;  // of work, at full speed
  for (const Transfer& transfer : transfers) {
    if (transfer.end <= now || (transfer.is_of_this_iteration && transfer.after >= pass)) continue;
    const Seconds quiet = std::clamp(transfer.start - now, Seconds{0}, left);
    now += quiet;
    left -= quiet;
    const Seconds busy = std::min(left / speed, transfer.end - now);
    now += busy;
    left -= busy * speed;
    if (left <= Seconds{0}) break;
  }
  return now + std::max(Seconds{0}, left) - start;
}

}  // namespace

std::vector<LayerTime> layers_beside_traffic(const IterationDag& dag, const SteadyIteration& steady,
                                             const ComputeTimes& compute) {
  PACELINE_ASSERT(compute.beside_traffic.size() == compute.layers.size(),
                  "every layer has its time beside traffic");
  const std::vector<Transfer> beside_it = transfers(dag, steady);
  std::vector<LayerTime> layers = compute.layers;
  // Passes start one after the other: what has ended before one of them has for all later ones.
  std::size_t ended = 0;
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    const Task& task = dag.tasks()[i];
    if (task.kind != TaskKind::forward && task.kind != TaskKind::backward) continue;
    const auto layer = static_cast<std::size_t>(task.index);
    const auto pass = task.kind == TaskKind::forward ? &LayerTime::forward : &LayerTime::backward;
    while (ended < beside_it.size() && beside_it[ended].end <= steady.start[i]) ++ended;
    layers[layer].*pass =
        stretched(std::span(beside_it).subspan(ended), static_cast<int>(i), steady.start[i],
                  compute.layers[layer].*pass, compute.beside_traffic[layer].*pass);
  }
  return layers;
}

}  // namespace paceline::simulator
