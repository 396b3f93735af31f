// A schedule: the steps of one collective over p ranks, as a value.
//
// There is one definition of each collective algorithm in Paceline, and it is a Schedule: a
// tree of primitives (primitives.h) under combinators (combinators.h). It has no clock, no
// buffers and no transport. The verifier, the engines, the executors and the exporters read it
// through enumerate.h, one step or one rank at a time; a schedule over 2,048 ranks is a tree
// of a few nodes, never a list of transfers.
//
// Semantics of a step: all its messages are read from what their senders held before it, and
// land in it. A rank's steps are in order; ranks are not synchronised otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "models/collective/primitives.h"

namespace paceline::models {

class Schedule;

// The `count` ranks first, first + stride, first + 2 stride, ...
struct Progression {
  int first = 0;
  int count = 1;
  int stride = 1;
  bool operator==(const Progression&) const = default;
};

// `count` groups of ranks, all of one shape: member i of group j is stride * j beyond member i of
// group 0. Group 0 is the concatenation of `members`. Groups are either blocks (a group's
// ranks lie within one stride) or interleaved (the groups' ranks alternate).
struct Groups {
  std::vector<Progression> members;
  int count = 1;
  int stride = 0;

  struct Place {
    int group = 0;
    int member = 0;
  };
  [[nodiscard]] int size() const;
  [[nodiscard]] int rank(int group, int member) const;
  // The group and the member that a rank is, if it is in a group.
  [[nodiscard]] std::optional<Place> locate(int rank) const;
  bool operator==(const Groups&) const = default;
};

// What a group works on: `whole`, all of the span; `own_part`, part j of `count` for group j.
enum class Share { whole, own_part };

struct ScheduleNode;

class Schedule {
 public:
  // One rank and no steps: an all-reduce over one rank.
  Schedule();
  // A primitive must be over as many ranks as it is defined for (a power of two for those of
  // primitives/halving.h). For combinators use the factories of combinators.h, which check them.
  explicit Schedule(ScheduleNode node);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] const ScheduleNode& node() const { return *node_; }
  // How many steps from `step` on have the same senders, receivers and (in fractions) sizes; >= 1.
  [[nodiscard]] int repeats(int step) const;
  // The least number of equal chunks such that no message cuts one; at most `limit`, 0 if beyond.
  [[nodiscard]] std::int64_t natural_chunks(std::int64_t limit = 1'000'000'000) const;
  // The tree in words: "sequence(within 3 groups of 8: chain-reduce, ...)".
  [[nodiscard]] std::string description() const;

 private:
  std::shared_ptr<const ScheduleNode> node_;
  int ranks_ = 1;
  int steps_ = 0;
};

// Schedules one after the other, all over the same ranks.
struct Sequence {
  std::vector<Schedule> parts;
};

// The same schedule in each group of `groups`, at the same time.
struct Within {
  int ranks = 1;  // of the whole schedule
  Groups groups;
  Schedule inner;  // over groups.size() ranks
  Share share = Share::whole;
};

// A schedule on part `index` of `of` of the span only.
struct OnPart {
  int index = 0;
  int of = 1;
  Schedule inner;
};

// Schedules at the same time, over the same ranks: step s is step s of each of them. A rank is done
// with a step when it is done with that step in all parts.
struct Parallel {
  std::vector<Schedule> parts;
};

// The bucket in `segments` equal segments, which go through the same schedule one behind the other:
// segment t is one step behind segment t - 1.
struct Pipelined {
  int segments = 1;
  Schedule inner;
};

// The same schedule with other ranks in its roles. In each block of `block` ranks, role i goes to
// rank (multiplier * i + offset) mod block of the block.
struct Renumbered {
  int block = 1;
  int multiplier = 1;  // coprime to block
  int offset = 0;
  int inverse = 1;  // of the multiplier, mod block
  Schedule inner;

  [[nodiscard]] int rank(int role) const { return in_block(role, multiplier, offset); }
  [[nodiscard]] int role(int rank) const {
    return in_block(rank, inverse, -static_cast<std::int64_t>(inverse) * offset % block);
  }

 private:
  [[nodiscard]] int in_block(int from, std::int64_t factor, std::int64_t shift) const {
    const std::int64_t image = (factor * (from % block) + shift) % block;
    return from - from % block + static_cast<int>(image < 0 ? image + block : image);
  }
};

// What a schedule is: one of a closed set of primitives and combinators. Readers use std::visit,
// with a branch for each combinator and one for all other alternatives, the primitives.
struct ScheduleNode
    : std::variant<RingReduceScatter, RingAllGather, RingShift, RecursiveHalving, RecursiveDoubling,
                   OrderedHalving, OrderedDoubling, RecursiveExchange, BlockFold, BlockUnfold,
                   ChainReduce, ChainBroadcast, BinomialReduce, BinomialBroadcast, BinaryTreeReduce,
                   BinaryTreeBroadcast, PointToPoint, ServerPush, ServerPull, PairwiseAllToAll,
                   BruckGather, BruckScatter, PatGather, PatScatter, BruckAllToAll, BinomialGather,
                   BinomialScatter, Sequence, Within, OnPart, Parallel, Pipelined, Renumbered> {
  using variant::variant;
};

// Whether the type of a node is among these kinds.
template <class Node, class... Kinds>
inline constexpr bool is_one_of = (std::is_same_v<Node, Kinds> || ...);

}  // namespace paceline::models
