// Tests: tests/simulator/dag_test.cc.
#include "simulator/iteration/dag.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "models/base/error.h"
#include "simulator/iteration/task_graph.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

namespace {

// The layer whose forward pass needs a bucket's parameters first.
int first_layer(const models::NetworkWork& network, const models::Bucket& bucket) {
  int first = network.gradients[static_cast<std::size_t>(bucket.first_gradient)].layer;
  for (int i = 0; i < bucket.gradient_count; ++i) {
    first = std::min(first,
                     network.gradients[static_cast<std::size_t>(bucket.first_gradient + i)].layer);
  }
  return first;
}

int last_gradient_layer(const models::NetworkWork& network, const models::Bucket& bucket) {
  return network
      .gradients[static_cast<std::size_t>(bucket.first_gradient + bucket.gradient_count - 1)]
      .layer;
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
    durations.push_back(buckets[i].total() + longest_on_a_lane(buckets[i].served));
    waits.push_back(buckets[i].wait);
    sizes.push_back(plan.bytes(plan.buckets[i]));
    priorities.push_back(first_layer(network, plan.buckets[i]));
  }
  return priority_order(ready_times(network, plan, compute), durations, priorities,
                        {waits, sizes, plan.dispatch.credit.value_or(Bytes{0})});
}

// Streams of a DAG: those of the plan, one for each bucket, one for what all wait for, and lanes.
int first_lane_stream(const models::Plan& plan) {
  return plan.streams + static_cast<int>(plan.buckets.size()) + 1;
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

}  // namespace

bool runs_as_kernels(const models::Plan& plan) {
  const models::Strategy& strategy = models::strategy(plan.strategy);
  return strategy.on_servers() == nullptr && strategy.served() == nullptr &&
         !plan.dispatch.through_host;
}

IterationDag::IterationDag(const models::NetworkWork& network, const models::Plan& plan,
                           const ComputeTimes& compute, const std::vector<BucketTimes>& buckets,
                           const InputTimes& input) {
  PACELINE_ASSERT(compute.layers.size() == network.layers.size(), "every layer has its times");
  PACELINE_ASSERT(buckets.size() == plan.buckets.size(), "every bucket has its times");
  tasks_.reserve(2 * network.layers.size() + 4 * buckets.size() + 8);
  dependencies_.reserve(4 * tasks_.capacity());

  const KfacTimes* k_fac =
      buckets.empty() || !buckets.front().k_fac ? nullptr : &*buckets.front().k_fac;
  const int copied = add_input(input);
  add_passes(compute, k_fac);
  earlier_ = compute.earlier;
  if (k_fac != nullptr) earlier_g_ = k_fac->earlier_g;
  if (copied >= 0) {
    depend(copied, forward_.front());
    depend(forward_.front(), copied, 2);
  }
  if (k_fac != nullptr) {
    add_k_fac(*k_fac);
  } else {
    add_communication(network, plan, buckets, compute);
  }
  add_update(plan, compute);
  add_resource_order();
  finish();
}

// The forward and the backward pass, with K-FAC's factors among them where there are any.
void IterationDag::add_passes(const ComputeTimes& compute, const KfacTimes* k_fac) {
  const std::size_t layers = compute.layers.size();
  const auto add_factor = [&](TaskKind kind, std::size_t layer, Seconds LayerTime::*pass) {
    if (k_fac == nullptr || k_fac->factors[layer].*pass <= Seconds{0}) return;
    add(kind, Resource::compute, static_cast<int>(layer), k_fac->factors[layer].*pass);
  };
  for (std::size_t i = 0; i < layers; ++i) {
    forward_.push_back(
        add(TaskKind::forward, Resource::compute, static_cast<int>(i), compute.layers[i].forward));
    add_factor(TaskKind::factor_a, i, &LayerTime::forward);
  }
  after_forward_ = static_cast<int>(tasks_.size()) - 1;
  backward_.resize(layers);
  for (std::size_t i = layers; i-- > 0;) {
    add_factor(TaskKind::factor_g, i, &LayerTime::backward);
    backward_[i] =
        add(TaskKind::backward, Resource::compute, static_cast<int>(i), compute.layers[i].backward);
  }
}

// Returns the last task, or `ready` where nothing travels.
int IterationDag::add_packed(const PackedCollective& collective, TaskKind kind, int ready) {
  const std::array parts = {std::pair{TaskKind::pack, collective.pack},
                            std::pair{kind, collective.transfer},
                            std::pair{TaskKind::unpack, collective.unpack}};
  for (const auto& [part, duration] : parts) {
    if (duration <= Seconds{0}) continue;
    const int task = add(part, Resource::communication, 0, duration);
    tasks_.back().runs_as_kernels = part == kind;
    // A reduce-scatter or an all-gather is half of an all-reduce.
    if (part == kind) tasks_.back().moved = collective.bytes / 2;
    depend(ready, task);
    ready = task;
  }
  return ready;
}

void IterationDag::add_k_fac(const KfacTimes& times) {
  const int inputs = add_packed(times.inputs, TaskKind::reduce_scatter, after_forward_);
  const int reduced = add_packed(times.reduced, TaskKind::reduce_scatter, backward_.front());
  int owned = reduced;
  const auto add_owned = [&](TaskKind kind, int layer, Seconds duration) {
    if (duration <= Seconds{0}) return;
    const int task = add(kind, Resource::compute, layer, duration);
    depend(inputs, task);
    depend(reduced, task);
    owned = task;
  };
  for (const OwnedLayer& layer : times.owned) {
    add_owned(TaskKind::invert, layer.layer, layer.invert);
    add_owned(TaskKind::precondition, layer.layer, layer.precondition);
  }
  delivered_ = {add_packed(times.gathered, TaskKind::all_gather, owned)};
}

int IterationDag::add(TaskKind kind, Resource resource, int index, Seconds duration) {
  tasks_.push_back({kind, resource, index, duration});
  return static_cast<int>(tasks_.size()) - 1;
}

void IterationDag::depend(int from, int to, int lag) {
  dependencies_.push_back({from, to, lag});
}

// The input pipeline runs ahead of training. Between two stages are two buffers: a stage starts on
// a batch when the stage behind it is done with the batch before the last.
int IterationDag::add_input(const InputTimes& input) {
  int last = -1;
  const auto stage = [&](TaskKind kind, Resource resource, Seconds duration) {
    if (duration <= Seconds{0}) return;
    const int task = add(kind, resource, 0, duration);
    if (last >= 0) {
      depend(last, task);
      depend(task, last, 2);
    }
    last = task;
  };
  stage(TaskKind::read, Resource::storage, input.read);
  stage(TaskKind::decode, Resource::cpu, input.decode);
  stage(TaskKind::host_to_device, Resource::copy_engine, input.host_to_device);
  return last;
}

void IterationDag::add_communication(const models::NetworkWork& network, const models::Plan& plan,
                                     const std::vector<BucketTimes>& buckets,
                                     const ComputeTimes& compute) {
  delivered_.resize(plan.buckets.size());
  int stream = 0;
  const std::vector<int> order = communication_order(network, plan, buckets, compute);
  std::vector<Bytes> sizes;
  for (const int bucket : order)
    sizes.push_back(plan.bytes(plan.buckets[static_cast<std::size_t>(bucket)]));
  CreditWindow window(sizes, plan.dispatch.credit);
  const bool by_kernels = runs_as_kernels(plan);
  pushes_.assign(order.size(), -1);
  pulls_.assign(order.size(), {});
  for (std::size_t position = 0; position < order.size(); ++position) {
    const int bucket = order[position];
    const auto b = static_cast<std::size_t>(bucket);
    const int ready =
        plan.overlap == models::Overlap::none
            ? backward_.front()
            : backward_[static_cast<std::size_t>(last_gradient_layer(network, plan.buckets[b]))];
    const std::array parts = {std::pair{TaskKind::negotiation, buckets[b].negotiation},
                              std::pair{TaskKind::cast, buckets[b].cast},
                              std::pair{TaskKind::pack, buckets[b].pack},
                              std::pair{TaskKind::all_reduce, buckets[b].all_reduce},
                              std::pair{TaskKind::unpack, buckets[b].unpack}};
    int last = ready;
    const int room = window.room_after(position);
    if (buckets[b].wait > Seconds{0} || room >= 0) {
      // On a stream of its own: others travel meanwhile.
      last = add(TaskKind::wait, Resource::communication, bucket, buckets[b].wait);
      tasks_.back().stream = plan.streams + bucket;
      depend(ready, last);
      if (room >= 0)
        depend(delivered_[static_cast<std::size_t>(order[static_cast<std::size_t>(room)])], last);
    }
    int on = stream;
    for (const auto& [kind, duration] : parts) {
      if (kind == TaskKind::all_reduce && !buckets[b].served.empty()) {
        last = add_served(plan, buckets[b].served, bucket, last, position);
        // The parts that follow have a stream of their own, so that they do not delay buckets that
        // are still to be pushed.
        on = plan.streams + bucket;
        continue;
      }
      // The all-reduce is a task even if it takes no time, as on one rank.
      if (duration <= Seconds{0} && kind != TaskKind::all_reduce) continue;
      const int task = add(kind, Resource::communication, bucket, duration);
      tasks_.back().stream = on;
      tasks_.back().runs_as_kernels = kind == TaskKind::all_reduce && by_kernels;
      if (kind == TaskKind::all_reduce) tasks_.back().moved = plan.bytes(plan.buckets[b]);
      depend(last, task);
      last = task;
    }
    if (plan.overlap == models::Overlap::priority) {
      last = add_bucket_update(network, plan.buckets[b], bucket, last, compute.update);
      tasks_.back().stream = on;
    }
    delivered_[b] = last;
    stream = (stream + 1) % plan.streams;
  }
  if (!plan.dispatch.credit) add_requests(network, plan, buckets, compute, order);
  add_after_all(network, plan, buckets);
}

// The phases up to one that is after all buckets. Returns the task at whose end they are done.
int IterationDag::add_served(const models::Plan& plan, const std::vector<ServedPhase>& phases,
                             int bucket, int ready, std::size_t position) {
  const int first_lane = first_lane_stream(plan);
  const auto push = push_before_request(phases);
  const Bytes moved = plan.bytes(plan.buckets[static_cast<std::size_t>(bucket)]) /
                      static_cast<double>(std::max<std::ptrdiff_t>(
                          1, std::ranges::count(phases, true, &ServedPhase::runs_as_kernels)));
  for (std::size_t i = 0; i < phases.size() && !phases[i].after_all; ++i) {
    std::vector<int> lanes;
    for (const Occupied& occupied : phases[i].lanes) {
      lanes.push_back(add(TaskKind::all_reduce, Resource::communication, bucket, occupied.time));
      tasks_.back().stream = first_lane + occupied.lane;
      tasks_.back().runs_as_kernels = phases[i].runs_as_kernels;
      tasks_.back().moved = moved;
      depend(ready, lanes.back());
    }
    if (push == i) pushes_[position] = lanes.front();
    if (phases[i].is_requested) pulls_[position] = lanes;
    ready = lanes.front();
    if (lanes.size() == 1) continue;
    // Joined on the stream that the bucket has to itself.
    ready = add(TaskKind::wait, Resource::communication, bucket, Seconds{0});
    tasks_.back().stream = plan.streams + bucket;
    for (const int lane : lanes) depend(lane, ready);
  }
  return ready;
}

// A pull waits for the last push that was queued when it was asked for.
void IterationDag::add_requests(const models::NetworkWork& network, const models::Plan& plan,
                                const std::vector<BucketTimes>& buckets,
                                const ComputeTimes& compute, const std::vector<int>& order) {
  if (std::find(pushes_.begin(), pushes_.end(), -1) != pushes_.end()) return;
  const std::vector<Seconds> gradients = ready_times(network, plan, compute);
  std::vector<Seconds> ready;
  std::vector<const std::vector<ServedPhase>*> phases;
  Seconds free;  // the stream, of what stands before the phases
  for (const int bucket : order) {
    const auto b = static_cast<std::size_t>(bucket);
    const BucketTimes& times = buckets[b];
    free = std::max(free, gradients[b] + times.wait) + times.negotiation + times.cast + times.pack;
    ready.push_back(free);
    phases.push_back(&times.served);
  }
  const std::vector<std::size_t> last = last_push_before_request(ready, phases);
  for (std::size_t position = 0; position < order.size(); ++position) {
    for (const int pull : pulls_[position]) depend(pushes_[last[position]], pull);
  }
}

void IterationDag::add_after_all(const models::NetworkWork& network, const models::Plan& plan,
                                 const std::vector<BucketTimes>& buckets) {
  const auto is_after_all = [](const ServedPhase& phase) { return phase.after_all; };
  int all = -1;  // once all are through the phase before
  for (std::size_t b = buckets.size(); b-- > 0;) {
    const std::vector<ServedPhase>& phases = buckets[b].served;
    auto phase = std::find_if(phases.begin(), phases.end(), is_after_all);
    if (phase == phases.end()) continue;
    const int bucket = static_cast<int>(b);
    const int first_lane = first_lane_stream(plan);
    const bool in_no_order = phase->in_no_order;
    if (all < 0) {
      all = add(TaskKind::wait, Resource::communication, bucket, Seconds{0});
      tasks_.back().stream = first_lane - 1;
      for (const int done : delivered_) depend(done, all);
    }
    std::vector<int> before = {all};
    for (; phase != phases.end(); ++phase) {
      std::vector<int> lanes;
      for (const Occupied& occupied : phase->lanes) {
        lanes.push_back(add(TaskKind::all_reduce, Resource::communication, bucket, occupied.time));
        tasks_.back().stream = first_lane + occupied.lane;
        for (const int done : before) depend(done, lanes.back());
      }
      before = std::move(lanes);
    }
    const models::Bucket& part = plan.buckets[b];
    for (int i = 0; i < part.gradient_count; ++i) {
      const auto gradient = static_cast<std::size_t>(part.first_gradient + i);
      const auto layer = static_cast<std::size_t>(network.gradients[gradient].layer);
      for (const int done : before) depend(done, forward_[in_no_order ? 0 : layer], 1);
    }
  }
}

// With priorities, a bucket is updated as soon as it is there, on the communication stream so
// that the compute stream can go on, and a layer's next forward pass needs its own update only.
int IterationDag::add_bucket_update(const models::NetworkWork& network,
                                    const models::Bucket& bucket, int index, int delivered,
                                    Seconds whole_update) {
  const auto parameters = static_cast<double>(std::max<std::int64_t>(1, network.parameters()));
  const int update = add(TaskKind::update, Resource::communication, index,
                         whole_update * (static_cast<double>(bucket.elements) / parameters));
  depend(delivered, update);
  for (int i = 0; i < bucket.gradient_count; ++i) {
    const auto gradient = static_cast<std::size_t>(bucket.first_gradient + i);
    depend(update, forward_[static_cast<std::size_t>(network.gradients[gradient].layer)], 1);
  }
  return update;
}

void IterationDag::add_update(const models::Plan& plan, const ComputeTimes& compute) {
  if (plan.overlap == models::Overlap::priority) return;
  const int update = add(TaskKind::update, Resource::compute, -1, compute.update);
  const int lag = plan.overlap == models::Overlap::double_buffered ? 1 : 0;
  for (const int delivered : delivered_) depend(delivered, update, lag);
}

std::vector<TaskPart> IterationDag::parts(int task) const {
  const Task& whole = tasks_[static_cast<std::size_t>(task)];
  const auto layer = static_cast<std::size_t>(std::max(0, whole.index));
  if (whole.kind == TaskKind::factor_a && layer < earlier_g_.size() && earlier_g_[layer] > 0) {
    return {{TaskKind::factor_a, whole.index, 1 - earlier_g_[layer]},
            {TaskKind::factor_g, whole.index, earlier_g_[layer]}};
  }
  if (earlier_.count == 0 || forward_.empty() || task != forward_.front())
    return {{whole.kind, whole.index, 1}};
  return with_earlier_batches(earlier_);
}

void IterationDag::set_durations(const std::vector<Seconds>& durations) {
  PACELINE_ASSERT(durations.size() == tasks_.size(), "every task has its duration");
  for (std::size_t i = 0; i < tasks_.size(); ++i) tasks_[i].duration = durations[i];
}

void IterationDag::add_resource_order() {
  std::map<std::pair<Resource, int>, std::pair<int, int>> ends;  // first and last task
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const int task = static_cast<int>(i);
    const auto [entry, is_first] =
        ends.try_emplace({tasks_[i].resource, tasks_[i].stream}, std::pair{task, task});
    if (is_first) continue;
    depend(entry->second.second, task);
    entry->second.second = task;
  }
  for (const auto& [resource, end] : ends) depend(end.second, end.first, 1);
}

void IterationDag::finish() {
  first_into_.assign(tasks_.size() + 1, 0);
  for (const Dependency& d : dependencies_) ++first_into_[static_cast<std::size_t>(d.to) + 1];
  std::partial_sum(first_into_.begin(), first_into_.end(), first_into_.begin());
  into_.resize(dependencies_.size());
  std::vector<std::size_t> next(first_into_.begin(), first_into_.end() - 1);
  for (const Dependency& d : dependencies_) into_[next[static_cast<std::size_t>(d.to)]++] = d;
  order_ = task_order(tasks_, dependencies_);
}

}  // namespace paceline::simulator
