// The DAG of one training iteration: tasks as vertices, dependencies as edges (Shi et al. 2018).
//
// Edges with lag 1 come from the iteration before, with lag 2 from the one before that, so that the
// graph of any number of iterations is this one, unrolled. A resource runs its tasks in the order
// in which they are listed; that order is edges too (and lag-1 edges from the last to the first),
// so a policy is nothing but a choice of edges:
//   wait-free         a bucket needs its last gradient; the update needs all buckets
//   no overlap        every bucket needs the end of backward
//   double buffering  the update needs the buckets of the iteration before (ChainerMN 1.3)
//   priority          ready buckets go in the order of the layers that need them; updates are
//                     for each bucket, and a layer's forward needs its own update only
// A bucket that waits for the system that its plan is of does so beside its stream. With a credit
// (models/plan/dispatch.h), it also waits for the bucket whose end leaves room for it. What buckets on
// servers and K-FAC add stands in simulator/iteration/ways.
#pragma once

#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"
#include "simulator/iteration/bucket_times.h"
#include "simulator/iteration/task.h"

namespace paceline::simulator {

// The times of the input of one batch of a rank. A time is zero where the cluster says nothing about
// it, and then there is no task.
struct InputTimes {
  Seconds read;
  Seconds decode;
  Seconds host_to_device;
};

// Whether the plan's all-reduces run as kernels of the device, as schedules and libraries of GPUs do,
// so that they take multiprocessors and memory from computation. Copy engines and hosts move what goes
// to servers or through the host's memory.
[[nodiscard]] bool runs_as_kernels(const models::Plan& plan);

class IterationDag {
 public:
  // Throws nothing; the parts must fit each other (one LayerTime for each layer, one BucketTimes
  // for each bucket). O(layers + buckets).
  IterationDag(const models::NetworkWork& network, const models::Plan& plan,
               const ComputeTimes& compute, const std::vector<BucketTimes>& buckets,
               const InputTimes& input);

  [[nodiscard]] const std::vector<Task>& tasks() const { return tasks_; }
  [[nodiscard]] const std::vector<Dependency>& dependencies() const { return dependencies_; }
  // task_order() of them (task_graph.h).
  [[nodiscard]] const std::vector<int>& order() const { return order_; }
  // What a task is made of, in the order in which that runs; the shares sum to 1. This is the task
  // itself, except where batches are accumulated: the first forward pass holds the passes of all
  // earlier batches, and a factor A of K-FAC their factors G. More than 16 earlier batches are 16
  // groups, each of which has the forward passes of all its batches before their backward passes.
  [[nodiscard]] std::vector<TaskPart> parts(int task) const;
  // Replaces the durations that the DAG was made with: one for each task.
  void set_durations(const std::vector<Seconds>& durations);
  // Dependencies grouped by `to`: those of task t are into()[first_into()[t]] to
  // into()[first_into()[t+1]].
  [[nodiscard]] const std::vector<Dependency>& into() const { return into_; }
  [[nodiscard]] const std::vector<std::size_t>& first_into() const { return first_into_; }

 private:
  void finish();

  std::vector<Task> tasks_;
  std::vector<Dependency> dependencies_;
  std::vector<int> order_;
  std::vector<Dependency> into_;
  std::vector<std::size_t> first_into_;

  EarlierBatches earlier_;
  std::vector<double> earlier_g_;  // KfacTimes::earlier_g
  int first_forward_ = -1;         // the task
};

}  // namespace paceline::simulator
