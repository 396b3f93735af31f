// The builders of the all-reduce algorithms, one .cc each. Users and strategies reach them
// through the catalogue (catalogue.h).
#pragma once

#include "models/collective/schedule.h"

namespace paceline::models {

// Ring over ranks 0..p-1 in that order: reduce-scatter, then all-gather, 2(p-1) steps. Each
// rank sends 2(p-1)/p of the bucket, the least that any all-reduce can (Patarasuk & Yuan 2009).
//   T = 2(p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma           (Hitchhiker V)
// The cluster's placement decides which neighbours share a node. Throws InputError if p < 1.
[[nodiscard]] Schedule ring_all_reduce(int ranks);
// The two halves of the ring all-reduce by themselves, p-1 steps each.
//   T = (p-1)(alpha + n/p beta + n/p gamma) and (p-1)(alpha + n/p beta)
[[nodiscard]] Schedule ring_reduce_scatter(int ranks);
[[nodiscard]] Schedule ring_all_gather(int ranks);

// Two rings at the same time, one in each direction, each with half of the bucket. On a switch,
// where a rank has one port for both, they take the time of one ring. Where each neighbour has its
// own link, they take half of the ring's beta term.
[[nodiscard]] Schedule bidirectional_ring_all_reduce(int ranks);

// Several rings at the same time, each with an equal part of the bucket, that use no link twice in
// the same direction (Cho 2017, PowerAI DDL): ring i goes in strides 1, -1, 3, -3, ... that have no
// divisor in common with p. With groups of k > 1 (the ranks of a node), the rings go through the
// groups in the same order, and differ inside: each has its own stride, and enters at its own rank.
// rings = 0 means up to default_rings. Throws InputError if k does not divide p, or there are fewer
// strides than rings.
[[nodiscard]] Schedule multi_ring_all_reduce(int ranks, int rings, int group_size);
inline constexpr int default_rings = 4;

// Each rank exchanges all of the bucket with partners at distance 1, 2, 4, ... With q and the fold
// of halving_doubling_all_reduce():
//   T = log2 q (alpha + n beta + n gamma)                            (Thakur 2005, 4.1)
[[nodiscard]] Schedule recursive_doubling_all_reduce(int ranks);

// Recursive halving, then recursive doubling, for any p. With q the largest power of two <= p:
//   T = 2 log2 q alpha + 2 (q-1)/q n beta + (q-1)/q n gamma         (Hitchhiker VI)
// If p != q there is a fold: among the first 2(p-q) ranks, even ones send their bucket to the odd
// neighbour first, and get the result back at the end: + 2 alpha + 2 n beta + n gamma.
// Throws InputError if p < 1.
[[nodiscard]] Schedule halving_doubling_all_reduce(int ranks);

// Halving and doubling in blocks, for any p without idle ranks (Hitchhiker VII). p as a sum of
// powers of two makes blocks (600 = 512 + 64 + 16 + 8), largest first. Each block halves by itself.
// Then the smallest block's pieces go to the next larger block, and so on up, and the sums come
// back the same way. At last each block doubles. It takes 2 log2 q + 2 (blocks - 1) steps, q the
// largest block. Throws InputError if p < 1.
[[nodiscard]] Schedule binary_blocks_all_reduce(int ranks);

// Three phases (Jizhi 4.3): reduce to the first rank of each group of k, ring over the p/k
// masters, broadcast in each group. Reduce and broadcast are chains of k segments, 2(k-1) steps
// each, so that the steps are the paper's 4(k-1) + 2(p/k-1). With m = p/k:
//   T = 4(k-1) (alpha + n/k beta) + 2(k-1) n/k gamma
//     + 2(m-1) (alpha + n/m beta) + (m-1) n/m gamma
// where each of the 2(k-1) steps of the reduce phase is followed by a reduction.
// Throws InputError if p < 1 or k does not divide p; the message lists what divides.
[[nodiscard]] Schedule hierarchical_all_reduce(int ranks, int group_size);

// Reduce-scatter by ring in each group of k, halving-doubling of part j over the members j of all
// groups, all-gather in each group (Goyal 2017, section 3.2).
//   T = 2(k-1)(alpha + n/k beta) + (k-1) n/k gamma + halving-doubling of n/k over p/k
[[nodiscard]] Schedule hierarchical_scatter_all_reduce(int ranks, int group_size);

// What Goyal 2017 does instead for buckets of up to 256 KB: every rank sends its bucket straight to
// the first rank of its group, halving-doubling runs over the first ranks, and results go straight
// back.
//   T = 2 alpha + 2(k-1) n beta + (k-1) n gamma + halving-doubling of n over p/k
[[nodiscard]] Schedule hierarchical_direct_all_reduce(int ranks, int group_size);

// 2D torus of p/k rows of k (Mikami 2018, section 2.2): reduce-scatter along the rows, ring
// all-reduce of n/k along the columns, all-gather along the rows.
//   T = 2(k-1)(alpha + n/k beta) + (k-1) n/k gamma + ring of n/k over p/k
[[nodiscard]] Schedule torus_all_reduce(int ranks, int row_length);

// Half of the bucket goes up one binary tree and down again, and half goes through another tree in
// which leaves and inner ranks have changed places, both in S segments (Sanders 2009; NCCL 2.4,
// trees.cc). Every rank sends and receives at most one segment of each half more than it must, in
// 2 ceil(log2 p) + S - 1 steps.
[[nodiscard]] Schedule double_binary_tree_all_reduce(int ranks, int segments);
inline constexpr int default_tree_segments = 16;
inline constexpr int max_segments = 1 << 16;

// Broadcast down a binomial tree from rank 0 (Thakur 2005), in S segments: ceil(log2 p) + S - 1
// steps.
[[nodiscard]] Schedule binomial_broadcast(int ranks, int segments);

// Push and pull (Li 2014): every rank sends server j part j of s of its bucket, and gets the sum
// back. Server j is rank first_server + floor(j p / s), so servers share the nodes and NICs of
// workers. With s = p it is the all-reduce by direct exchange.
//   T = 2 alpha + 2(p-1) n/s beta + (p-1) n/s gamma
// The incast at the servers is contention, which the engines model. Throws InputError unless
// 1 <= s <= p.
[[nodiscard]] Schedule parameter_server(int ranks, int servers, int first_server);

// Every rank sends its part to the next in a ring (NCCL's sendrecv_perf).
//   T = alpha + n/p beta
[[nodiscard]] Schedule neighbour_exchange(int ranks);

// All-to-all by pairwise exchange: p-1 steps, in each of which a rank sends one block of the p x p
// blocks that make the bucket.
//   T = (p-1)(alpha + n/p^2 beta)                                    (Thakur 2005, 3.4)
[[nodiscard]] Schedule pairwise_all_to_all(int ranks);
// All blocks at once, as NCCL sends them.
//   T = alpha + (p-1)/p^2 n beta
[[nodiscard]] Schedule direct_all_to_all(int ranks);
// Blocks travel by way of other ranks, in ceil(log2 p) steps (Bruck 1997).
//   T = sum over steps s of (alpha + b(s)/p^2 n beta), b(s) the numbers below p that have bit s
[[nodiscard]] Schedule bruck_all_to_all(int ranks);

// Reduce-scatter and all-gather for any p in the fewest steps (Bruck 1997).
//   T = ceil(log2 p) alpha + (p-1)/p n beta + (p-1)/p n gamma, the last in the reduce-scatter alone
[[nodiscard]] Schedule bruck_reduce_scatter(int ranks);
[[nodiscard]] Schedule bruck_all_gather(int ranks);

// Reduce-scatter and all-gather in as few steps, with the fewest bytes to the furthest ranks (Jeaugey
// 2025, PAT): where a fabric is oversubscribed, less goes through it than with Bruck's.
//   T = that of Bruck's
[[nodiscard]] Schedule pat_reduce_scatter(int ranks);
[[nodiscard]] Schedule pat_all_gather(int ranks);

// Reduce-scatter by recursive halving and all-gather by recursive doubling (Thakur 2005, 3.3 and 3.1)
// where p is a power of two; elsewhere Bruck's, which have as many steps.
//   T = that of Bruck's
[[nodiscard]] Schedule halving_reduce_scatter(int ranks);
[[nodiscard]] Schedule doubling_all_gather(int ranks);

// Reduce-scatter by a ring in each group of k, then by rings that each have one rank of every group;
// all-gather the other way round. A rank sends no more than in one ring, and little of it leaves the
// group. Throws InputError if k does not divide p.
//   T = (k + p/k - 2) alpha + (p-1)/p n beta + (p-1)/p n gamma, the last in the reduce-scatter alone
[[nodiscard]] Schedule hierarchical_reduce_scatter(int ranks, int group_size);
[[nodiscard]] Schedule hierarchical_all_gather(int ranks, int group_size);

// For shards of groups: each rank of a group of k neighbours gets the sum over all ranks of its k-th, by a ring in each
// group and then one through the ranks of all groups that have the same part; and the parts of a group are gathered by
// a ring in it (Zhao 2023, arXiv 2304.11277, 3.2.2). With k = p they are the ring's. Throws InputError if k does not
// divide p.
//   T = (k - 1) alpha + (k-1)/k n (beta + gamma), and that of the ring's all-reduce over p/k ranks of n/k
[[nodiscard]] Schedule grouped_reduce_scatter(int ranks, int group_size);
//   T = (k - 1) alpha + (k-1)/k n beta
[[nodiscard]] Schedule grouped_all_gather(int ranks, int group_size);

// Broadcast down a binomial tree of the first ranks of groups of k, then down one in each group, in S
// segments. Throws InputError if k does not divide p.
[[nodiscard]] Schedule hierarchical_broadcast(int ranks, int group_size, int segments);

// Along a chain from rank 0, or towards it, in S segments, as NCCL's rings do.
//   T = (p + S - 2) (alpha + n/S beta + n/S gamma), the last in the reduce alone
[[nodiscard]] Schedule chain_broadcast(int ranks, int segments);
[[nodiscard]] Schedule chain_reduce(int ranks, int segments);

// The two halves of the all-reduce by direct exchange, one step each.
//   T = alpha + (p-1)/p n beta + (p-1)/p n gamma, the last in the reduce-scatter alone
[[nodiscard]] Schedule direct_reduce_scatter(int ranks);
[[nodiscard]] Schedule direct_all_gather(int ranks);

// Up and down a binomial tree whose root is rank 0 (Thakur 2005).
//   reduce, in one segment   T = ceil(log2 p) (alpha + n beta + n gamma)
//   gather, scatter          T = ceil(log2 p) alpha + (p-1)/p n beta
[[nodiscard]] Schedule binomial_reduce(int ranks, int segments);
[[nodiscard]] Schedule binomial_gather(int ranks);
[[nodiscard]] Schedule binomial_scatter(int ranks);

// Throws InputError unless 1 <= servers <= ranks.
void check_server_count(int servers, int ranks);

// Throws InputError that lists the divisors, unless the group size divides the ranks.
void check_divides(int group_size, int ranks);

// The divisor k of p with the fewest steps 4(k-1) + 2(p/k-1), the smaller one of two.
[[nodiscard]] int default_group_size(int ranks);
// The largest divisor k <= sqrt(p) of p: rows are no longer than columns.
[[nodiscard]] int default_row_length(int ranks);

}  // namespace paceline::models
