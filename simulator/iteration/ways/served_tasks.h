// The tasks of buckets that servers of another system sum (server_cost.h), in the place of an all-reduce.
//
// Each phase of a bucket occupies lanes, which are streams. A pull that is asked for waits for the pushes
// that were queued before its request. Where servers hand nothing back before all buckets are summed, the
// update waits for these, and a layer's next forward pass for its own parameters, which come in forward
// order; or for all, where they come in no order.
#pragma once

#include <vector>

#include "simulator/iteration/dag_builder.h"

namespace paceline::simulator {

class ServedTasks {
 public:
  // `order` is that in which buckets travel. Keeps references to both.
  ServedTasks(DagBuilder& dag, const std::vector<int>& order);

  // Adds the phases of the bucket at this place of the order, up to one that is after all buckets.
  // Returns the task at whose end they are done.
  int add(std::size_t position, int ready);
  // Adds what all buckets together make, once each is in dag.delivered.
  void finish();

 private:
  void add_requests();
  void add_after_all();

  DagBuilder& dag_;
  const std::vector<int>& order_;
  // For each bucket that is asked for, in the order in which they travel, the task of the worker's
  // push, or -1, and the tasks of its pull.
  std::vector<int> pushes_;
  std::vector<std::vector<int>> pulls_;
};

}  // namespace paceline::simulator
