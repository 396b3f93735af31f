// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/link_figures.h"

#include <algorithm>
#include <chrono>

#include "calibration/fit/statistics.h"
#include "calibration/measure/message_patterns.h"
#include "models/base/limits.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::Transport;

// The slope of a stream goes from its `few`-th message to its `many`-th. If both are of one stream,
// `in_flight` more messages come behind those.
constexpr int few = 4;
constexpr int many = 12;

SecondsPerByte slope(double of_few, double of_many, std::int64_t bytes) {
  return SecondsPerByte{std::max(0.0, of_many - of_few) /
                        static_cast<double>((many - few) * bytes)};
}

}  // namespace

std::vector<StreamTimes> measure_streams(Transport& transport, const NodeMap& nodes,
                                         std::int64_t bytes, int repetitions) {
  PatternPlayer play(transport, bytes);
  std::vector<StreamTimes> all;
  for (const Pattern& pattern : message_patterns(transport, nodes)) {
    if (pattern.kind != models::CurveKind::exchange) continue;
    StreamTimes times{pattern.between_nodes, pattern.ranks, {}};
    for (int i = 0; i <= repetitions; ++i) {
      barrier(transport);
      const auto came = play.stream_of(pattern.ring, bytes, many + in_flight);
      // The first opens windows.
      if (i > 0 && transport.rank() == 0)
        times.samples.push_back(slope(came[to_size(few - 1)], came[to_size(many - 1)], bytes));
    }
    all.push_back(std::move(times));
  }
  return all;
}

std::vector<BothWaysTimes> measure_both_ways(Transport& transport, const NodeMap& nodes,
                                             std::int64_t bytes, int repetitions) {
  constexpr int steps = 2;  // as many messages each way as in a round trip
  PatternPlayer play(transport, bytes);
  std::vector<BothWaysTimes> all;
  for (const Pattern& pattern : message_patterns(transport, nodes)) {
    if (pattern.kind != models::CurveKind::point_to_point) continue;
    BothWaysTimes times{pattern.between_nodes, {}};
    for (int i = 0; i < repetitions; ++i) {
      barrier(transport);
      const double one = play.ping(pattern.ring, bytes);
      barrier(transport);
      const double both = play.exchange(pattern.ring, bytes, steps);
      if (transport.rank() == 0)
        times.samples.push_back(
            std::clamp(both / std::max(1e-9, one), Limits<double>::least, Limits<double>::most));
    }
    all.push_back(std::move(times));
  }
  return all;
}

std::vector<SecondsPerByte> measure_uplink(Transport& transport, const NodeMap& nodes,
                                           std::int64_t bytes, int repetitions, Seconds time) {
  if (nodes.leaders_across(0).empty()) return {};
  PatternPlayer play(transport, bytes);
  const Ring pair(nodes.leaders_across(transport.rank()), transport.rank());
  // Rank 0's clock stops when all are done: nodes need not share the uplink evenly.
  const auto all_at_once = [&](int count) {
    barrier(transport);
    const Clock::time_point start = Clock::now();
    (void)play.stream_of(pair, bytes, count);
    barrier(transport);
    return seconds_since(start);
  };
  const Clock::time_point start = Clock::now();
  std::vector<SecondsPerByte> samples;
  (void)all_at_once(few);  // opens connections
  for (int i = 0; i < repetitions; ++i) {
    const double left = time.value() - seconds_since(start);
    if (i >= least_repetitions && agreed(transport, left) <= 0) break;
    const double short_one = all_at_once(few);
    const double long_one = all_at_once(many);
    if (transport.rank() == 0) samples.push_back(slope(short_one, long_one, bytes));
  }
  return samples;
}

MessageGaps measure_message_gap(Transport& transport, const NodeMap& nodes, std::int64_t bytes,
                                int repetitions) {
  constexpr int in_a_row = 64;
  const std::vector<int> members = nodes.nodes() > 1 ? nodes.leaders() : nodes.ranks_of(0);
  MessageGaps gaps{.bytes = bytes, .samples = {}};
  if (members.size() < 2) return gaps;
  PatternPlayer play(transport, bytes);
  const Ring pair({members[0], members[1]}, transport.rank());
  (void)play.flood(pair, bytes, in_a_row);
  for (int i = 0; i < repetitions; ++i) {
    barrier(transport);
    const double one = play.flood(pair, bytes, 1);
    barrier(transport);
    const double all = play.flood(pair, bytes, in_a_row);
    gaps.samples.emplace_back(std::max(0.0, (all - one) / (in_a_row - 1)));
  }
  if (transport.rank() != 0) gaps.samples.clear();
  return gaps;
}

double measure_fairness(Transport& transport, const NodeMap& nodes, std::int64_t bytes,
                        int repetitions) {
  const std::vector<int> members = nodes.nodes() > 2 ? nodes.leaders() : nodes.ranks_of(0);
  if (members.size() < 3) return 0;
  PatternPlayer play(transport, bytes);
  const Ring three({members[0], members[1], members[2]}, transport.rank());
  std::vector<double> shares;
  for (int i = 0; i <= repetitions; ++i) {
    barrier(transport);
    const double alone = play.fan_out(three, bytes, 1).front();
    barrier(transport);
    const std::vector<double> both = play.fan_out(three, bytes, 2);
    if (i == 0 || transport.rank() != 0) continue;  // the first opens connections
    shares.push_back((both[0] - alone) / std::max(1e-9, both[1] - alone));
  }
  return agreed(transport, shares.empty() ? 0 : std::clamp(median(shares), 0.0, 1.0));
}

double measure_nic_sharing(Transport& transport, const NodeMap& nodes, std::int64_t bytes) {
  const int per_node = static_cast<int>(nodes.ranks_of(0).size());
  if (nodes.nodes() < 2 || per_node < 2) return 0;
  for (int node = 0; node < nodes.nodes(); ++node) {
    if (static_cast<int>(nodes.ranks_of(node).size()) != per_node) return 0;
  }
  std::vector<int> everyone;
  for (int node = 0; node < nodes.nodes(); ++node) {
    for (const int rank : nodes.ranks_of(node)) everyone.push_back(rank);
  }
  PatternPlayer play(transport, bytes);
  const Ring alone(nodes.leaders(), transport.rank());
  const Ring together(everyone, transport.rank());
  const auto best = [&](const Ring& ring, int by) {
    double least = 1e9;
    for (int i = 0; i < least_repetitions; ++i) {
      barrier(transport);
      least = std::min(least, play.exchange(ring, bytes, exchange_steps, by));
    }
    return least;
  };
  const double one = best(alone, 1);
  const double all = best(together, per_node);
  return agreed(transport, all / (one * per_node));
}

}  // namespace paceline::calibration
