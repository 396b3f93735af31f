// Tests: tests/simulator/effort_test.cc.
#include "simulator/engine/effort.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "simulator/engine/equivalence.h"

namespace paceline::simulator {
namespace {

using namespace models;

MessageCount sum_of(const std::vector<Schedule>& parts) {
  MessageCount sum;
  for (const Schedule& part : parts) {
    const MessageCount count = message_count(part);
    sum.all += count.all;
    sum.distinct += count.distinct;
  }
  return sum;
}

MessageCount times(double factor, MessageCount count) {
  return {factor * count.all, factor * count.distinct};
}

template <class Primitive>
double messages_of(const Primitive& p) {
  const double ranks = models::ranks(p);
  if constexpr (is_one_of<Primitive, ChainReduce, ChainBroadcast, BinomialReduce, BinomialBroadcast,
                          BinomialGather, BinomialScatter, BinaryTreeReduce, BinaryTreeBroadcast>) {
    return ranks - 1;  // each rank but the root has one parent
  } else if constexpr (is_one_of<Primitive, RingReduceScatter, RingAllGather>) {
    return ranks * models::steps(p) * p.rows;
  } else if constexpr (is_one_of<Primitive, PairwiseAllToAll, PatGather, PatScatter>) {
    return ranks * (ranks - 1);  // every rank sends each other a block, or gets a part of each
  } else if constexpr (std::is_same_v<Primitive, BruckAllToAll>) {
    return ranks * ranks / 2 * models::steps(p);  // at most half of the blocks in each step
  } else if constexpr (std::is_same_v<Primitive, PointToPoint>) {
    return 1;
  } else if constexpr (is_one_of<Primitive, ServerPush, ServerPull>) {
    return p.servers * (ranks - 1);
  } else {
    return ranks * models::steps(p);  // every rank sends one message in each step
  }
}

}  // namespace

MessageCount message_count(const Schedule& schedule) {
  return std::visit(
      [&](const auto& node) -> MessageCount {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Sequence> || std::is_same_v<Node, Parallel>) {
          return sum_of(node.parts);
        } else if constexpr (std::is_same_v<Node, Within>) {
          return times(node.groups.count, message_count(node.inner));
        } else if constexpr (std::is_same_v<Node, OnPart> || std::is_same_v<Node, Renumbered>) {
          return message_count(node.inner);
        } else if constexpr (std::is_same_v<Node, Pipelined>) {
          const double all = message_count(node.inner).all;
          return {node.segments * all, std::min(node.segments, node.inner.steps()) * all};
        } else {
          const double all = messages_of(node);
          const bool is_ring = is_one_of<Node, RingReduceScatter, RingAllGather>;
          return {all, is_ring && models::steps(node) > 0 ? all / models::steps(node) : all};
        }
      },
      schedule.node());
}

double followed_messages(const Schedule& schedule, const CommunicationCost& cost) {
  const Routes routes(cost, schedule.ranks());
  const Positions positions = positions_of({&schedule, 1}, routes);
  const MessageCount count = message_count(schedule);
  if (!positions.is_collapsed()) return count.all;
  if (is_symmetric(schedule)) {
    // Alike messages of a rank are one: at most as many as there are positions, inside the node and
    // outside it, in each step.
    return 2.0 * positions.count() * positions.count() * schedule.steps();
  }
  return count.distinct * positions.count() / schedule.ranks();
}

}  // namespace paceline::simulator
