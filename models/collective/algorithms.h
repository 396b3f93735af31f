// The builders of the all-reduce algorithms, one .cc each. Users and strategies reach them
// through the catalogue (all_reduce.h).
#pragma once

#include "models/collective/schedule.h"

namespace paceline::models {

// Ring over ranks 0..p-1 in that order: reduce-scatter, then all-gather, 2(p-1) steps. Each
// rank sends 2(p-1)/p of the bucket, the least that any all-reduce can (Patarasuk & Yuan 2009).
//   T = 2(p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma           (Hitchhiker V)
// The cluster's placement decides which neighbours share a node. Throws InputError if p < 1.
[[nodiscard]] Schedule ring_all_reduce(int ranks);

// Recursive halving, then recursive doubling; for any p. With q the largest power of two <= p:
//   T = 2 log2 q alpha + 2 (q-1)/q n beta + (q-1)/q n gamma         (Hitchhiker VI)
// and for p != q the fold: of the first 2(p-q) ranks, even ones send their bucket to the odd
// neighbour before, and get the result back after: + 2 alpha + 2 n beta + n gamma.
// Throws InputError if p < 1.
[[nodiscard]] Schedule halving_doubling_all_reduce(int ranks);

// Three phases (Jizhi 4.3): reduce to the first rank of each group of k, ring over the p/k
// masters, broadcast in each group. Reduce and broadcast are chains of k segments, 2(k-1) steps
// each, so that the steps are the paper's 4(k-1) + 2(p/k-1). With m = p/k:
//   T = 4(k-1) (alpha + n/k beta) + 2(k-1) n/k gamma
//     + 2(m-1) (alpha + n/m beta) + (m-1) n/m gamma
// where each of the 2(k-1) steps of the reduce phase is followed by a reduction.
// Throws InputError if p < 1 or k does not divide p; the message lists what divides.
[[nodiscard]] Schedule hierarchical_all_reduce(int ranks, int group_size);

// The k that divides p with the fewest steps 4(k-1) + 2(p/k-1); the smaller of two equals.
[[nodiscard]] int default_group_size(int ranks);

}  // namespace paceline::models
