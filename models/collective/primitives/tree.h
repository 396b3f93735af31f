// Primitives along chains and trees, and single messages (see primitives.h). None of them cuts what
// it works on: pipelined() (combinators.h) does.
#pragma once

#include <bit>

#include "models/collective/primitives/halving.h"
#include "models/collective/span.h"

namespace paceline::models {

// Chain to rank 0, q - 1 steps: all travels from rank q - 1 down to rank 0, one rank a step,
// and is reduced on the way.
struct ChainReduce {
  int ranks = 1;
  bool operator==(const ChainReduce&) const = default;
};

// Chain from rank 0 up to rank q - 1, q - 1 steps.
struct ChainBroadcast {
  int ranks = 1;
  bool operator==(const ChainBroadcast&) const = default;
};

// Binomial tree to rank 0, ceil(log2 q) steps (Thakur 2005, section 4): in step s, ranks whose
// lowest set bit is 2^s send all they have to the rank without that bit.
struct BinomialReduce {
  int ranks = 1;
  bool operator==(const BinomialReduce&) const = default;
};

// Binomial tree from rank 0, the steps of BinomialReduce in reverse.
struct BinomialBroadcast {
  int ranks = 1;
  bool operator==(const BinomialBroadcast&) const = default;
};

// Binary tree to rank 0, ceil(log2 q) steps (NCCL, src/graph/trees.cc): ranks alternate between
// leaves (the odd ones) and inner nodes, and a rank whose lowest set bit is 2^s is on level s. No
// rank but the root has one child only for long, none has more than two.
struct BinaryTreeReduce {
  int ranks = 1;
  bool operator==(const BinaryTreeReduce&) const = default;
};

// Binary tree from rank 0, the steps of BinaryTreeReduce in reverse.
struct BinaryTreeBroadcast {
  int ranks = 1;
  bool operator==(const BinaryTreeBroadcast&) const = default;
};

// One message of all that is worked on, one step.
struct PointToPoint {
  int ranks = 2;
  int from = 0;
  int to = 1;
  bool reduce = false;
  bool operator==(const PointToPoint&) const = default;
};

namespace detail {
// The parent of a rank other than 0 in the binary tree of NCCL.
[[nodiscard]] constexpr int binary_tree_parent(int rank, int ranks) {
  const int bit = rank & -rank;
  const int right = (rank ^ bit) | (bit << 1);
  return right < ranks ? right : rank ^ bit;
}
[[nodiscard]] constexpr int binary_tree_level(int rank) {
  return std::countr_zero(static_cast<unsigned>(rank));
}
// Calls visit(child) for the children of `rank` on `level`: at most two, one on each side.
template <class F>
constexpr void for_each_child(int rank, int ranks, int level, F&& visit) {
  for (const int child : {rank - (1 << level), rank + (1 << level)}) {
    if (child > 0 && child < ranks && binary_tree_level(child) == level &&
        binary_tree_parent(child, ranks) == rank)
      visit(child);
  }
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const ChainReduce& p) {
  return p.ranks - 1;
}
[[nodiscard]] constexpr int parts(const ChainReduce&) {
  return 1;
}
template <class T, class F>
void for_each_send(const ChainReduce& p, int rank, int step, Span<T> span, F&& send) {
  if (rank > 0 && rank == p.ranks - 1 - step) send(rank - 1, span, true);
}
template <class F>
void for_each_sender(const ChainReduce& p, int rank, int /*step*/, F&& visit) {
  if (rank + 1 < p.ranks) visit(rank + 1);
}

[[nodiscard]] constexpr int steps(const ChainBroadcast& p) {
  return p.ranks - 1;
}
[[nodiscard]] constexpr int parts(const ChainBroadcast&) {
  return 1;
}
template <class T, class F>
void for_each_send(const ChainBroadcast& p, int rank, int step, Span<T> span, F&& send) {
  if (rank + 1 < p.ranks && rank == step) send(rank + 1, span, false);
}
template <class F>
void for_each_sender(const ChainBroadcast&, int rank, int /*step*/, F&& visit) {
  if (rank > 0) visit(rank - 1);
}

[[nodiscard]] constexpr int steps(const BinomialReduce& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BinomialReduce&) {
  return 1;
}
template <class T, class F>
void for_each_send(const BinomialReduce&, int rank, int step, Span<T> span, F&& send) {
  const int bit = 1 << step;
  if ((rank & (2 * bit - 1)) == bit) send(rank - bit, span, true);
}
template <class F>
void for_each_sender(const BinomialReduce& p, int rank, int step, F&& visit) {
  if (rank + (1 << step) < p.ranks) visit(rank + (1 << step));
}

[[nodiscard]] constexpr int steps(const BinomialBroadcast& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BinomialBroadcast&) {
  return 1;
}
template <class T, class F>
void for_each_send(const BinomialBroadcast& p, int rank, int step, Span<T> span, F&& send) {
  const int bit = 1 << (steps(p) - 1 - step);
  if ((rank & (2 * bit - 1)) == 0 && rank + bit < p.ranks) send(rank + bit, span, false);
}
template <class F>
void for_each_sender(const BinomialBroadcast& p, int rank, int step, F&& visit) {
  const int bit = 1 << (steps(p) - 1 - step);
  if (rank >= bit) visit(rank - bit);
}

[[nodiscard]] constexpr int steps(const BinaryTreeReduce& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BinaryTreeReduce&) {
  return 1;
}
template <class T, class F>
void for_each_send(const BinaryTreeReduce& p, int rank, int step, Span<T> span, F&& send) {
  if (rank > 0 && detail::binary_tree_level(rank) == step)
    send(detail::binary_tree_parent(rank, p.ranks), span, true);
}
template <class F>
void for_each_sender(const BinaryTreeReduce& p, int rank, int step, F&& visit) {
  detail::for_each_child(rank, p.ranks, step, visit);
}

[[nodiscard]] constexpr int steps(const BinaryTreeBroadcast& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BinaryTreeBroadcast&) {
  return 1;
}
template <class T, class F>
void for_each_send(const BinaryTreeBroadcast& p, int rank, int step, Span<T> span, F&& send) {
  detail::for_each_child(rank, p.ranks, steps(p) - 1 - step,
                         [&](int child) { send(child, span, false); });
}
template <class F>
void for_each_sender(const BinaryTreeBroadcast& p, int rank, int step, F&& visit) {
  if (rank > 0 && detail::binary_tree_level(rank) == steps(p) - 1 - step)
    visit(detail::binary_tree_parent(rank, p.ranks));
}

[[nodiscard]] constexpr int steps(const PointToPoint&) {
  return 1;
}
[[nodiscard]] constexpr int parts(const PointToPoint&) {
  return 1;
}
template <class T, class F>
void for_each_send(const PointToPoint& p, int rank, int /*step*/, Span<T> span, F&& send) {
  if (rank == p.from) send(p.to, span, p.reduce);
}
template <class F>
void for_each_sender(const PointToPoint& p, int rank, int /*step*/, F&& visit) {
  if (rank == p.to) visit(p.from);
}

// All messages of a step (primitives.h), from the ranks that send in it alone.
template <class T, class F>
void for_each_message(const ChainReduce& p, int step, Span<T> span, F&& send) {
  const int rank = p.ranks - 1 - step;
  if (rank > 0) send(rank, rank - 1, span, true);
}
template <class T, class F>
void for_each_message(const ChainBroadcast& p, int step, Span<T> span, F&& send) {
  if (step + 1 < p.ranks) send(step, step + 1, span, false);
}
template <class T, class F>
void for_each_message(const BinomialReduce& p, int step, Span<T> span, F&& send) {
  const int bit = 1 << step;
  for (int rank = bit; rank < p.ranks; rank += 2 * bit) send(rank, rank - bit, span, true);
}
template <class T, class F>
void for_each_message(const BinomialBroadcast& p, int step, Span<T> span, F&& send) {
  const int bit = 1 << (steps(p) - 1 - step);
  for (int rank = 0; rank + bit < p.ranks; rank += 2 * bit) send(rank, rank + bit, span, false);
}
template <class T, class F>
void for_each_message(const BinaryTreeReduce& p, int step, Span<T> span, F&& send) {
  const int bit = 1 << step;
  for (int rank = bit; rank < p.ranks; rank += 2 * bit)
    send(rank, detail::binary_tree_parent(rank, p.ranks), span, true);
}
// Parents are in the order of their children.
template <class T, class F>
void for_each_message(const BinaryTreeBroadcast& p, int step, Span<T> span, F&& send) {
  const int bit = 1 << (steps(p) - 1 - step);
  for (int child = bit; child < p.ranks; child += 2 * bit)
    send(detail::binary_tree_parent(child, p.ranks), child, span, false);
}
template <class T, class F>
void for_each_message(const PointToPoint& p, int /*step*/, Span<T> span, F&& send) {
  send(p.from, p.to, span, p.reduce);
}

}  // namespace paceline::models
