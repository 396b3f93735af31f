// The primitives that every schedule is built of: who sends which part of the bucket to whom
// in which step. They are the only place where that is written.
//
// A primitive over q ranks is a plain value. Three functions describe it:
//   steps(p)                          how many steps it takes;
//   for_each_send(p, rank, step, span, send)   calls send(to, part of span, reduce) for each
//                                     message that `rank` sends in `step`;
//   for_each_sender(p, rank, step, visit)      calls visit(from) for each rank that may send
//                                     to `rank` in `step` (a superset is fine).
// A message with `reduce` is added to what the receiver holds; without, it replaces it. A send
// reads what the rank held before the step.
//
// Steps with the same senders, receivers and sizes as the step before need not be enumerated
// one by one: repeats(p, step) counts how many steps from `step` on look alike (at least 1).
#pragma once

#include <algorithm>
#include <bit>

#include "models/collective/span.h"

namespace paceline::models {

// Ring reduce-scatter, q - 1 steps (Patarasuk & Yuan 2009): in step s, rank r sends part
// (r - s - 1) mod q to rank r + 1. Rank r ends with part r of q, reduced over all ranks.
struct RingReduceScatter {
  int ranks = 1;
  bool operator==(const RingReduceScatter&) const = default;
};

// Ring all-gather, q - 1 steps: in step s, rank r sends part (r - s) mod q to rank r + 1.
// Rank r starts with part r.
struct RingAllGather {
  int ranks = 1;
  bool operator==(const RingAllGather&) const = default;
};

// Reduce-scatter by recursive vector halving and distance doubling (Hitchhiker VI, Rabenseifner
// 2004), log2 q steps, q a power of two: in step s, rank r exchanges half of what it works on
// with rank r xor 2^s, and keeps the lower half if bit s of r is 0. The largest messages go
// to the nearest rank. Rank r ends with the part whose index has the bits of r reversed.
struct RecursiveHalving {
  int ranks = 1;
  bool operator==(const RecursiveHalving&) const = default;
};

// The all-gather that undoes RecursiveHalving, its steps in reverse.
struct RecursiveDoubling {
  int ranks = 1;
  bool operator==(const RecursiveDoubling&) const = default;
};

// Pipelined chain to rank 0, q - 1 + segments - 1 steps: segment t travels from rank q - 1 down
// to rank 0, one rank a step, and is reduced on the way; segment t + 1 follows one step behind.
struct ChainReduce {
  int ranks = 1;
  int segments = 1;
  bool operator==(const ChainReduce&) const = default;
};

// Pipelined chain from rank 0 up to rank q - 1, q - 1 + segments - 1 steps.
struct ChainBroadcast {
  int ranks = 1;
  int segments = 1;
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

// Direct exchange, one step: every rank sends part j to rank j. Rank r ends with part r, reduced.
struct DirectReduceScatter {
  int ranks = 1;
  bool operator==(const DirectReduceScatter&) const = default;
};

// Direct exchange, one step: every rank r sends part r to every other rank.
struct DirectAllGather {
  int ranks = 1;
  bool operator==(const DirectAllGather&) const = default;
};

// One message of all that is worked on, one step.
struct PointToPoint {
  int ranks = 2;
  int from = 0;
  int to = 1;
  bool reduce = false;
  bool operator==(const PointToPoint&) const = default;
};

[[nodiscard]] constexpr int ceil_log2(int value) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(value - 1)));
}

[[nodiscard]] constexpr int steps(const RingReduceScatter& p) {
  return p.ranks - 1;
}
[[nodiscard]] constexpr int steps(const RingAllGather& p) {
  return p.ranks - 1;
}
[[nodiscard]] constexpr int steps(const RecursiveHalving& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int steps(const RecursiveDoubling& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int steps(const ChainReduce& p) {
  return p.ranks == 1 ? 0 : p.ranks + p.segments - 2;
}
[[nodiscard]] constexpr int steps(const ChainBroadcast& p) {
  return p.ranks == 1 ? 0 : p.ranks + p.segments - 2;
}
[[nodiscard]] constexpr int steps(const BinomialReduce& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int steps(const BinomialBroadcast& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int steps(const DirectReduceScatter& p) {
  return p.ranks > 1 ? 1 : 0;
}
[[nodiscard]] constexpr int steps(const DirectAllGather& p) {
  return p.ranks > 1 ? 1 : 0;
}
[[nodiscard]] constexpr int steps(const PointToPoint&) {
  return 1;
}

// How many parts of equal size a primitive cuts its span into; 1 if it never cuts.
[[nodiscard]] constexpr int parts(const ChainReduce& p) {
  return p.segments;
}
[[nodiscard]] constexpr int parts(const ChainBroadcast& p) {
  return p.segments;
}
[[nodiscard]] constexpr int parts(const BinomialReduce&) {
  return 1;
}
[[nodiscard]] constexpr int parts(const BinomialBroadcast&) {
  return 1;
}
[[nodiscard]] constexpr int parts(const PointToPoint&) {
  return 1;
}
template <class Primitive>
[[nodiscard]] constexpr int parts(const Primitive& p) {
  return p.ranks;
}

[[nodiscard]] constexpr int repeats(const RingReduceScatter& p, int step) {
  return p.ranks - 1 - step;
}
[[nodiscard]] constexpr int repeats(const RingAllGather& p, int step) {
  return p.ranks - 1 - step;
}
namespace detail {
// Every link of a chain is busy from step q - 2 to step segments - 1.
[[nodiscard]] constexpr int chain_repeats(int ranks, int segments, int step) {
  return step >= ranks - 2 && step < segments ? segments - step : 1;
}
}  // namespace detail
[[nodiscard]] constexpr int repeats(const ChainReduce& p, int step) {
  return detail::chain_repeats(p.ranks, p.segments, step);
}
[[nodiscard]] constexpr int repeats(const ChainBroadcast& p, int step) {
  return detail::chain_repeats(p.ranks, p.segments, step);
}
template <class Primitive>
[[nodiscard]] constexpr int repeats(const Primitive&, int) {
  return 1;
}

template <class T, class F>
void for_each_send(const RingReduceScatter& p, int rank, int step, Span<T> span, F&& send) {
  const int index = rank - step - 1;
  const int to = rank + 1 == p.ranks ? 0 : rank + 1;
  send(to, part(span, index < 0 ? index + p.ranks : index, p.ranks), true);
}
template <class F>
void for_each_sender(const RingReduceScatter& p, int rank, int /*step*/, F&& visit) {
  visit(rank == 0 ? p.ranks - 1 : rank - 1);
}

template <class T, class F>
void for_each_send(const RingAllGather& p, int rank, int step, Span<T> span, F&& send) {
  const int index = rank - step;
  const int to = rank + 1 == p.ranks ? 0 : rank + 1;
  send(to, part(span, index < 0 ? index + p.ranks : index, p.ranks), false);
}
template <class F>
void for_each_sender(const RingAllGather& p, int rank, int /*step*/, F&& visit) {
  visit(rank == 0 ? p.ranks - 1 : rank - 1);
}

namespace detail {
// What rank works on after `step` halvings: bit s of rank chose its half in step s.
template <class T>
[[nodiscard]] constexpr Span<T> halved(Span<T> span, int rank, int step) {
  for (int s = 0; s < step; ++s) span = part(span, (rank >> s) & 1, 2);
  return span;
}
}  // namespace detail

template <class T, class F>
void for_each_send(const RecursiveHalving&, int rank, int step, Span<T> span, F&& send) {
  const int other_half = 1 - ((rank >> step) & 1);
  send(rank ^ (1 << step), part(detail::halved(span, rank, step), other_half, 2), true);
}
template <class F>
void for_each_sender(const RecursiveHalving&, int rank, int step, F&& visit) {
  visit(rank ^ (1 << step));
}

template <class T, class F>
void for_each_send(const RecursiveDoubling& p, int rank, int step, Span<T> span, F&& send) {
  const int bit = steps(p) - 1 - step;
  send(rank ^ (1 << bit), detail::halved(span, rank, bit + 1), false);
}
template <class F>
void for_each_sender(const RecursiveDoubling& p, int rank, int step, F&& visit) {
  visit(rank ^ (1 << (steps(p) - 1 - step)));
}

template <class T, class F>
void for_each_send(const ChainReduce& p, int rank, int step, Span<T> span, F&& send) {
  const int segment = step - (p.ranks - 1 - rank);
  if (rank > 0 && segment >= 0 && segment < p.segments)
    send(rank - 1, part(span, segment, p.segments), true);
}
template <class F>
void for_each_sender(const ChainReduce& p, int rank, int /*step*/, F&& visit) {
  if (rank + 1 < p.ranks) visit(rank + 1);
}

template <class T, class F>
void for_each_send(const ChainBroadcast& p, int rank, int step, Span<T> span, F&& send) {
  const int segment = step - rank;
  if (rank + 1 < p.ranks && segment >= 0 && segment < p.segments)
    send(rank + 1, part(span, segment, p.segments), false);
}
template <class F>
void for_each_sender(const ChainBroadcast&, int rank, int /*step*/, F&& visit) {
  if (rank > 0) visit(rank - 1);
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

template <class T, class F>
void for_each_send(const DirectReduceScatter& p, int rank, int /*step*/, Span<T> span, F&& send) {
  for (int to = 0; to < p.ranks; ++to) {
    if (to != rank) send(to, part(span, to, p.ranks), true);
  }
}
template <class F>
void for_each_sender(const DirectReduceScatter& p, int rank, int /*step*/, F&& visit) {
  for (int from = 0; from < p.ranks; ++from) {
    if (from != rank) visit(from);
  }
}

template <class T, class F>
void for_each_send(const DirectAllGather& p, int rank, int /*step*/, Span<T> span, F&& send) {
  for (int to = 0; to < p.ranks; ++to) {
    if (to != rank) send(to, part(span, rank, p.ranks), false);
  }
}
template <class F>
void for_each_sender(const DirectAllGather& p, int rank, int /*step*/, F&& visit) {
  for (int from = 0; from < p.ranks; ++from) {
    if (from != rank) visit(from);
  }
}

template <class T, class F>
void for_each_send(const PointToPoint& p, int rank, int /*step*/, Span<T> span, F&& send) {
  if (rank == p.from) send(p.to, span, p.reduce);
}
template <class F>
void for_each_sender(const PointToPoint& p, int rank, int /*step*/, F&& visit) {
  if (rank == p.to) visit(p.from);
}

}  // namespace paceline::models
