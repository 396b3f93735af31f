// An iteration's DAG while its tasks and edges are added: by dag.cc, and by the ways to travel
// (simulator/iteration/ways).
#pragma once

#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"
#include "simulator/iteration/bucket_times.h"
#include "simulator/iteration/task.h"

namespace paceline::simulator {

struct DagBuilder {
  const models::NetworkWork& network;
  const models::Plan& plan;
  const ComputeTimes& compute;
  const std::vector<BucketTimes>& buckets;

  std::vector<Task> tasks = {};
  std::vector<Dependency> dependencies = {};
  std::vector<int> forward = {};    // task of each layer
  std::vector<int> backward = {};   // task of each layer
  int after_forward = -1;           // the last task of the forward pass, with its factors
  std::vector<int> delivered = {};  // last task of each bucket that the update waits for
  std::vector<int> updates = {};    // of each stage
  int stage = 0;                    // of a pipeline: whose rank runs the tasks that are added
  int exchanged = -1;               // what computation waits for next, within a sample's ranks

  // Returns the task, which is tasks.back().
  int add(TaskKind kind, Resource resource, int index, Seconds duration) {
    tasks.push_back({kind, resource, index, duration});
    tasks.back().stage = stage;
    return static_cast<int>(tasks.size()) - 1;
  }
  // The same on the compute stream, behind the exchange that was added last.
  int add_compute(TaskKind kind, int index, Seconds duration) {
    const int task = add(kind, Resource::compute, index, duration);
    if (exchanged >= 0) depend(exchanged, task);
    exchanged = -1;
    return task;
  }
  // Adds an exchange between ranks of one sample behind `ready`, if it takes time. The next computation waits for it.
  int add_exchange(int layer, Seconds duration, int ready) {
    if (duration <= Seconds{0}) return ready;
    const int task = add_on(stream_of_all() + 1, TaskKind::exchange, layer, duration);
    tasks.back().runs_as_kernels = true;
    if (ready >= 0) depend(ready, task);
    return exchanged = task;
  }
  // The same on one of the communication streams.
  int add_on(int stream, TaskKind kind, int bucket, Seconds duration) {
    const int task = add(kind, Resource::communication, bucket, duration);
    tasks.back().stream = stream;
    return task;
  }
  void depend(int from, int to, int lag = 0) { dependencies.push_back({from, to, lag}); }

  // The communication streams are those of the plan, one for each bucket, one for what all wait for,
  // and the lanes of servers.
  [[nodiscard]] int stream_of_bucket(int bucket) const { return plan.streams + bucket; }
  [[nodiscard]] int stream_of_all() const {
    return plan.streams + static_cast<int>(plan.buckets.size());
  }
  [[nodiscard]] int stream_of_lane(int lane) const { return stream_of_all() + 1 + lane; }
};

}  // namespace paceline::simulator
