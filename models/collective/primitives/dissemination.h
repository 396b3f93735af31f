// Primitives in which what a rank holds doubles in each step, over any number of ranks (see
// primitives.h).
#pragma once

#include <algorithm>

#include "models/collective/primitives/exchange.h"
#include "models/collective/primitives/halving.h"
#include "models/collective/primitives/ring.h"
#include "models/collective/span.h"

namespace paceline::models {

// All-gather by dissemination, ceil(log2 q) steps (Bruck 1997; Thakur 2005, section 3.1): in step s, with
// d = 2^s, rank r sends parts r to r + min(d, q - d) - 1 (mod q), which are all that it has or all that is
// left, to rank r - d. Parts stay where they are in the bucket, so that nothing is rotated at the end; those
// beyond part q - 1 are a second message.
struct BruckGather {
  int ranks = 1;
  bool operator==(const BruckGather&) const = default;
};

// The reduce-scatter that undoes it, its steps in reverse: rank r sends what it has of the parts that rank
// r + d sums.
struct BruckScatter {
  int ranks = 1;
  bool operator==(const BruckScatter&) const = default;
};

// All-gather by a binomial tree for each part, all trees at the same time, the furthest ranks first and
// ceil(log2 q) steps (Jeaugey 2025, PAT with all parts aggregated): in step s, with d half the distance
// before it and at first the largest power of two below q, rank r sends rank r - d the parts that it has
// and the other has not: r + o (mod q) for the multiples o of 2d with o + d < q. Few bytes go far, and most
// go to the neighbour. Each part is a message of its own.
struct PatGather {
  int ranks = 1;
  bool operator==(const PatGather&) const = default;
};

// The reduce-scatter that undoes it, its steps in reverse.
struct PatScatter {
  int ranks = 1;
  bool operator==(const PatScatter&) const = default;
};

// All-to-all in ceil(log2 q) steps (Bruck 1997): a block that is to go o ranks on goes 2^s of them in step
// s for each bit s of o. In step s, rank r sends rank r + 2^s the blocks that are at r and have bit s left
// to go. Each block is a message of its own: nothing is packed.
struct BruckAllToAll {
  int ranks = 1;
  bool operator==(const BruckAllToAll&) const = default;
};

// Binomial tree to rank 0, the steps of BinomialReduce (Thakur 2005, section 3): ranks whose lowest set bit
// is 2^s send the 2^s parts from their own on that they have gathered.
struct BinomialGather {
  int ranks = 1;
  bool operator==(const BinomialGather&) const = default;
};

// Binomial tree from rank 0, the steps of BinomialGather in reverse.
struct BinomialScatter {
  int ranks = 1;
  bool operator==(const BinomialScatter&) const = default;
};

namespace detail {
// Parts first to first + count - 1 of `of`, as one span; first + count <= of.
template <class T>
[[nodiscard]] constexpr Span<T> parts_from(Span<T> span, int first, int count, int of) {
  const Span<T> begin = part(span, first, of);
  return {begin.begin, part(span, first + count - 1, of).end() - begin.begin};
}
// The same where parts go on at part 0 behind the last one: visit(span), once or twice.
template <class T, class F>
constexpr void for_each_wrapped(Span<T> span, int first, int count, int of, F&& visit) {
  const int before_end = std::min(count, of - first);
  visit(parts_from(span, first, before_end, of));
  if (before_end < count) visit(parts_from(span, 0, count - before_end, of));
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const BruckGather& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BruckGather& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const BruckGather& p, int rank, int step, Span<T> span, F&& send) {
  const int d = 1 << step;
  const int to = detail::wrapped(rank - d, p.ranks);
  detail::for_each_wrapped(span, rank, std::min(d, p.ranks - d), p.ranks,
                           [&](Span<T> message) { send(to, message, false); });
}
template <class F>
void for_each_sender(const BruckGather& p, int rank, int step, F&& visit) {
  visit(detail::moved_in_ring(rank, 1 << step, p.ranks));
}

[[nodiscard]] constexpr int steps(const BruckScatter& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BruckScatter& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const BruckScatter& p, int rank, int step, Span<T> span, F&& send) {
  const int d = 1 << (steps(p) - 1 - step);
  const int to = detail::moved_in_ring(rank, d, p.ranks);
  detail::for_each_wrapped(span, to, std::min(d, p.ranks - d), p.ranks,
                           [&](Span<T> message) { send(to, message, true); });
}
template <class F>
void for_each_sender(const BruckScatter& p, int rank, int step, F&& visit) {
  visit(detail::wrapped(rank - (1 << (steps(p) - 1 - step)), p.ranks));
}

namespace detail {
// The parts that a rank sends another at a distance: visit(span).
template <class T, class F>
constexpr void for_each_pat_part(Span<T> span, int rank, int distance, int ranks, F&& visit) {
  for (int offset = 0; offset + distance < ranks; offset += 2 * distance)
    visit(part(span, moved_in_ring(rank, offset, ranks), ranks));
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const PatGather& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const PatGather& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const PatGather& p, int rank, int step, Span<T> span, F&& send) {
  const int d = 1 << (steps(p) - 1 - step);
  const int to = detail::wrapped(rank - d, p.ranks);
  detail::for_each_pat_part(span, rank, d, p.ranks,
                            [&](Span<T> message) { send(to, message, false); });
}
template <class F>
void for_each_sender(const PatGather& p, int rank, int step, F&& visit) {
  visit(detail::moved_in_ring(rank, 1 << (steps(p) - 1 - step), p.ranks));
}

[[nodiscard]] constexpr int steps(const PatScatter& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const PatScatter& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const PatScatter& p, int rank, int step, Span<T> span, F&& send) {
  const int d = 1 << step;
  const int to = detail::moved_in_ring(rank, d, p.ranks);
  detail::for_each_pat_part(span, to, d, p.ranks,
                            [&](Span<T> message) { send(to, message, true); });
}
template <class F>
void for_each_sender(const PatScatter& p, int rank, int step, F&& visit) {
  visit(detail::wrapped(rank - (1 << step), p.ranks));
}

[[nodiscard]] constexpr int steps(const BruckAllToAll& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr std::int64_t parts(const BruckAllToAll& p) {
  return std::int64_t{p.ranks} * p.ranks;
}
template <class T, class F>
void for_each_send(const BruckAllToAll& p, int rank, int step, Span<T> span, F&& send) {
  const int bit = 1 << step;
  const int to = detail::moved_in_ring(rank, bit, p.ranks);
  for (int offset = bit; offset < p.ranks; ++offset) {
    if ((offset & bit) == 0) continue;
    const int source = detail::wrapped(rank - (offset & (bit - 1)), p.ranks);
    const int target = detail::moved_in_ring(source, offset, p.ranks);
    send(to, detail::block(span, source, target, p.ranks), false);
  }
}
template <class F>
void for_each_sender(const BruckAllToAll& p, int rank, int step, F&& visit) {
  visit(detail::wrapped(rank - (1 << step), p.ranks));
}

[[nodiscard]] constexpr int steps(const BinomialGather& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BinomialGather& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const BinomialGather& p, int rank, int step, Span<T> span, F&& send) {
  const int bit = 1 << step;
  if ((rank & (2 * bit - 1)) == bit)
    send(rank - bit, detail::parts_from(span, rank, std::min(bit, p.ranks - rank), p.ranks), false);
}
template <class F>
void for_each_sender(const BinomialGather& p, int rank, int step, F&& visit) {
  if (rank + (1 << step) < p.ranks) visit(rank + (1 << step));
}

[[nodiscard]] constexpr int steps(const BinomialScatter& p) {
  return ceil_log2(p.ranks);
}
[[nodiscard]] constexpr int parts(const BinomialScatter& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const BinomialScatter& p, int rank, int step, Span<T> span, F&& send) {
  const int bit = 1 << (steps(p) - 1 - step);
  const int to = rank + bit;
  if ((rank & (2 * bit - 1)) == 0 && to < p.ranks)
    send(to, detail::parts_from(span, to, std::min(bit, p.ranks - to), p.ranks), false);
}
template <class F>
void for_each_sender(const BinomialScatter& p, int rank, int step, F&& visit) {
  const int bit = 1 << (steps(p) - 1 - step);
  if (rank >= bit) visit(rank - bit);
}

}  // namespace paceline::models
