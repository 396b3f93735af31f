// Primitives in which every rank talks to its neighbours in a ring (see primitives.h).
#pragma once

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

namespace detail {
[[nodiscard]] constexpr int next_in_ring(int rank, int ranks) {
  return rank + 1 == ranks ? 0 : rank + 1;
}
[[nodiscard]] constexpr int previous_in_ring(int rank, int ranks) {
  return rank == 0 ? ranks - 1 : rank - 1;
}
[[nodiscard]] constexpr int wrapped(int index, int ranks) {
  return index < 0 ? index + ranks : index;
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const RingReduceScatter& p) {
  return p.ranks - 1;
}
[[nodiscard]] constexpr int parts(const RingReduceScatter& p) {
  return p.ranks;
}
[[nodiscard]] constexpr int repeats(const RingReduceScatter& p, int step) {
  return p.ranks - 1 - step;
}
template <class T, class F>
void for_each_send(const RingReduceScatter& p, int rank, int step, Span<T> span, F&& send) {
  send(detail::next_in_ring(rank, p.ranks),
       part(span, detail::wrapped(rank - step - 1, p.ranks), p.ranks), true);
}
template <class F>
void for_each_sender(const RingReduceScatter& p, int rank, int /*step*/, F&& visit) {
  visit(detail::previous_in_ring(rank, p.ranks));
}

[[nodiscard]] constexpr int steps(const RingAllGather& p) {
  return p.ranks - 1;
}
[[nodiscard]] constexpr int parts(const RingAllGather& p) {
  return p.ranks;
}
[[nodiscard]] constexpr int repeats(const RingAllGather& p, int step) {
  return p.ranks - 1 - step;
}
template <class T, class F>
void for_each_send(const RingAllGather& p, int rank, int step, Span<T> span, F&& send) {
  send(detail::next_in_ring(rank, p.ranks),
       part(span, detail::wrapped(rank - step, p.ranks), p.ranks), false);
}
template <class F>
void for_each_sender(const RingAllGather& p, int rank, int /*step*/, F&& visit) {
  visit(detail::previous_in_ring(rank, p.ranks));
}

}  // namespace paceline::models
