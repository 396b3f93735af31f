// Tests: tests/simulator/sharded_test.cc.
#include "simulator/iteration/ways/sharded_tasks.h"

#include <vector>

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

constexpr int lane = 0;      // of gathers and reductions
constexpr int replicas = 1;  // of all-reduces over replicas

const models::ShardUse& use_of(const DagBuilder& dag) {
  return *dag.plan.uses<models::ShardUse>();
}

}  // namespace

std::vector<ShardUnit> shard_units(const DagBuilder& dag) {
  // Gradients are in backward order.
  const auto layer_of = [&](int gradient) {
    return dag.network.gradients[to_size(gradient)].layer;
  };
  std::vector<ShardUnit> units;
  for (const models::Bucket& bucket : dag.plan.buckets)
    units.push_back({.first = layer_of(bucket.first_gradient + bucket.gradient_count - 1),
                     .last = layer_of(bucket.first_gradient),
                     .is_root = holds_root(bucket, dag.network)});
  return units;
}

ShardTasks::ShardTasks(DagBuilder& dag)
    : dag_(dag),
      use_(use_of(dag)),
      overlaps_(dag.plan.overlap != models::Overlap::none),
      gathers_(models::sharding(use_.kind).before_pass().has_value()) {}

int ShardTasks::add_compute(TaskKind kind, int index, Seconds duration) {
  computed_ = dag_.add_compute(kind, index, times_ * duration);
  dag_.tasks.back().times = times_;
  if (!overlaps_ && sent_ >= 0) dag_.depend(sent_, computed_);
  return computed_;
}

int ShardTasks::add_collective(TaskKind kind, int stream, std::size_t unit, Seconds duration,
                               Bytes moved, int ready) {
  const int task = dag_.add_on(stream, kind, static_cast<int>(unit), times_ * duration);
  dag_.tasks.back().runs_as_kernels = true;
  dag_.tasks.back().moved = times_ * moved;
  if (ready >= 0) dag_.depend(ready, task);
  if (!overlaps_ && computed_ >= 0) dag_.depend(computed_, task);
  return sent_ = task;
}

// A gather moves half of what an all-reduce of as many bytes does.
int ShardTasks::add_gather(std::size_t unit, int ready) {
  return add_collective(TaskKind::all_gather, lane, unit, of(unit).gather, of(unit).gathered / 2,
                        ready);
}

int ShardTasks::copy_out(std::size_t unit, int gathered) {
  dag_.depend(gathered, add_compute(TaskKind::unpack, static_cast<int>(unit), of(unit).copy_out));
  return computed_;
}

void ShardTasks::reduce(std::size_t unit) {
  const ShardTimes& times = of(unit);
  const int copied = add_compute(TaskKind::pack, static_cast<int>(unit), times.copy_in);
  // Two buffers of gradients are never there at once.
  if (reduced_ >= 0 && gathers_) dag_.depend(reduced_, copied);
  int done = copied;
  if (times.reduce > Seconds{0})
    done = reduced_ = add_collective(TaskKind::reduce_scatter, lane, unit, times.reduce,
                                     times.reduced / 2, copied);
  if (times.all_reduce > Seconds{0})
    done = add_collective(TaskKind::all_reduce, replicas, unit, times.all_reduce, times.replicated,
                          done);
  dag_.delivered[unit] = done;
}

void ShardTasks::exchange(std::size_t layer, Seconds duration) {
  dag_.add_exchange(static_cast<int>(layer), times_ * duration, computed_);
}

namespace {

class Passes {
 public:
  explicit Passes(DagBuilder& dag)
      : dag_(dag), use_(use_of(dag)), units_(shard_units(dag)), tasks_(dag) {}

  // A batch whose tasks take `times` as long.
  void add_batch(int times, bool is_last) {
    tasks_.take_times(times);
    add_forward();
    add_backward(is_last || models::sharding(use_.kind).sums_in_each_pass());
  }

 private:
  void add_forward() {
    std::vector<int> forward(dag_.network.layers.size());
    std::size_t next = tasks_.gathers() ? units_.size() : 0;  // one more than the unit
    int copied = -1;  // out of the gathered buffer, for the unit before the last
    int last_copied = -1;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      while (next > 0 && units_[next - 1].first <= static_cast<int>(i)) {
        --next;
        tasks_.copy_out(next, tasks_.add_gather(next, copied));
        copied = last_copied;
        last_copied = tasks_.computed();
      }
      forward[i] = tasks_.add_compute(TaskKind::forward, static_cast<int>(i),
                                      dag_.compute.layers[i].forward);
      tasks_.exchange(i, dag_.compute.layout.behind_forward(i));
    }
    dag_.after_forward = tasks_.computed();
    if (dag_.forward.empty()) dag_.forward = forward;
  }

  // Whether the unit is gathered again before its backward pass.
  [[nodiscard]] bool gathers_again(std::size_t unit) const {
    return tasks_.gathers() && use_.reshard && !units_[unit].is_root;
  }

  void add_backward(bool reduces) {
    const std::size_t layers = dag_.network.layers.size();
    std::vector<int> backward(layers);
    std::vector<int> gathered(units_.size(), -1);
    std::size_t unit = 0;
    const auto enter = [&] {
      if (unit >= units_.size()) return;
      if (gathers_again(unit) && gathered[unit] < 0)
        gathered[unit] = tasks_.add_gather(unit, tasks_.computed());
      if (gathered[unit] >= 0) tasks_.copy_out(unit, gathered[unit]);
      const std::size_t next = unit + 1;
      if (tasks_.overlaps() && next < units_.size() && gathers_again(next))
        gathered[next] = tasks_.add_gather(next, tasks_.computed());
    };
    bool is_entered = false;
    for (std::size_t i = layers; i-- > 0;) {
      if (!is_entered && unit < units_.size() && units_[unit].last >= static_cast<int>(i)) {
        enter();
        is_entered = true;
      }
      tasks_.exchange(i, dag_.compute.layout.ahead_of_backward(i));
      backward[i] = tasks_.add_compute(TaskKind::backward, static_cast<int>(i),
                                       dag_.compute.layers[i].backward);
      while (unit < units_.size() && units_[unit].first == static_cast<int>(i)) {
        if (reduces) tasks_.reduce(unit);
        ++unit;
        is_entered = unit < units_.size() && units_[unit].last >= static_cast<int>(i);
        if (is_entered) enter();
      }
    }
    dag_.backward = backward;
  }

  DagBuilder& dag_;
  const models::ShardUse& use_;
  std::vector<ShardUnit> units_;
  ShardTasks tasks_;
};

}  // namespace

void add_sharded_passes(DagBuilder& dag) {
  dag.delivered.assign(dag.plan.buckets.size(), -1);
  Passes passes(dag);
  if (dag.compute.repeated > 0)
    passes.add_batch(dag.compute.repeated, false);
  else
    dag.add_exchange(0, dag.compute.earlier.count * dag.compute.layout.exposed(), -1);
  passes.add_batch(1, true);
  // Gradients of no bucket delay nothing.
  std::erase(dag.delivered, -1);
}

void add_after_sharded_update(DagBuilder& dag) {
  const models::Sharding& sharding = models::sharding(use_of(dag).kind);
  // The gathers of the next iteration read what the update writes.
  if (sharding.before_pass())
    for (std::size_t i = 0; i < dag.tasks.size(); ++i)
      if (dag.tasks[i].kind == TaskKind::all_gather)
        dag.depend(dag.updates[to_size(dag.tasks[i].stage)], static_cast<int>(i), 1);
  if (!sharding.after_update()) return;
  const std::vector<ShardUnit> units = shard_units(dag);
  for (std::size_t unit = units.size(); unit-- > 0;) {
    const ShardTimes& times = *dag.buckets[unit].sharded();
    dag.stage = dag.compute.layout.stages.stage_of(units[unit].first);
    const int gather = dag.add_on(lane, TaskKind::all_gather, static_cast<int>(unit), times.gather);
    dag.tasks.back().runs_as_kernels = true;
    dag.tasks.back().moved = times.gathered / 2;
    dag.depend(dag.updates[to_size(dag.stage)], gather);
    const bool waits_for_all = dag.plan.overlap == models::Overlap::none && dag.updates.size() == 1;
    dag.depend(gather, dag.forward[waits_for_all ? 0 : to_size(units[unit].first)], 1);
  }
}

}  // namespace paceline::simulator
