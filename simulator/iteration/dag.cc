// Tests: tests/simulator/dag_test.cc.
#include "simulator/iteration/dag.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/plan/strategy.h"
#include "simulator/iteration/dag_builder.h"
#include "simulator/iteration/pipeline_tasks.h"
#include "simulator/iteration/task_graph.h"
#include "simulator/iteration/ways/k_fac_tasks.h"
#include "simulator/iteration/ways/served_tasks.h"
#include "simulator/iteration/ways/sharded_tasks.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

namespace {

// The layer whose forward pass needs a bucket's parameters first.
int first_layer(const models::NetworkWork& network, const models::Bucket& bucket) {
  int first = network.gradients[to_size(bucket.first_gradient)].layer;
  for (int i = 0; i < bucket.gradient_count; ++i) {
    first = std::min(first, network.gradients[to_size(bucket.first_gradient + i)].layer);
  }
  return first;
}

int last_gradient_layer(const models::NetworkWork& network, const models::Bucket& bucket) {
  return network.gradients[to_size(bucket.first_gradient + bucket.gradient_count - 1)].layer;
}

// The order in which buckets travel.
std::vector<int> communication_order(const models::NetworkWork& network, const models::Plan& plan,
                                     const std::vector<BucketTimes>& buckets,
                                     const ComputeTimes& compute) {
  std::vector<int> order(plan.buckets.size());
  std::iota(order.begin(), order.end(), 0);
  if (plan.overlap != models::Overlap::priority) return order;
  std::vector<Seconds> durations;
  std::vector<Seconds> waits;
  std::vector<Bytes> sizes;
  std::vector<int> priorities;
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    durations.push_back(buckets[i].total() + longest_on_a_lane(buckets[i].served()));
    waits.push_back(buckets[i].wait);
    sizes.push_back(plan.bytes(plan.buckets[i]));
    priorities.push_back(first_layer(network, plan.buckets[i]));
  }
  return priority_order(ready_times(network, plan, compute), durations, priorities,
                        {waits, sizes, plan.dispatch.credit.value_or(Bytes{0})});
}

// The parts of the first forward pass, which holds the passes of earlier batches.
std::vector<TaskPart> with_earlier_batches(const EarlierBatches& earlier) {
  constexpr int most_groups = 16;
  const std::vector<LayerTime>& layers = earlier.layers;
  Seconds batch;
  for (const LayerTime& layer : layers) batch += layer.forward + layer.backward;
  const Seconds own = layers.front().forward;
  const Seconds whole = earlier.count * batch + own;
  if (whole <= Seconds{0}) return {{TaskKind::forward, 0, 1}};
  const int groups = std::min(earlier.count, most_groups);
  const double batches = static_cast<double>(earlier.count) / groups;  // of a group
  std::vector<TaskPart> parts;
  for (int group = 0; group < groups; ++group) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      parts.push_back(
          {TaskKind::forward, static_cast<int>(i), batches * layers[i].forward / whole});
    for (std::size_t i = layers.size(); i-- > 0;)
      parts.push_back(
          {TaskKind::backward, static_cast<int>(i), batches * layers[i].backward / whole});
  }
  parts.push_back({TaskKind::forward, 0, own / whole});
  return parts;
}

// The input pipeline runs ahead of training. Between two stages are two buffers: a stage starts on
// a batch when the stage behind it is done with the batch before the last. Returns the last task, or -1.
int add_input(const InputTimes& input, DagBuilder& dag) {
  int last = -1;
  const auto stage = [&](TaskKind kind, Resource resource, Seconds duration) {
    if (duration <= Seconds{0}) return;
    const int task = dag.add(kind, resource, 0, duration);
    if (last >= 0) {
      dag.depend(last, task);
      dag.depend(task, last, 2);
    }
    last = task;
  };
  stage(TaskKind::read, Resource::storage, input.read);
  stage(TaskKind::decode, Resource::cpu, input.decode);
  stage(TaskKind::host_to_device, Resource::copy_engine, input.host_to_device);
  return last;
}

// The forward and the backward pass, with K-FAC's factors among them where there are any.
void add_passes(const KfacTimes* k_fac, DagBuilder& dag) {
  const std::vector<LayerTime>& layers = dag.compute.layers;
  const LayoutTimes& layout = dag.compute.layout;
  dag.add_exchange(0, dag.compute.earlier.count * layout.exposed(), -1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const int layer = static_cast<int>(i);
    dag.forward.push_back(dag.add_compute(TaskKind::forward, layer, layers[i].forward));
    if (k_fac != nullptr) add_factor(*k_fac, TaskKind::factor_a, i, dag);
    dag.add_exchange(layer, layout.behind_forward(i), dag.forward.back());
  }
  dag.after_forward = static_cast<int>(dag.tasks.size()) - 1;
  dag.backward.resize(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    const int layer = static_cast<int>(i);
    if (k_fac != nullptr) add_factor(*k_fac, TaskKind::factor_g, i, dag);
    const int before = i + 1 < layers.size() ? dag.backward[i + 1] : dag.forward.back();
    dag.add_exchange(layer, layout.ahead_of_backward(i), before);
    dag.backward[i] = dag.add_compute(TaskKind::backward, layer, layers[i].backward);
  }
}

// With priorities, a bucket is updated as soon as it is there, on the communication stream so
// that the compute stream can go on, and a layer's next forward pass needs its own update only.
int add_bucket_update(int index, int stream, int delivered, DagBuilder& dag) {
  const models::Bucket& bucket = dag.plan.buckets[to_size(index)];
  const auto parameters = static_cast<double>(std::max<std::int64_t>(1, dag.network.parameters()));
  const int update =
      dag.add_on(stream, TaskKind::update, index,
                 dag.compute.update * (static_cast<double>(bucket.elements) / parameters));
  dag.depend(delivered, update);
  for (int i = 0; i < bucket.gradient_count; ++i) {
    const auto gradient = to_size(bucket.first_gradient + i);
    const auto layer = to_size(dag.network.gradients[gradient].layer);
    dag.depend(update, dag.forward[layer], 1);
  }
  return update;
}

void add_communication(DagBuilder& dag) {
  const models::Plan& plan = dag.plan;
  dag.delivered.resize(plan.buckets.size());
  int stream = 0;
  const std::vector<int> order = communication_order(dag.network, plan, dag.buckets, dag.compute);
  std::vector<Bytes> sizes;
  for (const int bucket : order) sizes.push_back(plan.bytes(plan.buckets[to_size(bucket)]));
  CreditWindow window(sizes, plan.dispatch.credit);
  const bool by_kernels = runs_as_kernels(plan);
  ServedTasks served(dag, order);
  for (std::size_t position = 0; position < order.size(); ++position) {
    const int bucket = order[position];
    const auto b = to_size(bucket);
    const BucketTimes& times = dag.buckets[b];
    const int layer = last_gradient_layer(dag.network, plan.buckets[b]);
    dag.stage = dag.compute.layout.stages.stage_of(layer);
    const int ready =
        plan.overlap == models::Overlap::none ? dag.backward.front() : dag.backward[to_size(layer)];
    const std::array parts = {
        std::pair{TaskKind::negotiation, times.negotiation}, std::pair{TaskKind::cast, times.cast},
        std::pair{TaskKind::pack, times.pack}, std::pair{TaskKind::all_reduce, times.all_reduce},
        std::pair{TaskKind::unpack, times.unpack}};
    int last = ready;
    const int room = window.room_after(position);
    if (times.wait > Seconds{0} || room >= 0) {
      // On a stream of its own: others travel meanwhile.
      last = dag.add_on(dag.stream_of_bucket(bucket), TaskKind::wait, bucket, times.wait);
      dag.depend(ready, last);
      if (room >= 0) dag.depend(dag.delivered[to_size(order[to_size(room)])], last);
    }
    int on = stream;
    for (const auto& [kind, duration] : parts) {
      if (kind == TaskKind::all_reduce && !times.served().empty()) {
        last = served.add(position, last);
        // The parts that follow have a stream of their own, so that they do not delay buckets that
        // are still to be pushed.
        on = dag.stream_of_bucket(bucket);
        continue;
      }
      // The all-reduce is a task even if it takes no time, as on one rank.
      if (duration <= Seconds{0} && kind != TaskKind::all_reduce) continue;
      const int task = dag.add_on(on, kind, bucket, duration);
      dag.tasks.back().runs_as_kernels = kind == TaskKind::all_reduce && by_kernels;
      if (kind == TaskKind::all_reduce) dag.tasks.back().moved = plan.bytes(plan.buckets[b]);
      dag.depend(last, task);
      last = task;
    }
    if (plan.overlap == models::Overlap::priority) last = add_bucket_update(bucket, on, last, dag);
    dag.delivered[b] = last;
    stream = (stream + 1) % plan.streams;
  }
  served.finish();
}

// The share of all parameters that a stage has.
double share_of_stage(int stage, const DagBuilder& dag) {
  const models::Stages& stages = dag.compute.layout.stages;
  if (stages.stages == 1) return 1;
  std::int64_t own = 0;
  for (std::size_t i = 0; i < dag.network.layers.size(); ++i)
    if (stages.stage_of(static_cast<int>(i)) == stage)
      own += dag.network.layers[i].parameter_elements();
  return static_cast<double>(own) / static_cast<double>(dag.network.parameters());
}

// The update of each stage, which waits for the gradients of all: they are clipped by their norm.
void add_update(DagBuilder& dag) {
  if (dag.plan.overlap == models::Overlap::priority) return;
  const int lag = dag.plan.overlap == models::Overlap::double_buffered ? 1 : 0;
  for (dag.stage = 0; dag.stage < dag.compute.layout.layout.pipeline; ++dag.stage) {
    const int update = dag.add(TaskKind::update, Resource::compute, -1,
                               share_of_stage(dag.stage, dag) * dag.compute.update);
    for (const int delivered : dag.delivered) dag.depend(delivered, update, lag);
    dag.updates.push_back(update);
  }
}

void add_resource_order(DagBuilder& dag) {
  // The first and the last task of each.
  std::map<std::tuple<int, Resource, int>, std::pair<int, int>> ends;
  for (std::size_t i = 0; i < dag.tasks.size(); ++i) {
    const int task = static_cast<int>(i);
    const Task& added = dag.tasks[i];
    const auto [entry, is_first] =
        ends.try_emplace({added.stage, added.resource, added.stream}, std::pair{task, task});
    if (is_first) continue;
    dag.depend(entry->second.second, task);
    entry->second.second = task;
  }
  for (const auto& [resource, end] : ends) dag.depend(end.second, end.first, 1);
}

}  // namespace

bool runs_as_kernels(const models::Plan& plan) {
  return models::strategy(plan.strategy).traits().by_kernels && !plan.dispatch.through_host;
}

IterationDag::IterationDag(const models::NetworkWork& network, const models::Plan& plan,
                           const ComputeTimes& compute, const std::vector<BucketTimes>& buckets,
                           const InputTimes& input)
    : earlier_(compute.earlier) {
  PACELINE_ASSERT(compute.layers.size() == network.layers.size(), "every layer has its times");
  PACELINE_ASSERT(buckets.size() == plan.buckets.size(), "every bucket has its times");
  DagBuilder dag{network, plan, compute, buckets};
  dag.tasks.reserve(2 * network.layers.size() + 4 * buckets.size() + 8);
  dag.dependencies.reserve(4 * dag.tasks.capacity());

  const bool is_sharded = !buckets.empty() && buckets.front().sharded() != nullptr;
  const KfacTimes* k_fac = buckets.empty() ? nullptr : buckets.front().k_fac();
  const int copied = add_input(input, dag);
  const bool is_pipeline = compute.layout.is_pipeline();
  if (is_pipeline)
    add_pipeline_passes(dag);
  else if (is_sharded)
    add_sharded_passes(dag);
  else
    add_passes(k_fac, dag);
  if (!dag.forward.empty()) first_forward_ = dag.forward.front();
  if (k_fac != nullptr) earlier_g_ = k_fac->earlier_g;
  if (copied >= 0) {
    dag.depend(copied, dag.forward.front());
    dag.depend(dag.forward.front(), copied, 2);
  }
  if (k_fac != nullptr)
    add_k_fac(*k_fac, dag);
  else if (!is_sharded)
    add_communication(dag);
  add_update(dag);
  if (is_sharded) add_after_sharded_update(dag);
  add_resource_order(dag);
  tasks_ = std::move(dag.tasks);
  dependencies_ = std::move(dag.dependencies);
  finish();
}

std::vector<TaskPart> IterationDag::parts(int task) const {
  const Task& whole = tasks_[to_size(task)];
  const auto layer = to_size(std::max(0, whole.index));
  if (whole.kind == TaskKind::factor_a && layer < earlier_g_.size() && earlier_g_[layer] > 0) {
    return {{TaskKind::factor_a, whole.index, 1 - earlier_g_[layer]},
            {TaskKind::factor_g, whole.index, earlier_g_[layer]}};
  }
  if (earlier_.count == 0 || task != first_forward_) return {{whole.kind, whole.index, 1}};
  return with_earlier_batches(earlier_);
}

void IterationDag::set_durations(const std::vector<Seconds>& durations) {
  PACELINE_ASSERT(durations.size() == tasks_.size(), "every task has its duration");
  for (std::size_t i = 0; i < tasks_.size(); ++i) tasks_[i].duration = durations[i];
}

void IterationDag::finish() {
  first_into_.assign(tasks_.size() + 1, 0);
  for (const Dependency& d : dependencies_) ++first_into_[to_size(d.to) + 1];
  std::partial_sum(first_into_.begin(), first_into_.end(), first_into_.begin());
  into_.resize(dependencies_.size());
  std::vector<std::size_t> next(first_into_.begin(), first_into_.end() - 1);
  for (const Dependency& d : dependencies_) into_[next[to_size(d.to)]++] = d;
  order_ = task_order(tasks_, dependencies_);
}

}  // namespace paceline::simulator
