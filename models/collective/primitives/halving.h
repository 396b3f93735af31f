// Primitives over powers of two, in which ranks pair up by the bits of their numbers (see
// primitives.h), and those that join two blocks of such ranks.
#pragma once

#include <bit>

#include "models/collective/span.h"

namespace paceline::models {

[[nodiscard]] constexpr int ceil_log2(int value) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(value - 1)));
}

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

// Reduce-scatter by recursive vector halving and distance halving (Thakur 2005, section 3.3), log2 q
// steps, q a power of two: the furthest partner first, and rank r ends with part r.
struct OrderedHalving {
  int ranks = 1;
  bool operator==(const OrderedHalving&) const = default;
};

// The all-gather that undoes OrderedHalving, its steps in reverse (Thakur 2005, section 3.1): the
// nearest partner first, and rank r starts with part r.
struct OrderedDoubling {
  int ranks = 1;
  bool operator==(const OrderedDoubling&) const = default;
};

// All-reduce by exchange of everything, log2 q steps, q a power of two (Thakur 2005, section 4.1):
// in step s, rank r and rank r xor 2^s swap all that they have, and both add it up.
struct RecursiveExchange {
  int ranks = 1;
  bool operator==(const RecursiveExchange&) const = default;
};

// Two blocks that have both done RecursiveHalving: ranks 0..large-1 and, after them, ranks
// large..large+small-1, both powers of two, small < large. One step (Hitchhiker VII): each rank of
// the small block holds what large/small ranks of the large block hold together, and sends each
// of them its piece, to be added.
struct BlockFold {
  int large = 2;
  int small = 1;
  bool operator==(const BlockFold&) const = default;
};

// The way back: the ranks of the large block return the pieces.
struct BlockUnfold {
  int large = 2;
  int small = 1;
  bool operator==(const BlockUnfold&) const = default;
};

namespace detail {
// What rank works on after `step` halvings: bit s of rank chose its half in step s.
template <class T>
[[nodiscard]] constexpr Span<T> halved(Span<T> span, int rank, int step) {
  for (int s = 0; s < step; ++s) span = part(span, (rank >> s) & 1, 2);
  return span;
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const RecursiveHalving& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const RecursiveHalving& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const RecursiveHalving&, int rank, int step, Span<T> span, F&& send) {
  const int other_half = 1 - ((rank >> step) & 1);
  send(rank ^ (1 << step), part(detail::halved(span, rank, step), other_half, 2), true);
}
template <class F>
void for_each_sender(const RecursiveHalving&, int rank, int step, F&& visit) {
  visit(rank ^ (1 << step));
}

[[nodiscard]] constexpr int steps(const RecursiveDoubling& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const RecursiveDoubling& p) {
  return p.ranks;
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

namespace detail {
// The parts of the `count` ranks that the rank is one of; all are powers of two.
template <class T>
[[nodiscard]] constexpr Span<T> aligned_parts(Span<T> span, int rank, int count, int ranks) {
  return part(span, rank / count, ranks / count);
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const OrderedHalving& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const OrderedHalving& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const OrderedHalving& p, int rank, int step, Span<T> span, F&& send) {
  const int distance = p.ranks >> (step + 1);
  const int to = rank ^ distance;
  send(to, detail::aligned_parts(span, to, distance, p.ranks), true);
}
template <class F>
void for_each_sender(const OrderedHalving& p, int rank, int step, F&& visit) {
  visit(rank ^ (p.ranks >> (step + 1)));
}

[[nodiscard]] constexpr int steps(const OrderedDoubling& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const OrderedDoubling& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const OrderedDoubling& p, int rank, int step, Span<T> span, F&& send) {
  const int distance = 1 << step;
  send(rank ^ distance, detail::aligned_parts(span, rank, distance, p.ranks), false);
}
template <class F>
void for_each_sender(const OrderedDoubling& /*p*/, int rank, int step, F&& visit) {
  visit(rank ^ (1 << step));
}

[[nodiscard]] constexpr int steps(const RecursiveExchange& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const RecursiveExchange&) {
  return 1;
}
template <class T, class F>
void for_each_send(const RecursiveExchange&, int rank, int step, Span<T> span, F&& send) {
  send(rank ^ (1 << step), span, true);
}
template <class F>
void for_each_sender(const RecursiveExchange&, int rank, int step, F&& visit) {
  visit(rank ^ (1 << step));
}

[[nodiscard]] constexpr int steps(const BlockFold&) {
  return 1;
}
[[nodiscard]] constexpr int parts(const BlockFold& p) {
  return p.large;
}
template <class T, class F>
void for_each_send(const BlockFold& p, int rank, int /*step*/, Span<T> span, F&& send) {
  if (rank < p.large) return;
  for (int to = rank - p.large; to < p.large; to += p.small)
    send(to, detail::halved(span, to, ceil_log2(p.large)), true);
}
template <class F>
void for_each_sender(const BlockFold& p, int rank, int /*step*/, F&& visit) {
  if (rank < p.large) visit(p.large + rank % p.small);
}

[[nodiscard]] constexpr int steps(const BlockUnfold&) {
  return 1;
}
[[nodiscard]] constexpr int parts(const BlockUnfold& p) {
  return p.large;
}
template <class T, class F>
void for_each_send(const BlockUnfold& p, int rank, int /*step*/, Span<T> span, F&& send) {
  if (rank < p.large)
    send(p.large + rank % p.small, detail::halved(span, rank, ceil_log2(p.large)), false);
}
template <class F>
void for_each_sender(const BlockUnfold& p, int rank, int /*step*/, F&& visit) {
  if (rank < p.large) return;
  for (int from = rank - p.large; from < p.large; from += p.small) visit(from);
}

}  // namespace paceline::models
