// The textbook times of the algorithms of the catalogue, as coefficients of alpha, n beta and
// n gamma.
//
// A closed form holds where ranks are equal, links are full duplex and none is shared, and each
// rank has one port; chunks are fractions of the bucket. The step engine is held against each to
// 1e-9 (tests/agreement/engine_agreement_test.cc), and docs/algorithms.md prints them. q is the
// largest power of two <= p.
#pragma once

namespace paceline::models {

// T = alpha * (seconds per message) + beta * n * (seconds per byte sent)
//   + gamma * n * (seconds per byte reduced), for a bucket of n bytes.
struct ClosedForm {
  double alpha = 0;  // how many messages follow one another
  double beta = 0;   // how many buckets pass the busiest port
  double gamma = 0;  // how many buckets the busiest rank reduces
};

[[nodiscard]] constexpr ClosedForm operator+(const ClosedForm& a, const ClosedForm& b) {
  return {a.alpha + b.alpha, a.beta + b.beta, a.gamma + b.gamma};
}
// The form of the same algorithm on 1/parts of the bucket.
[[nodiscard]] constexpr ClosedForm on_one_of(double parts, const ClosedForm& form) {
  return {form.alpha, form.beta / parts, form.gamma / parts};
}

// 2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma (Hitchhiker V; Patarasuk & Yuan 2009).
[[nodiscard]] ClosedForm ring_form(int ranks);
// (p-1)(alpha + n/p beta), with n/p gamma each if it reduces (Patarasuk & Yuan 2009).
[[nodiscard]] ClosedForm half_ring_form(int ranks, bool reduces);
// log2 q (alpha + n beta + n gamma) (Thakur 2005); where p != q, + 2 alpha + 2 n beta + n gamma.
[[nodiscard]] ClosedForm recursive_doubling_form(int ranks);
// 2 log2 q alpha + 2(q-1)/q n beta + (q-1)/q n gamma (Hitchhiker VI; Thakur 2005), and
// 2 alpha + 2 n beta + n gamma for the fold where p != q.
[[nodiscard]] ClosedForm halving_doubling_form(int ranks);
// With m = p/k: 4(k-1)(alpha + n/k beta) + 2(k-1) n/k gamma + ring over m (Jizhi 4.3). The paper
// counts the steps; the chunk n/k of the two phases inside groups is ours.
[[nodiscard]] ClosedForm hierarchical_form(int ranks, int group_size);
// 2(k-1)(alpha + n/k beta) + (k-1) n/k gamma + halving-doubling of n/k over p/k (Goyal 2017, 3.2).
[[nodiscard]] ClosedForm hierarchical_scatter_form(int ranks, int group_size);
// 2 alpha + 2(k-1) n beta + (k-1) n gamma + halving-doubling over p/k (Goyal 2017, 3.2); without
// the first three terms for k = 1.
[[nodiscard]] ClosedForm hierarchical_direct_form(int ranks, int group_size);
// 2(k-1)(alpha + n/k beta) + (k-1) n/k gamma + ring of n/k over p/k (Mikami 2018, 2.2).
[[nodiscard]] ClosedForm torus_form(int ranks, int row_length);
// 2 alpha + 2(p-1) n/s beta + (p-1) n/s gamma: what goes through one server's port (Li 2014).
[[nodiscard]] ClosedForm parameter_server_form(int ranks, int servers);
// (ceil(log2 p) + S - 1) alpha + ceil(log2 p) n beta: the root sends every segment ceil(log2 p)
// times (Thakur 2005 for S = 1). Segments only add alpha.
[[nodiscard]] ClosedForm binomial_broadcast_form(int ranks, int segments);
// (p-1)(alpha + n/p^2 beta) (Thakur 2005).
[[nodiscard]] ClosedForm pairwise_all_to_all_form(int ranks);
// alpha + (p-1)/p^2 n beta.
[[nodiscard]] ClosedForm direct_all_to_all_form(int ranks);
// A message in each of ceil(log2 p) steps, with 1/p^2 of the bucket for each number below p that has
// the step's bit (Bruck 1997).
[[nodiscard]] ClosedForm bruck_all_to_all_form(int ranks);
// alpha + n/p beta.
[[nodiscard]] ClosedForm neighbour_exchange_form(int ranks);
// (k + p/k - 2) alpha + (p-1)/p n beta, and as much gamma if it reduces.
[[nodiscard]] ClosedForm hierarchical_ring_form(int ranks, int group_size, bool reduces);
// Two broadcasts, one behind the other.
[[nodiscard]] ClosedForm hierarchical_broadcast_form(int ranks, int group_size, int segments);
// (p + S - 2)(alpha + n/S beta), and as much gamma if it reduces (Patarasuk & Yuan 2009).
[[nodiscard]] ClosedForm chain_form(int ranks, int segments, bool reduces);
// Bruck's all-gather, and reduce-scatter, which reduces; also of PAT, halving and doubling, and of
// gather and scatter along a binomial tree.
[[nodiscard]] ClosedForm bruck_form(int ranks, bool reduces);
// One half of the all-reduce by direct exchange.
[[nodiscard]] ClosedForm direct_form(int ranks, bool reduces);
[[nodiscard]] ClosedForm binomial_reduce_form(int ranks);

}  // namespace paceline::models
