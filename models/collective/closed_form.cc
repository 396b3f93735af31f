// Tests: tests/simulator/cost_test.cc, tests/agreement/engine_agreement_test.cc.
#include "models/collective/closed_form.h"

#include <bit>

#include "models/collective/primitives/halving.h"

namespace paceline::models {
namespace {

int floor_power(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

// A rank sends all of its bucket to a neighbour, and gets the result back.
ClosedForm fold_form(int ranks) {
  return floor_power(ranks) == ranks ? ClosedForm{} : ClosedForm{2, 2, 1};
}

// Reduce-scatter and all-gather around rings of k, with another form on 1/k of the bucket between.
ClosedForm scattered_form(int size, const ClosedForm& across) {
  return half_ring_form(size, true) + on_one_of(size, across) + half_ring_form(size, false);
}

}  // namespace

ClosedForm half_ring_form(int ranks, bool reduces) {
  const double p = ranks;
  return {p - 1, (p - 1) / p, reduces ? (p - 1) / p : 0};
}

ClosedForm ring_form(int ranks) {
  return half_ring_form(ranks, true) + half_ring_form(ranks, false);
}

ClosedForm recursive_doubling_form(int ranks) {
  const double rounds = ceil_log2(floor_power(ranks));
  return ClosedForm{rounds, rounds, rounds} + fold_form(ranks);
}

ClosedForm halving_doubling_form(int ranks) {
  const double q = floor_power(ranks);
  const double rounds = ceil_log2(floor_power(ranks));
  return ClosedForm{2 * rounds, 2 * (q - 1) / q, (q - 1) / q} + fold_form(ranks);
}

ClosedForm hierarchical_form(int ranks, int group_size) {
  const double k = group_size;
  return ClosedForm{4 * (k - 1), 4 * (k - 1) / k, 2 * (k - 1) / k} + ring_form(ranks / group_size);
}

ClosedForm hierarchical_scatter_form(int ranks, int group_size) {
  return scattered_form(group_size, halving_doubling_form(ranks / group_size));
}

ClosedForm hierarchical_direct_form(int ranks, int group_size) {
  return parameter_server_form(group_size, 1) + halving_doubling_form(ranks / group_size);
}

ClosedForm torus_form(int ranks, int row_length) {
  return scattered_form(row_length, ring_form(ranks / row_length));
}

ClosedForm parameter_server_form(int ranks, int servers) {
  if (ranks == 1) return {};
  const double p = ranks;
  return {2, 2 * (p - 1) / servers, (p - 1) / servers};
}

ClosedForm binomial_broadcast_form(int ranks, int segments) {
  if (ranks == 1) return {};
  const double depth = ceil_log2(ranks);
  return {depth + segments - 1, depth, 0};
}

ClosedForm bruck_form(int ranks, bool reduces) {
  ClosedForm form = half_ring_form(ranks, reduces);
  form.alpha = ceil_log2(ranks);
  return form;
}

ClosedForm direct_form(int ranks, bool reduces) {
  ClosedForm form = half_ring_form(ranks, reduces);
  form.alpha = ranks > 1 ? 1 : 0;
  return form;
}

ClosedForm binomial_reduce_form(int ranks) {
  const double depth = ceil_log2(ranks);
  return {depth, depth, depth};
}

ClosedForm hierarchical_ring_form(int ranks, int group_size, bool reduces) {
  ClosedForm form = half_ring_form(ranks, reduces);
  const int groups = ranks / group_size;
  form.alpha = group_size + groups - 2;
  return form;
}

ClosedForm hierarchical_broadcast_form(int ranks, int group_size, int segments) {
  return binomial_broadcast_form(ranks / group_size, segments) +
         binomial_broadcast_form(group_size, segments);
}

ClosedForm chain_form(int ranks, int segments, bool reduces) {
  if (ranks == 1) return {};
  const double steps = ranks + segments - 2;
  return {steps, steps / segments, reduces ? steps / segments : 0};
}

ClosedForm neighbour_exchange_form(int ranks) {
  if (ranks == 1) return {};
  return {1, 1.0 / ranks, 0};
}

ClosedForm direct_all_to_all_form(int ranks) {
  ClosedForm form = pairwise_all_to_all_form(ranks);
  form.alpha = ranks > 1 ? 1 : 0;
  return form;
}

ClosedForm bruck_all_to_all_form(int ranks) {
  const double p = ranks;
  ClosedForm form{static_cast<double>(ceil_log2(ranks)), 0, 0};
  for (int offset = 1; offset < ranks; ++offset)
    form.beta += std::popcount(static_cast<unsigned>(offset)) / (p * p);
  return form;
}

ClosedForm pairwise_all_to_all_form(int ranks) {
  const double p = ranks;
  return {p - 1, (p - 1) / (p * p), 0};
}

}  // namespace paceline::models
