// Primitives in which what a rank holds doubles in each step, over any number of ranks (see
// primitives.h).
#pragma once

#include <algorithm>

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
[[nodiscard]] constexpr int moved_in_ring(int rank, int by, int ranks) {
  return (rank + by) % ranks;
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
