// Tests: tests/simulator/layout_test.cc.
#include "simulator/iteration/pipeline_tasks.h"

#include <array>
#include <memory>
#include <vector>

#include "models/base/to_size.h"
#include "models/layout/pipeline_order.h"
#include "simulator/iteration/ways/sharded_tasks.h"

namespace paceline::simulator {
namespace {

using models::StagePass;

// The first and the last task of a pass.
struct PassTasks {
  int first = -1;
  int last = -1;
};

class Pipeline {
 public:
  explicit Pipeline(DagBuilder& dag)
      : dag_(dag),
        times_(dag.compute.layout),
        is_sharded_(!dag.buckets.empty() && dag.buckets.front().sharded() != nullptr),
        layers_of_(to_size(chunks())),
        passes_{std::vector<PassTasks>(to_size(chunks() * times_.batches)),
                std::vector<PassTasks>(to_size(chunks() * times_.batches))} {
    for (std::size_t i = 0; i < times_.stages.chunk_of.size(); ++i)
      layers_of_[to_size(times_.stages.chunk_of[i])].push_back(static_cast<int>(i));
    if (is_sharded_) units_ = shard_units(dag);
  }

  void add() {
    dag_.forward.resize(dag_.network.layers.size());
    dag_.backward.resize(dag_.network.layers.size());
    if (is_sharded_) dag_.delivered.assign(dag_.plan.buckets.size(), -1);
    for (dag_.stage = 0; dag_.stage < times_.stages.stages; ++dag_.stage) add_stage();
    add_sends();
    if (is_sharded_) std::erase(dag_.delivered, -1);
    dag_.stage = 0;
    dag_.exchanged = -1;
  }

 private:
  [[nodiscard]] int chunks() const { return times_.stages.stages * times_.stages.chunks; }
  [[nodiscard]] PassTasks& pass(bool is_backward, int chunk, int batch) {
    return passes_[is_backward ? 1 : 0][to_size(batch * chunks() + chunk)];
  }

  void add_stage() {
    if (is_sharded_) tasks_ = std::make_unique<ShardTasks>(dag_);
    dag_.exchanged = -1;
    for (const StagePass& of : models::stage_order(times_.layout, dag_.stage, times_.batches)) {
      const int chunk = of.chunk * times_.stages.stages + dag_.stage;
      const std::vector<int>& layers = layers_of_[to_size(chunk)];
      PassTasks& added = pass(of.is_backward, chunk, of.batch);
      if (!of.is_backward)
        added = add_forward(layers, of.batch == 0);
      else if (of.batch + 1 < times_.batches)
        added = add_whole(layers, TaskKind::backward);
      else
        added = add_last_backward(layers);
    }
  }

  // All layers of a chunk as one task, and what they exchange as one behind it.
  PassTasks add_whole(const std::vector<int>& layers, TaskKind kind) {
    Seconds computed;
    Seconds exchanged;
    for (const int i : layers) {
      const LayerTime& layer = times_.passes[to_size(i)];
      const bool is_forward = kind == TaskKind::forward;
      computed += is_forward ? layer.forward : layer.backward;
      exchanged +=
          is_forward ? times_.behind_forward(to_size(i)) : times_.ahead_of_backward(to_size(i));
    }
    const int task = dag_.add_compute(kind, layers.front(), computed);
    dag_.tasks.back().is_whole_pass = true;
    return {task, dag_.add_exchange(layers.front(), exchanged, task)};
  }

  // The first forward pass waits for the chunk's parameters.
  PassTasks add_forward(const std::vector<int>& layers, bool is_first) {
    if (is_first && is_sharded_ && tasks_->gathers())
      for (std::size_t unit = units_.size(); unit-- > 0;)
        if (units_[unit].first >= layers.front() && units_[unit].first <= layers.back())
          tasks_->copy_out(unit, tasks_->add_gather(unit, -1));
    const PassTasks added = add_whole(layers, TaskKind::forward);
    if (is_first)
      for (const int i : layers) dag_.forward[to_size(i)] = added.first;
    return added;
  }

  PassTasks add_last_backward(const std::vector<int>& layers) {
    const int first = static_cast<int>(dag_.tasks.size());
    for (auto i = layers.rbegin(); i != layers.rend(); ++i) {
      const auto layer = to_size(*i);
      const int before = i == layers.rbegin() ? -1 : dag_.backward[to_size(*(i - 1))];
      dag_.add_exchange(*i, times_.ahead_of_backward(layer), before);
      const Seconds time = dag_.compute.layers[layer].backward;
      dag_.backward[layer] = is_sharded_ ? tasks_->add_compute(TaskKind::backward, *i, time)
                                         : dag_.add_compute(TaskKind::backward, *i, time);
      if (!is_sharded_) continue;
      for (std::size_t unit = 0; unit < units_.size(); ++unit)
        if (units_[unit].first == *i) tasks_->reduce(unit);
    }
    return {first, dag_.backward[to_size(layers.front())]};
  }

  // Activations go to the next chunk, and their gradients back. The last chunk's backward pass follows its own
  // forward pass.
  void add_sends() {
    for (int batch = 0; batch < times_.batches; ++batch) {
      for (int chunk = 0; chunk < chunks(); ++chunk) {
        const PassTasks& forward = pass(false, chunk, batch);
        if (chunk + 1 == chunks()) {
          dag_.depend(forward.last, pass(true, chunk, batch).first);
          continue;
        }
        add_send(forward.last, pass(false, chunk + 1, batch).first, chunk, chunk);
        add_send(pass(true, chunk + 1, batch).last, pass(true, chunk, batch).first, chunk + 1,
                 chunk);
      }
    }
  }

  void add_send(int from, int to, int sender, int chunk) {
    dag_.stage = sender % times_.stages.stages;
    const bool is_back = sender > chunk;
    // Both directions of the links, and each chunk's, go on at the same time.
    const int stream = dag_.stream_of_all() + 2 + 2 * sender + (is_back ? 1 : 0);
    const int layer = layers_of_[to_size(sender)].back();
    const int task = dag_.add_on(stream, TaskKind::send, layer, times_.sends[to_size(chunk)]);
    dag_.depend(from, task);
    dag_.depend(task, to);
  }

  DagBuilder& dag_;
  const LayoutTimes& times_;
  bool is_sharded_;
  std::vector<std::vector<int>> layers_of_;  // each chunk
  std::array<std::vector<PassTasks>, 2> passes_;
  std::vector<ShardUnit> units_;
  std::unique_ptr<ShardTasks> tasks_;  // of the stage
};

}  // namespace

void add_pipeline_passes(DagBuilder& dag) {
  Pipeline(dag).add();
}

}  // namespace paceline::simulator
