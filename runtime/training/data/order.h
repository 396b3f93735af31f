// Which samples a rank reads, and when; loader.h states the rule.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::runtime {

// A permutation of 0 .. samples-1, a function of (seed, epoch): Fisher and Yates, in O(samples).
// 1 <= samples < 2^32.
[[nodiscard]] std::vector<std::uint32_t> shuffled_order(std::int64_t samples, std::uint64_t seed,
                                                        std::int64_t epoch);

// How ranks share a part of the dataset.
struct Sharing {
  std::int64_t samples = 0;
  int rank = 0;
  int ranks = 1;
  int batch = 1;  // of each rank
};

// Positions [begin, end) in the order; empty if the part ended before.
struct Positions {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t count() const { return end - begin; }
  bool operator==(const Positions&) const = default;
};

// Returns the positions of one rank in global batch `number` (from 0).
[[nodiscard]] Positions positions_of(const Sharing& sharing, std::int64_t number);

// Returns how many batches of each rank hold all samples. The last may be short, or empty on some
// ranks.
[[nodiscard]] std::int64_t batches_of_all(const Sharing& sharing);

// Returns how many whole batches each rank has in an epoch of a training set. The samples that are
// left over are dropped.
[[nodiscard]] std::int64_t batches_per_epoch(std::int64_t samples, int ranks, int batch);

}  // namespace paceline::runtime
