// Casts as values, and tables of many that one kernel does at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/device/memory.h"

namespace paceline::runtime {

// target[i] = source[i], rounded to the target's type: casts, packs and copies between kinds of
// memory. One of the two types is FP32, or both are the same.
struct Cast {
  ConstArrayView source;
  ArrayView target;
};

// Casts whose arrays stay where they are: the tensors of a bucket, and their places in it. All have
// one type of sources and one of targets, and no array overlaps a target. Made once; a device may
// keep a copy of it.
class CastTable {
 public:
  CastTable() = default;
  explicit CastTable(std::vector<Cast> casts);

  // Tables with one identity are copies of each other. It expires with the last of them.
  [[nodiscard]] std::weak_ptr<const void> identity() const { return identity_; }
  [[nodiscard]] std::span<const Cast> casts() const { return casts_; }
  // FP32 where there are no casts.
  [[nodiscard]] NumberType source_type() const;
  [[nodiscard]] NumberType target_type() const;

 private:
  std::shared_ptr<const void> identity_;
  std::vector<Cast> casts_;
};

}  // namespace paceline::runtime
