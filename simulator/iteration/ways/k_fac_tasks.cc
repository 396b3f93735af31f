// Tests: tests/simulator/k_fac_test.cc.
#include "simulator/iteration/ways/k_fac_tasks.h"

#include <array>
#include <utility>

namespace paceline::simulator {
namespace {

// Returns the last task, or `ready` where nothing travels.
int add_packed(const PackedCollective& collective, TaskKind kind, int ready, DagBuilder& dag) {
  const std::array parts = {std::pair{TaskKind::pack, collective.pack},
                            std::pair{kind, collective.transfer},
                            std::pair{TaskKind::unpack, collective.unpack}};
  for (const auto& [part, duration] : parts) {
    if (duration <= Seconds{0}) continue;
    const int task = dag.add(part, Resource::communication, 0, duration);
    dag.tasks.back().runs_as_kernels = part == kind;
    // A reduce-scatter or an all-gather is half of an all-reduce.
    if (part == kind) dag.tasks.back().moved = collective.bytes / 2;
    dag.depend(ready, task);
    ready = task;
  }
  return ready;
}

}  // namespace

void add_factor(const KfacTimes& times, TaskKind factor, std::size_t layer, DagBuilder& dag) {
  const LayerTime& both = times.factors[layer];
  const Seconds duration = factor == TaskKind::factor_a ? both.forward : both.backward;
  if (duration > Seconds{0}) dag.add(factor, Resource::compute, static_cast<int>(layer), duration);
}

void add_k_fac(const KfacTimes& times, DagBuilder& dag) {
  const int inputs = add_packed(times.inputs, TaskKind::reduce_scatter, dag.after_forward, dag);
  const int reduced =
      add_packed(times.reduced, TaskKind::reduce_scatter, dag.backward.front(), dag);
  int owned = reduced;
  const auto add_owned = [&](TaskKind kind, int layer, Seconds duration) {
    if (duration <= Seconds{0}) return;
    const int task = dag.add(kind, Resource::compute, layer, duration);
    dag.depend(inputs, task);
    dag.depend(reduced, task);
    owned = task;
  };
  for (const OwnedLayer& layer : times.owned) {
    add_owned(TaskKind::invert, layer.layer, layer.invert);
    add_owned(TaskKind::precondition, layer.layer, layer.precondition);
  }
  dag.delivered = {add_packed(times.gathered, TaskKind::all_gather, owned, dag)};
}

}  // namespace paceline::simulator
