// The primitives that every schedule is built of: who sends which part of the bucket to whom
// in which step. They are the only place where that is written.
//
// A primitive over q ranks is a plain value. These functions describe it:
//   steps(p): how many steps it takes.
//   parts(p): how many equal parts it cuts its span into; 1 if it does not cut.
//   for_each_send(p, rank, step, span, send): calls send(to, part of span, reduce) for each message
//     that `rank` sends in `step`.
//   for_each_sender(p, rank, step, visit): calls visit(from) for each rank that may send to `rank`
//     in `step`; a superset is fine.
// A message with `reduce` is added to what the receiver holds; without, it replaces it. A send
// reads what the rank held before the step.
//
// Steps with the same senders, receivers and sizes as the step before need not be enumerated
// one by one: repeats(p, step) counts how many steps from `step` on look alike (at least 1). It is
// 1 unless a primitive says otherwise.
#pragma once

#include "models/collective/primitives/dissemination.h"
#include "models/collective/primitives/exchange.h"
#include "models/collective/primitives/halving.h"
#include "models/collective/primitives/ring.h"
#include "models/collective/primitives/tree.h"

namespace paceline::models {

template <class Primitive>
[[nodiscard]] constexpr int ranks(const Primitive& p) {
  return p.ranks;
}
[[nodiscard]] constexpr int ranks(const BlockFold& p) {
  return p.large + p.small;
}
[[nodiscard]] constexpr int ranks(const BlockUnfold& p) {
  return p.large + p.small;
}

// Calls receive(from, part of span, reduce) for each message that `rank` receives in `step`, in the
// order of the senders' ranks where they are many.
template <class Primitive, class T, class F>
void for_each_arrival(const Primitive& p, int rank, int step, Span<T> span, F&& receive) {
  for_each_sender(p, rank, step, [&](int from) {
    for_each_send(p, from, step, span, [&](int to, Span<T> message, bool reduce) {
      if (to == rank) receive(from, message, reduce);
    });
  });
}
// The same for senders with many receivers, without going through the other receivers' messages.
template <class T, class F>
void for_each_arrival(const ServerPush& p, int rank, int step, Span<T> span, F&& receive) {
  const int server = detail::server_at(rank, p.ranks, p.servers);
  for_each_sender(p, rank, step,
                  [&](int from) { receive(from, part(span, server, p.servers), true); });
}
template <class T, class F>
void for_each_arrival(const ServerPull& p, int rank, int /*step*/, Span<T> span, F&& receive) {
  for (int server = 0; server < p.servers; ++server) {
    const int from = server_rank(server, p.ranks, p.servers);
    if (from != rank) receive(from, part(span, server, p.servers), false);
  }
}
template <class T, class F>
void for_each_arrival(const PairwiseAllToAll& p, int rank, int step, Span<T> span, F&& receive) {
  for_each_sender(p, rank, step, [&](int from) {
    receive(from, detail::block(span, from, rank, p.ranks), false);
  });
}

// Calls send(from, to, part of span, reduce) for each message of `step`, in the order of the senders'
// ranks. Primitives in which few ranks send in a step have overloads that look at those only.
template <class Primitive, class T, class F>
void for_each_message(const Primitive& p, int step, Span<T> span, F&& send) {
  for (int rank = 0; rank < ranks(p); ++rank) {
    for_each_send(p, rank, step, span,
                  [&](int to, Span<T> message, bool reduce) { send(rank, to, message, reduce); });
  }
}

template <class Primitive>
[[nodiscard]] constexpr int repeats(const Primitive&, int /*step*/) {
  return 1;
}

}  // namespace paceline::models
