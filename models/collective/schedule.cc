// Tests: tests/models/schedule_test.cc.
#include "models/collective/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <type_traits>

#include "models/base/error.h"

namespace paceline::models {
namespace {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;  // clang before 17 does not deduce aggregates

template <class P>
constexpr const char* primitive_name() {
  if constexpr (std::is_same_v<P, RingReduceScatter>) return "ring reduce-scatter";
  if constexpr (std::is_same_v<P, RingAllGather>) return "ring all-gather";
  if constexpr (std::is_same_v<P, RingShift>) return "exchange with neighbours";
  if constexpr (std::is_same_v<P, OrderedHalving>) return "recursive halving in order";
  if constexpr (std::is_same_v<P, OrderedDoubling>) return "recursive doubling in order";
  if constexpr (std::is_same_v<P, RecursiveHalving>) return "recursive halving";
  if constexpr (std::is_same_v<P, RecursiveDoubling>) return "recursive doubling";
  if constexpr (std::is_same_v<P, ChainReduce>) return "chain reduce";
  if constexpr (std::is_same_v<P, ChainBroadcast>) return "chain broadcast";
  if constexpr (std::is_same_v<P, BinomialReduce>) return "binomial reduce";
  if constexpr (std::is_same_v<P, BinomialBroadcast>) return "binomial broadcast";
  if constexpr (std::is_same_v<P, BinaryTreeReduce>) return "binary tree reduce";
  if constexpr (std::is_same_v<P, BinaryTreeBroadcast>) return "binary tree broadcast";
  if constexpr (std::is_same_v<P, RecursiveExchange>) return "recursive exchange";
  if constexpr (std::is_same_v<P, BlockFold>) return "fold of a block";
  if constexpr (std::is_same_v<P, BlockUnfold>) return "unfold of a block";
  if constexpr (std::is_same_v<P, ServerPush>) return "push to servers";
  if constexpr (std::is_same_v<P, ServerPull>) return "pull from servers";
  if constexpr (std::is_same_v<P, PairwiseAllToAll>) return "pairwise all-to-all";
  if constexpr (std::is_same_v<P, BruckGather>) return "Bruck all-gather";
  if constexpr (std::is_same_v<P, BruckScatter>) return "Bruck reduce-scatter";
  if constexpr (std::is_same_v<P, PatGather>) return "PAT all-gather";
  if constexpr (std::is_same_v<P, PatScatter>) return "PAT reduce-scatter";
  if constexpr (std::is_same_v<P, BruckAllToAll>) return "Bruck all-to-all";
  if constexpr (std::is_same_v<P, BinomialGather>) return "binomial gather";
  if constexpr (std::is_same_v<P, BinomialScatter>) return "binomial scatter";
  if constexpr (std::is_same_v<P, PointToPoint>) return "point to point";
}

bool is_power(int ranks) {
  return ranks >= 1 && std::has_single_bit(static_cast<unsigned>(ranks));
}

// Whether a primitive is over as many ranks as it is defined for. Combinators are checked where
// they are made (combinators.h).
bool is_defined(const ScheduleNode& node) {
  const auto joins = [](const auto& p) {
    return is_power(p.large) && is_power(p.small) && p.small < p.large;
  };
  const auto divides = [](const auto& p) {
    return p.ranks >= 1 && p.rings >= 1 && p.ranks % p.rings == 0 && p.rows >= 1;
  };
  const auto serves = [](const auto& p) { return p.servers >= 1 && p.servers <= p.ranks; };
  return std::visit(
      Overload{[](const RecursiveHalving& p) { return is_power(p.ranks); },
               [](const RecursiveDoubling& p) { return is_power(p.ranks); },
               [](const OrderedHalving& p) { return is_power(p.ranks); },
               [](const OrderedDoubling& p) { return is_power(p.ranks); },
               [&](const RingReduceScatter& p) { return divides(p); },
               [&](const RingAllGather& p) { return divides(p); },
               [](const PairwiseAllToAll& p) { return p.ranks >= 1 && p.at_once >= 1; },
               [](const RecursiveExchange& p) { return is_power(p.ranks); },
               [&](const BlockFold& p) { return joins(p); },
               [&](const BlockUnfold& p) { return joins(p); },
               [&](const ServerPush& p) { return serves(p); },
               [&](const ServerPull& p) { return serves(p); },
               [](const PointToPoint& p) {
                 return p.from != p.to && std::min(p.from, p.to) >= 0 &&
                        std::max(p.from, p.to) < p.ranks;
               },
               [](const auto& p) {
                 if constexpr (requires { models::steps(p); })
                   return models::ranks(p) >= 1;
                 else
                   return true;
               }},
      node);
}

int ranks_of(const ScheduleNode& node) {
  return std::visit(
      Overload{[](const Sequence& s) { return s.parts.empty() ? 1 : s.parts.front().ranks(); },
               [](const Within& w) { return w.ranks; },
               [](const OnPart& o) { return o.inner.ranks(); },
               [](const Parallel& s) { return s.parts.front().ranks(); },
               [](const Pipelined& s) { return s.inner.ranks(); },
               [](const Renumbered& s) { return s.inner.ranks(); },
               [](const auto& primitive) { return models::ranks(primitive); }},
      node);
}

int steps_of(const ScheduleNode& node) {
  return std::visit(Overload{[](const Sequence& s) {
                               int total = 0;
                               for (const Schedule& part : s.parts) total += part.steps();
                               return total;
                             },
                             [](const Within& w) { return w.inner.steps(); },
                             [](const OnPart& o) { return o.inner.steps(); },
                             [](const Parallel& s) {
                               int most = 0;
                               for (const Schedule& part : s.parts)
                                 most = std::max(most, part.steps());
                               return most;
                             },
                             [](const Pipelined& s) { return s.inner.steps() + s.segments - 1; },
                             [](const Renumbered& s) { return s.inner.steps(); },
                             [](const auto& primitive) { return models::steps(primitive); }},
                    node);
}

// The least common multiple, or 0 if either is 0 or it is beyond the limit.
std::int64_t common(std::int64_t a, std::int64_t b, std::int64_t limit) {
  if (a == 0 || b == 0) return 0;
  const std::int64_t factor = b / std::gcd(a, b);
  return a > limit / factor ? 0 : a * factor;
}

std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t limit) {
  return b != 0 && a > limit / b ? 0 : a * b;
}

}  // namespace

int Groups::size() const {
  int total = 0;
  for (const Progression& p : members) total += p.count;
  return total;
}

int Groups::rank(int group, int member) const {
  for (const Progression& p : members) {
    if (member < p.count) return group * stride + p.first + member * p.stride;
    member -= p.count;
  }
  PACELINE_ASSERT(false, "a group has no such member");
  return -1;
}

std::optional<Groups::Place> Groups::locate(int rank) const {
  int before = 0;
  for (const Progression& p : members) {
    const int offset = rank - p.first;
    const bool blocks = count == 1 || (p.count - 1) * p.stride < stride;
    int group = 0;
    int rest = offset;
    if (count > 1 && blocks) {
      group = offset / stride;
      rest = offset % stride;
    } else if (count > 1) {
      group = offset % p.stride / stride;
      rest = offset - group * stride;
    }
    const bool member =
        offset >= 0 && group < count && rest % p.stride == 0 && rest / p.stride < p.count;
    if (member) return Place{group, before + rest / p.stride};
    before += p.count;
  }
  return std::nullopt;
}

Schedule::Schedule() : Schedule(Sequence{}) {}

Schedule::Schedule(ScheduleNode node)
    : node_(std::make_shared<const ScheduleNode>(std::move(node))),
      ranks_(ranks_of(*node_)),
      steps_(steps_of(*node_)) {
  PACELINE_ASSERT(is_defined(*node_), "a primitive is over ranks that it is defined for");
}

int Schedule::repeats(int step) const {
  return std::visit(Overload{[step](const Sequence& s) {
                               int local = step;
                               for (const Schedule& part : s.parts) {
                                 if (local < part.steps()) return part.repeats(local);
                                 local -= part.steps();
                               }
                               return 1;
                             },
                             [step](const Within& w) { return w.inner.repeats(step); },
                             [step](const OnPart& o) { return o.inner.repeats(step); },
                             [step](const Parallel& s) {
                               int least = std::numeric_limits<int>::max();
                               for (const Schedule& part : s.parts) {
                                 if (step < part.steps())
                                   least = std::min(least, part.repeats(step));
                               }
                               return least;
                             },
                             // All of a pipeline is busy from its last first step to its first
                             // last one.
                             [step](const Pipelined& s) {
                               const bool is_full =
                                   step >= s.inner.steps() - 1 && step < s.segments;
                               return is_full ? s.segments - step : 1;
                             },
                             [step](const Renumbered& s) { return s.inner.repeats(step); },
                             [step](const auto& p) { return models::repeats(p, step); }},
                    *node_);
}

std::int64_t Schedule::natural_chunks(std::int64_t limit) const {
  return std::visit(
      Overload{
          [limit](const Sequence& s) {
            std::int64_t chunks = 1;
            for (const Schedule& part : s.parts)
              chunks = common(chunks, part.natural_chunks(limit), limit);
            return chunks;
          },
          [limit](const Within& w) {
            const std::int64_t shares = w.share == Share::own_part ? w.groups.count : 1;
            return product(w.inner.natural_chunks(limit), shares, limit);
          },
          [limit](const OnPart& o) { return product(o.inner.natural_chunks(limit), o.of, limit); },
          [limit](const Parallel& s) {
            std::int64_t chunks = 1;
            for (const Schedule& part : s.parts)
              chunks = common(chunks, part.natural_chunks(limit), limit);
            return chunks;
          },
          [limit](const Pipelined& s) {
            return product(s.inner.natural_chunks(limit), s.segments, limit);
          },
          [limit](const Renumbered& s) { return s.inner.natural_chunks(limit); },
          [limit](const auto& p) {
            const std::int64_t chunks = parts(p);
            return chunks > limit ? 0 : chunks;
          }},
      *node_);
}

std::string Schedule::description() const {
  return std::visit(
      Overload{[](const Sequence& s) {
                 std::string text;
                 for (const Schedule& part : s.parts)
                   text += (text.empty() ? "" : ", then ") + part.description();
                 return text.empty() ? std::string("nothing to do") : text;
               },
               [](const Within& w) {
                 const Progression& first = w.groups.members.front();
                 const std::string shape =
                     first.stride == 1 ? "" : fmt::format(" ({} apart)", first.stride);
                 const std::string share =
                     w.share == Share::own_part ? ", each on its own part" : "";
                 return w.groups.count == 1
                            ? fmt::format("among {} ranks{}: {}", w.groups.size(), shape,
                                          w.inner.description())
                            : fmt::format("in each of {} groups of {}{}{}: {}", w.groups.count,
                                          w.groups.size(), shape, share, w.inner.description());
               },
               [](const OnPart& o) {
                 return fmt::format("on part {} of {}: {}", o.index, o.of, o.inner.description());
               },
               [](const Parallel& s) {
                 std::string text;
                 for (const Schedule& part : s.parts)
                   text += (text.empty() ? "at once {" : "; ") + part.description();
                 return text + "}";
               },
               [](const Pipelined& s) {
                 return fmt::format("in {} segments: {}", s.segments, s.inner.description());
               },
               [](const Renumbered& s) {
                 const std::string where =
                     s.block == s.inner.ranks() ? "" : fmt::format(" in each block of {}", s.block);
                 return fmt::format("role i at rank {} i + {} mod {}{}: {}", s.multiplier, s.offset,
                                    s.block, where, s.inner.description());
               },
               [](const auto& p) {
                 using P = std::decay_t<decltype(p)>;
                 return fmt::format("{} ({} step{})", primitive_name<P>(), models::steps(p),
                                    models::steps(p) == 1 ? "" : "s");
               }},
      *node_);
}

}  // namespace paceline::models
