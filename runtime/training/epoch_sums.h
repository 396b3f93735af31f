// What the iterations of one epoch add up to on a rank, and how a checkpoint keeps it.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "models/base/units.h"

namespace paceline::runtime {

// Since the start of the epoch, over all runs.
struct EpochSums {
  double loss = 0;  // of labels
  double correct = 0;
  double labels = 0;
  Seconds exposed;
  Seconds input;
  Seconds time;  // of the iterations before the last start or resume
  bool operator==(const EpochSums&) const = default;
};

// The sums that each of `ranks` ranks starts from where it goes on from other ranks. It gets an equal part of their
// counts, and the mean of their times.
[[nodiscard]] EpochSums shared_out(std::span<const EpochSums> of_ranks, int ranks);

// The sums of a rank in a checkpoint's array "epoch": each double as the bits of two floats.
inline constexpr std::size_t stored_sums_floats = 12;
[[nodiscard]] std::array<float, stored_sums_floats> stored(const EpochSums& sums);
[[nodiscard]] EpochSums sums_of(std::span<const float, stored_sums_floats> stored);

}  // namespace paceline::runtime
