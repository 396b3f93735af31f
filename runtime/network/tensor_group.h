// The ranks that share the tensors of one network out, as its layers see them (models/layout/tensor_part.h).
#pragma once

#include "models/layout/tensor_part.h"
#include "runtime/device/memory.h"

namespace paceline::runtime {

class TensorGroup {
 public:
  TensorGroup() = default;
  TensorGroup(const TensorGroup&) = delete;
  TensorGroup& operator=(const TensorGroup&) = delete;
  virtual ~TensorGroup() = default;

  // Replaces the values by their sums over the ranks, with the same bits on all of them. The ranks call it in the same
  // order, each with as many values of one type. Throws RunError that names a rank that is gone.
  virtual void sum(const ArrayView& values) = 0;
};

// A rank's part of a network, and the group that it is in. Both outlive the network that computes it.
struct TensorShare {
  const models::TensorPart& part;
  TensorGroup& group;
};

}  // namespace paceline::runtime
