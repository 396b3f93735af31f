// Primitives in which every rank talks to its neighbours in a ring (see primitives.h).
#pragma once

#include <cstdint>

#include "models/collective/span.h"

namespace paceline::models {

// Ring reduce-scatter (Patarasuk & Yuan 2009): in step s, rank r sends part (r - s - 1) mod q to rank
// r + 1. Rank r ends with part r of q, reduced over all ranks of its ring. There are q - 1 steps.
//
// With `rings` k > 1, a divisor of q, there are k rings beside each other: rank r sends part
// (r - (s + 1) k) mod q to rank r + k, and ends with part r, reduced over every k-th rank. That is
// the part of a hierarchy that goes across groups of k. With `rows` m > 1 the span is a matrix of m
// rows, and part i is column i: a part of each row.
struct RingReduceScatter {
  int ranks = 1;
  int rings = 1;
  int rows = 1;
  bool operator==(const RingReduceScatter&) const = default;
};

// Ring all-gather: in step s, rank r sends part (r - s) mod q to rank r + 1. Rank r starts with part
// r. Rings and rows are those of RingReduceScatter: rank r sends part (r - s k) mod q to rank r + k.
struct RingAllGather {
  int ranks = 1;
  int rings = 1;
  int rows = 1;
  bool operator==(const RingAllGather&) const = default;
};

// The exchange with neighbours in a ring, one step: rank r sends part r of q to rank r + 1.
struct RingShift {
  int ranks = 1;
  bool operator==(const RingShift&) const = default;
};

namespace detail {
[[nodiscard]] constexpr int wrapped(int index, int ranks) {
  return index < 0 ? index + ranks : index;
}
[[nodiscard]] constexpr int moved_in_ring(int rank, int by, int ranks) {
  return (rank + by) % ranks;
}
// The part of a primitive with rows, as one span for each row: visit(span).
template <class Ring, class T, class F>
constexpr void for_each_row(const Ring& p, Span<T> span, int index, F&& visit) {
  for (int row = 0; row < p.rows; ++row)
    visit(part(span, std::int64_t{row} * p.ranks + wrapped(index, p.ranks),
               std::int64_t{p.ranks} * p.rows));
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const RingReduceScatter& p) {
  return p.ranks / p.rings - 1;
}
[[nodiscard]] constexpr std::int64_t parts(const RingReduceScatter& p) {
  return std::int64_t{p.ranks} * p.rows;
}
[[nodiscard]] constexpr int repeats(const RingReduceScatter& p, int step) {
  return steps(p) - step;
}
template <class T, class F>
void for_each_send(const RingReduceScatter& p, int rank, int step, Span<T> span, F&& send) {
  const int to = detail::moved_in_ring(rank, p.rings, p.ranks);
  detail::for_each_row(p, span, rank - (step + 1) * p.rings,
                       [&](Span<T> message) { send(to, message, true); });
}
template <class F>
void for_each_sender(const RingReduceScatter& p, int rank, int /*step*/, F&& visit) {
  visit(detail::wrapped(rank - p.rings, p.ranks));
}

[[nodiscard]] constexpr int steps(const RingAllGather& p) {
  return p.ranks / p.rings - 1;
}
[[nodiscard]] constexpr std::int64_t parts(const RingAllGather& p) {
  return std::int64_t{p.ranks} * p.rows;
}
[[nodiscard]] constexpr int repeats(const RingAllGather& p, int step) {
  return steps(p) - step;
}
template <class T, class F>
void for_each_send(const RingAllGather& p, int rank, int step, Span<T> span, F&& send) {
  const int to = detail::moved_in_ring(rank, p.rings, p.ranks);
  detail::for_each_row(p, span, rank - step * p.rings,
                       [&](Span<T> message) { send(to, message, false); });
}
template <class F>
void for_each_sender(const RingAllGather& p, int rank, int /*step*/, F&& visit) {
  visit(detail::wrapped(rank - p.rings, p.ranks));
}

[[nodiscard]] constexpr int steps(const RingShift& p) {
  return p.ranks > 1 ? 1 : 0;
}
[[nodiscard]] constexpr int parts(const RingShift& p) {
  return p.ranks;
}
template <class T, class F>
void for_each_send(const RingShift& p, int rank, int /*step*/, Span<T> span, F&& send) {
  send(detail::moved_in_ring(rank, 1, p.ranks), part(span, rank, p.ranks), false);
}
template <class F>
void for_each_sender(const RingShift& p, int rank, int /*step*/, F&& visit) {
  visit(detail::wrapped(rank - 1, p.ranks));
}

}  // namespace paceline::models
