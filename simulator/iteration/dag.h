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
// (models/plan/dispatch.h), it also waits for the bucket whose end leaves room for it. A pull that is asked
// for waits for the pushes that were queued before its request (server_cost.h). Where servers
// hand nothing back before all buckets are summed, the update waits for these, and a layer's next
// forward pass for its own parameters, which come in forward order; or for all, where they come in no
// order.
//
// K-FAC (models/plan/k_fac.h) has five stages and an update:
//   1  forward, with the factor A of each layer after its forward pass
//   2  backward, with the factor G of each layer before its backward pass. A is scattered beside it
//   3  the reduce-scatter of G and gradients after the backward pass; without overlap also of A
//   4  the owner inverts the factors of its layers and preconditions their gradients
//   5  the all-gather of the preconditioned gradients, for which the update waits
// Stage 4 is that of the owner that takes longest.
#pragma once

#include <optional>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"
#include "simulator/cost/k_fac_cost.h"
#include "simulator/cost/server_cost.h"
#include "simulator/iteration/task.h"

namespace paceline::simulator {

// The time of each part of a bucket's way. A part that takes no time is no task.
struct BucketTimes {
  Seconds cast;
  Seconds pack;
  Seconds all_reduce;
  Seconds unpack;
  Seconds wait = {};         // ahead of all else, beside whatever else travels
  Seconds negotiation = {};  // next; the bucket has its stream from here on
  // Take the place of all_reduce where servers of another system sum (server_cost.h). Each lane is a
  // stream of its own.
  std::vector<ServedPhase> served = {};
  // Takes the place of everything else where the plan is one of K-FAC.
  std::optional<KfacTimes> k_fac = {};

  // While the bucket has its stream.
  [[nodiscard]] Seconds total() const { return negotiation + cast + pack + all_reduce + unpack; }
};

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
  int add(TaskKind kind, Resource resource, int index, Seconds duration);
  void depend(int from, int to, int lag = 0);
  int add_input(const InputTimes& input);
  void add_passes(const ComputeTimes& compute, const KfacTimes* k_fac);
  int add_packed(const PackedCollective& collective, TaskKind kind, int ready);
  void add_k_fac(const KfacTimes& times);
  void add_communication(const models::NetworkWork& network, const models::Plan& plan,
                         const std::vector<BucketTimes>& buckets, const ComputeTimes& compute);
  int add_served(const models::Plan& plan, const std::vector<ServedPhase>& phases, int bucket,
                 int ready, std::size_t position);
  void add_requests(const models::NetworkWork& network, const models::Plan& plan,
                    const std::vector<BucketTimes>& buckets, const ComputeTimes& compute,
                    const std::vector<int>& order);
  void add_after_all(const models::NetworkWork& network, const models::Plan& plan,
                     const std::vector<BucketTimes>& buckets);
  int add_bucket_update(const models::NetworkWork& network, const models::Bucket& bucket, int index,
                        int delivered, Seconds whole_update);
  void add_update(const models::Plan& plan, const ComputeTimes& compute);
  void add_resource_order();
  void finish();

  std::vector<Task> tasks_;
  std::vector<Dependency> dependencies_;
  std::vector<int> order_;
  std::vector<Dependency> into_;
  std::vector<std::size_t> first_into_;

  EarlierBatches earlier_;
  std::vector<double> earlier_g_;  // KfacTimes::earlier_g

  std::vector<int> forward_;    // task of each layer
  std::vector<int> backward_;   // task of each layer
  int after_forward_ = -1;      // the last task of the forward pass, with its factors
  std::vector<int> delivered_;  // last task of each bucket that the update waits for
  // For each bucket that is asked for (server_cost.h), in the order in which they travel, this has
  // the task of the worker's push, or -1, and the tasks of its pull.
  std::vector<int> pushes_;
  std::vector<std::vector<int>> pulls_;
};

}  // namespace paceline::simulator
