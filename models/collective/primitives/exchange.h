// Primitives in which every rank talks to many others directly (see primitives.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/collective/primitives/ring.h"
#include "models/collective/span.h"

namespace paceline::models {

// Push to parameter servers, one step: `servers` of the ranks are servers too, evenly spread, and
// each rank sends each server its part of the bucket, to be added (Li et al. 2014; PAISoar). With
// as many servers as ranks it is the reduce-scatter by direct exchange.
struct ServerPush {
  int ranks = 1;
  int servers = 1;
  bool operator==(const ServerPush&) const = default;
};

// Pull from parameter servers, one step: each server sends its part to each other rank. With
// as many servers as ranks it is the all-gather by direct exchange.
struct ServerPull {
  int ranks = 1;
  int servers = 1;
  bool operator==(const ServerPull&) const = default;
};

// All-to-all by pairwise exchange, q - 1 steps (Thakur 2005, section 3.4). The bucket is the matrix
// of all that is exchanged, q x q blocks: rank r starts with row r and ends with column r. In step
// s, rank r sends block (r, r + s + 1 mod q) to rank r + s + 1 mod q. With `at_once` a > 1, a step
// is a of these steps at the same time; with q - 1 it is the direct exchange.
struct PairwiseAllToAll {
  int ranks = 1;
  int at_once = 1;
  bool operator==(const PairwiseAllToAll&) const = default;
};

// The rank that server `index` is.
[[nodiscard]] constexpr int server_rank(int index, int ranks, int servers) {
  return static_cast<int>(static_cast<std::int64_t>(index) * ranks / servers);
}
namespace detail {
// The server that `rank` is, or -1.
[[nodiscard]] constexpr int server_at(int rank, int ranks, int servers) {
  const int index =
      static_cast<int>((static_cast<std::int64_t>(rank) * servers + ranks - 1) / ranks);
  return index < servers && server_rank(index, ranks, servers) == rank ? index : -1;
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const ServerPush& p) {
  return p.ranks > 1 ? 1 : 0;
}
[[nodiscard]] constexpr int parts(const ServerPush& p) {
  return p.servers;
}
template <class T, class F>
void for_each_send(const ServerPush& p, int rank, int /*step*/, Span<T> span, F&& send) {
  for (int server = 0; server < p.servers; ++server) {
    const int to = server_rank(server, p.ranks, p.servers);
    if (to != rank) send(to, part(span, server, p.servers), true);
  }
}
template <class F>
void for_each_sender(const ServerPush& p, int rank, int /*step*/, F&& visit) {
  if (detail::server_at(rank, p.ranks, p.servers) < 0) return;
  for (int from = 0; from < p.ranks; ++from) {
    if (from != rank) visit(from);
  }
}

[[nodiscard]] constexpr int steps(const ServerPull& p) {
  return p.ranks > 1 ? 1 : 0;
}
[[nodiscard]] constexpr int parts(const ServerPull& p) {
  return p.servers;
}
template <class T, class F>
void for_each_send(const ServerPull& p, int rank, int /*step*/, Span<T> span, F&& send) {
  const int server = detail::server_at(rank, p.ranks, p.servers);
  if (server < 0) return;
  for (int to = 0; to < p.ranks; ++to) {
    if (to != rank) send(to, part(span, server, p.servers), false);
  }
}
template <class F>
void for_each_sender(const ServerPull& p, int rank, int /*step*/, F&& visit) {
  for (int server = 0; server < p.servers; ++server) {
    const int from = server_rank(server, p.ranks, p.servers);
    if (from != rank) visit(from);
  }
}

namespace detail {
// How far the partners of a step are.
struct Distances {
  int least = 1;
  int most = 0;
};
[[nodiscard]] constexpr Distances distances(const PairwiseAllToAll& p, int step) {
  const int least = step * p.at_once + 1;
  return {least, std::min(least + p.at_once, p.ranks) - 1};
}
template <class T>
[[nodiscard]] constexpr Span<T> block(Span<T> span, int row, int column, int ranks) {
  return part(part(span, row, ranks), column, ranks);
}
}  // namespace detail

[[nodiscard]] constexpr int steps(const PairwiseAllToAll& p) {
  return (p.ranks - 1 + p.at_once - 1) / p.at_once;
}
[[nodiscard]] constexpr std::int64_t parts(const PairwiseAllToAll& p) {
  return static_cast<std::int64_t>(p.ranks) * p.ranks;
}
template <class T, class F>
void for_each_send(const PairwiseAllToAll& p, int rank, int step, Span<T> span, F&& send) {
  const detail::Distances far = detail::distances(p, step);
  for (int distance = far.least; distance <= far.most; ++distance) {
    const int to = detail::moved_in_ring(rank, distance, p.ranks);
    send(to, detail::block(span, rank, to, p.ranks), false);
  }
}
// In the order of the senders' ranks: those below `rank` come first.
template <class F>
void for_each_sender(const PairwiseAllToAll& p, int rank, int step, F&& visit) {
  const detail::Distances far = detail::distances(p, step);
  for (int distance = std::min(far.most, rank); distance >= far.least; --distance)
    visit(rank - distance);
  for (int distance = far.most; distance >= std::max(far.least, rank + 1); --distance)
    visit(rank - distance + p.ranks);
}

}  // namespace paceline::models
