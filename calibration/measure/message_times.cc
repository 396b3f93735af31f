// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/message_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <numeric>
#include <sstream>

#include "calibration/fit/median.h"
#include "models/base/error.h"
#include "models/base/limits.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/transport_channel.h"
#include "runtime/device/memory.h"

namespace paceline::calibration {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::Transport;

constexpr int stream = 0;
constexpr int least_repetitions = 3;
constexpr int most_repetitions = 200;
constexpr int exchange_steps = 8;  // in a row, at least
// Steps before those: ranks leave a barrier apart by what a message takes, which the first steps
// wait for. By that much each rank in turn is then ahead for a step, until it has gone around: so
// steps are timed in whole rounds.
constexpr int settling_steps = 2;
// Of the time for messages, kept for all-reduces that are larger than they are.
constexpr double share_above = 0.5;
// Of the time for a size, to an all-reduce of fewer ranks than all.
constexpr double weight_of_fewer = 0.25;
// Messages of a stream that are on their way at a time. What comes in is acknowledged behind them,
// and acknowledgements take up to 3 % of a slow link: all at once, they would come after the end.
constexpr int in_flight = 4;
// Messages of a stream: the slope between few and many. Where it is of one stream, as many as are
// on their way come behind those.
constexpr int few = 4;
constexpr int many = 12;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// On the transport that is measured, so that no other message comes between.
void barrier(Transport& transport) {
  runtime::TransportChannel channel(transport);
  runtime::barrier(channel);
}

// The ranks that take part in a pattern, in the order in which they pass messages on.
struct Ring {
  std::vector<int> ranks;
  int mine = -1;  // my place; -1 if I only wait

  Ring(std::vector<int> members, int rank) : ranks(std::move(members)) {
    const auto it = std::find(ranks.begin(), ranks.end(), rank);
    if (it != ranks.end()) mine = static_cast<int>(it - ranks.begin());
  }
  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int after(int by) const { return ranks[at((mine + by) % size())]; }
  [[nodiscard]] int before(int by) const { return ranks[at((mine + size() - by) % size())]; }
};

// What is timed by message size.
struct Pattern {
  std::string what;
  models::CurveKind kind;
  bool between_nodes;
  int ranks;  // that take part
  Ring ring;
  double weight = 1;                     // of its time
  std::vector<std::int64_t> sizes = {};  // bytes, ascending
};

class Patterns {
 public:
  // Of messages up to `largest` bytes, and all-reduces up to `largest_all_reduce`.
  Patterns(Transport& transport, std::int64_t largest, std::int64_t largest_all_reduce = 0)
      : transport_(transport),
        sent_(
            runtime::host_memory(static_cast<std::size_t>(std::max(largest, largest_all_reduce)))),
        received_(runtime::host_memory(static_cast<std::size_t>(largest))) {
    std::ranges::fill(sent_.bytes(), std::byte{0});  // which all-reduces leave as they are
  }

  // Seconds on the first rank of the ring; of an all-reduce, until it is done there.
  double once(const Pattern& pattern, std::int64_t bytes) {
    if (pattern.kind == models::CurveKind::exchange)
      return exchange(pattern.ring, bytes, exchange_steps);
    if (pattern.kind == models::CurveKind::point_to_point) return ping(pattern.ring, bytes);
    const Clock::time_point start = Clock::now();
    all_reduce(pattern.ring, bytes);
    return seconds_since(start);
  }

  // Half of a round trip, seconds, on the first rank of the ring.
  double ping(const Ring& pair, std::int64_t bytes) {
    if (pair.mine < 0) return 0;
    const int peer = pair.after(1);
    const Clock::time_point start = Clock::now();
    if (pair.mine == 0) {
      send(peer, bytes);
      receive(peer, bytes);
    } else {
      receive(peer, bytes);
      send(peer, bytes);
    }
    return seconds_since(start) / 2;
  }

  // A step of `least_steps` or more, each to the rank `by` places on, seconds.
  double exchange(const Ring& ring, std::int64_t bytes, int least_steps, int by = 1) {
    if (ring.mine < 0) return 0;
    const int steps = (least_steps + ring.size() - 1) / ring.size() * ring.size();
    Clock::time_point start;
    for (int step = -settling_steps; step < steps; ++step) {
      if (step == 0) start = Clock::now();
      const std::array requests = {
          transport_.post_receive(stream, ring.before(by), part(received_, bytes)),
          transport_.post_send(stream, ring.after(by), part(sent_, bytes))};
      for (const Transport::Request request : requests) transport_.wait(request);
    }
    return seconds_since(start) / steps;
  }

  // The first rank sends a message to each of the next `receivers`, who answer; when each answer
  // was there, seconds, on the first rank.
  std::vector<double> fan_out(const Ring& ring, std::int64_t bytes, int receivers) {
    std::vector<double> times(static_cast<std::size_t>(receivers));
    if (ring.mine < 0 || ring.mine > receivers) return times;
    if (ring.mine > 0) {
      receive(ring.ranks[0], bytes);
      send(ring.ranks[0], 1);
      return times;
    }
    const Clock::time_point start = Clock::now();
    std::vector<Transport::Request> answers;
    std::vector<Transport::Request> sends;
    for (int i = 0; i < receivers; ++i)
      answers.push_back(
          transport_.post_receive(stream, ring.after(i + 1), received_.bytes().subspan(at(i), 1)));
    for (int i = 0; i < receivers; ++i)
      sends.push_back(transport_.post_send(stream, ring.after(i + 1), part(sent_, bytes)));
    int left = receivers;
    while (left > 0) {
      std::vector<Transport::Request> open;
      for (int i = 0; i < receivers; ++i) {
        if (times[at(i)] > 0) continue;
        if (transport_.test(answers[at(i)])) {
          times[at(i)] = seconds_since(start);
          --left;
        } else {
          open.push_back(answers[at(i)]);
        }
      }
      if (!open.empty()) transport_.wait_any(open);
    }
    for (const Transport::Request request : sends) transport_.wait(request);
    return times;
  }

  // `count` messages to the next rank, `in_flight` at a time, and as many from the one before: when
  // each had come, seconds.
  std::vector<double> stream_of(const Ring& ring, std::int64_t bytes, int count) {
    std::vector<double> came(at(count));
    if (ring.mine < 0) return came;
    std::array<std::array<Transport::Request, 2>, in_flight> requests;
    const auto post = [&](int message) {
      requests[at(message % in_flight)] = {
          transport_.post_receive(stream, ring.before(1), part(received_, bytes)),
          transport_.post_send(stream, ring.after(1), part(sent_, bytes))};
    };
    const Clock::time_point start = Clock::now();
    for (int message = 0; message < std::min(in_flight, count); ++message) post(message);
    for (int message = 0; message < count; ++message) {
      const auto [received, sent] = requests[at(message % in_flight)];
      transport_.wait(received);
      came[at(message)] = seconds_since(start);
      transport_.wait(sent);
      if (message + in_flight < count) post(message + in_flight);
    }
    return came;
  }

  // The library's own over the ranks of the ring, the first of all, of as many whole elements.
  void all_reduce(const Ring& ring, std::int64_t bytes) {
    if (ring.mine < 0) return;
    const auto elements = static_cast<std::size_t>(bytes) / sizeof(float);
    transport_.all_reduce({reinterpret_cast<float*>(sent_.bytes().data()), elements}, ring.size());
  }

  // `count` messages in a row, and an answer of a byte.
  double flood(const Ring& pair, std::int64_t bytes, int count) {
    if (pair.mine < 0) return 0;
    const int peer = pair.after(1);
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < count; ++i) pair.mine == 0 ? send(peer, bytes) : receive(peer, bytes);
    pair.mine == 0 ? receive(peer, 1) : send(peer, 1);
    return seconds_since(start);
  }

 private:
  static std::span<std::byte> part(runtime::Memory& memory, std::int64_t bytes) {
    return memory.bytes().first(static_cast<std::size_t>(bytes));
  }
  void send(int to, std::int64_t bytes) {
    transport_.wait(transport_.post_send(stream, to, part(sent_, bytes)));
  }
  void receive(int from, std::int64_t bytes) {
    transport_.wait(transport_.post_receive(stream, from, part(received_, bytes)));
  }

  Transport& transport_;
  runtime::Memory sent_;
  runtime::Memory received_;
};

// Rank 0's number on all ranks.
double agreed(Transport& transport, double value) {
  runtime::TransportChannel channel(transport);
  runtime::broadcast(channel, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

int repetitions_in(double time, double cost) {
  return static_cast<int>(
      std::clamp(time / std::max(1e-7, cost), double{least_repetitions}, double{most_repetitions}));
}

// Samples on rank 0, which takes part in all.
template <class F>
std::vector<Seconds> repeated(Transport& transport, int count, F pattern) {
  std::vector<Seconds> samples;
  for (int i = 0; i < count; ++i) {
    barrier(transport);
    samples.emplace_back(pattern());
  }
  if (transport.rank() != 0) samples.clear();
  return samples;
}

// Samples on rank 0 of what is played in a row, each the mean of two periods: a rank that is done
// goes on while others are not yet, and in some algorithms they take turns at that.
template <class F>
std::vector<Seconds> periods(Transport& transport, int count, F pattern) {
  std::vector<Seconds> samples;
  std::array<Clock::time_point, 2> ends;  // of the last but one, and of the last
  barrier(transport);
  for (int i = 0; i < count + 2; ++i) {
    pattern();
    const Clock::time_point end = Clock::now();
    if (i > 1) samples.emplace_back(std::chrono::duration<double>(end - ends[0]).count() / 2);
    ends = {ends[1], end};
  }
  if (transport.rank() != 0) samples.clear();
  return samples;
}

// How often `time` allows the pattern, by one that opens connections and fills caches.
template <class F>
int repetitions_for(Transport& transport, double time, F pattern) {
  barrier(transport);
  const Clock::time_point start = Clock::now();
  (void)pattern();
  return repetitions_in(time, agreed(transport, seconds_since(start)));
}

// How often the first of `sizes` is tried, as rank 0 finds it, if `left` seconds are for all of
// them; 0 if it does not fit. Each is expected to take as long for a byte as the last one before
// did, and one repetition is kept for its taking longer.
int agreed_repetitions(Transport& transport, const std::vector<Sample>& before,
                       std::span<const std::int64_t> sizes, double left) {
  double repetitions = least_repetitions;
  if (!before.empty()) {
    const Bytes last = before.back().bytes;
    std::vector<double> times;
    for (const Sample& sample : before) {
      if (sample.bytes == last) times.push_back(sample.time.value());
    }
    const double of_a_byte = median(times) / last.value();
    const double cost = of_a_byte * static_cast<double>(sizes.front());
    const double of_all = of_a_byte * std::accumulate(sizes.begin(), sizes.end(), 0.0);
    // Periods take two more.
    repetitions = left < (least_repetitions + 3) * cost ? 0 : repetitions_in(left, of_all);
  }
  return static_cast<int>(agreed(transport, repetitions));
}

// Time for patterns: a part for the sizes up to `largest`, by weight, and what is left of the whole
// for the larger ones.
class Budget {
 public:
  Budget(const std::vector<Pattern>& list, std::int64_t largest, double time)
      : largest_(largest), time_(time) {
    double weights = 0;
    for (const Pattern& pattern : list) {
      sizes_ += pattern.sizes.size();
      weights +=
          pattern.weight * static_cast<double>(std::ranges::upper_bound(pattern.sizes, largest) -
                                               pattern.sizes.begin());
      if (goes_above(pattern)) weights_above_ += pattern.weight;
    }
    of_size_ = time * (weights_above_ > 0 ? 1 - share_above : 1) / std::max(1.0, weights);
  }
  // For a size up to `largest`, seconds.
  [[nodiscard]] double of_size(const Pattern& pattern) const { return pattern.weight * of_size_; }
  // For a pattern that goes above, when so much has passed, seconds.
  [[nodiscard]] double above(const Pattern& pattern, double passed) const {
    return goes_above(pattern) ? (time_ - passed) * pattern.weight / weights_above_ : 0;
  }
  // Of all, at the pattern's size `index`.
  [[nodiscard]] double share_done(std::size_t index) const {
    return static_cast<double>(sizes_done_ + index) / static_cast<double>(sizes_);
  }
  void done(const Pattern& pattern) {
    sizes_done_ += pattern.sizes.size();
    if (goes_above(pattern)) weights_above_ -= pattern.weight;
  }

 private:
  [[nodiscard]] bool goes_above(const Pattern& pattern) const {
    return pattern.sizes.back() > largest_;
  }

  std::int64_t largest_;
  double time_;
  double of_size_ = 0;
  double weights_above_ = 0;  // of those that are not done
  std::size_t sizes_ = 0;
  std::size_t sizes_done_ = 0;
};

SecondsPerByte slope(double of_few, double of_many, std::int64_t bytes) {
  return SecondsPerByte{std::max(0.0, of_many - of_few) /
                        static_cast<double>((many - few) * bytes)};
}

// All-reduces of the library: of jobs on fewer ranks, a power of two, at a lower weight, and last
// of all ranks.
void add_all_reduces(const Transport& transport, const NodeMap& nodes, std::vector<Pattern>& list) {
  const int all = transport.ranks();
  std::vector<int> counts;
  for (int ranks = 2; ranks < all; ranks *= 2) counts.push_back(ranks);
  counts.push_back(all);
  for (const int ranks : counts) {
    std::vector<int> first(at(ranks));
    std::iota(first.begin(), first.end(), 0);
    const bool between = std::ranges::any_of(first, [&](int r) { return nodes.node[at(r)] > 0; });
    list.push_back({fmt::format("all-reduce of {}, {} ranks", transport.name(), ranks),
                    models::CurveKind::all_reduce, between, ranks,
                    Ring(std::move(first), transport.rank()), ranks < all ? weight_of_fewer : 1});
  }
}

std::vector<Pattern> patterns(const Transport& transport, const NodeMap& nodes) {
  std::vector<Pattern> list;
  // `ranks` take part in all, and `mine` of them in this rank's ring.
  const auto add = [&](bool between, const std::vector<int>& ranks, std::vector<int> mine) {
    if (ranks.size() < 2) return;
    const int count = static_cast<int>(ranks.size());
    const char* where = between ? "between nodes" : "within a node";
    list.push_back({fmt::format("point to point {}", where), models::CurveKind::point_to_point,
                    between, 2, Ring({ranks[0], ranks[1]}, transport.rank())});
    list.push_back({fmt::format("exchange of {} {}", ranks.size(), where),
                    models::CurveKind::exchange, between, count,
                    Ring(std::move(mine), transport.rank())});
  };
  add(true, nodes.leaders(), nodes.leaders_beside(transport.rank()));
  add(false, nodes.ranks_of(0), nodes.ranks_of(0));
  if (transport.has_all_reduce() && transport.ranks() > 1) add_all_reduces(transport, nodes, list);
  return list;
}

}  // namespace

int NodeMap::nodes() const {
  return node.empty() ? 0 : *std::max_element(node.begin(), node.end()) + 1;
}

std::vector<int> NodeMap::ranks_of(int which) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < node.size(); ++rank) {
    if (node[rank] == which) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> NodeMap::leaders() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < node.size(); ++rank) {
    if (node[rank] == static_cast<int>(ranks.size())) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> NodeMap::leaders_beside(int rank) const {
  const std::vector<int> all = leaders();
  if (std::find(all.begin(), all.end(), rank) == all.end()) return {};
  if (nodes_per_leaf < 2) return all;
  const int leaf = node[at(rank)] / nodes_per_leaf;
  std::vector<int> beside;
  for (const int leader : all) {
    if (node[at(leader)] / nodes_per_leaf == leaf) beside.push_back(leader);
  }
  return beside.size() < 2 ? std::vector<int>() : beside;
}

std::vector<int> NodeMap::leaders_across(int rank) const {
  const std::vector<int> all = leaders();
  if (nodes_per_leaf < 2 || std::find(all.begin(), all.end(), rank) == all.end()) return {};
  const int leaf = node[at(rank)] / nodes_per_leaf;
  const int first = leaf - leaf % 2;
  if ((first + 2) * nodes_per_leaf > nodes()) return {};
  const int place = first * nodes_per_leaf + node[at(rank)] % nodes_per_leaf;
  return {all[at(place)], all[at(place + nodes_per_leaf)]};
}

NodeMap find_nodes(Transport& transport, const std::string& host) {
  runtime::TransportChannel channel(transport);
  std::string text;
  std::map<std::string, int> numbers;
  for (const std::string& name : runtime::gather_texts(channel, host))
    text += fmt::format("{} ",
                        numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second);
  std::istringstream words(runtime::broadcast_text(channel, text));
  NodeMap map;
  for (int number = 0; words >> number;) map.node.push_back(number);
  PACELINE_ASSERT(static_cast<int>(map.node.size()) == transport.ranks(), "every rank has a node");
  return map;
}

std::vector<MessageTimes> measure_messages(Transport& transport, const NodeMap& nodes,
                                           const MessageRequest& request) {
  PACELINE_ASSERT(!request.sizes.empty(), "there are sizes to measure");
  const Clock::time_point start = Clock::now();
  const std::int64_t largest = request.sizes.back();
  const std::vector<std::int64_t>& all_reduce_sizes =
      request.all_reduce_sizes.empty() ? request.sizes : request.all_reduce_sizes;
  Patterns play(transport, largest, transport.has_all_reduce() ? all_reduce_sizes.back() : 0);
  std::vector<Pattern> list = patterns(transport, nodes);
  for (Pattern& pattern : list)
    pattern.sizes =
        pattern.kind == models::CurveKind::all_reduce ? all_reduce_sizes : request.sizes;
  Budget budget(list, largest, agreed(transport, request.time.value()));
  std::vector<MessageTimes> all;
  for (const Pattern& pattern : list) {
    MessageTimes times{pattern.kind, pattern.between_nodes, pattern.ranks, {}};
    const double passed = seconds_since(start);
    const double end_above = passed + budget.above(pattern, passed);
    for (std::size_t i = 0; i < pattern.sizes.size(); ++i) {
      const std::int64_t size = pattern.sizes[i];
      const auto play_once = [&] { return play.once(pattern, size); };
      int repetitions = 0;  // to be found by a first one
      if (size > largest) {
        repetitions =
            agreed_repetitions(transport, times.samples, std::span(pattern.sizes).subspan(i),
                               end_above - seconds_since(start));
        if (repetitions == 0) break;
      }
      if (transport.rank() == 0 && request.progress)
        request.progress(fmt::format("{}, {} bytes", pattern.what, size), budget.share_done(i));
      if (repetitions == 0)
        repetitions = repetitions_for(transport, budget.of_size(pattern), play_once);
      const auto samples = pattern.kind == models::CurveKind::all_reduce
                               ? periods(transport, repetitions, play_once)
                               : repeated(transport, repetitions, play_once);
      for (const Seconds sample : samples)
        times.samples.push_back({Bytes{static_cast<double>(size)}, sample});
    }
    budget.done(pattern);
    all.push_back(std::move(times));
  }
  return all;
}

std::vector<StreamTimes> measure_streams(Transport& transport, const NodeMap& nodes,
                                         std::int64_t bytes, int repetitions) {
  Patterns play(transport, bytes);
  std::vector<StreamTimes> all;
  for (const Pattern& pattern : patterns(transport, nodes)) {
    if (pattern.kind != models::CurveKind::exchange) continue;
    StreamTimes times{pattern.between_nodes, pattern.ranks, {}};
    for (int i = 0; i <= repetitions; ++i) {
      barrier(transport);
      const auto came = play.stream_of(pattern.ring, bytes, many + in_flight);
      // The first opens windows.
      if (i > 0 && transport.rank() == 0)
        times.samples.push_back(slope(came[at(few - 1)], came[at(many - 1)], bytes));
    }
    all.push_back(std::move(times));
  }
  return all;
}

std::vector<BothWaysTimes> measure_both_ways(Transport& transport, const NodeMap& nodes,
                                             std::int64_t bytes, int repetitions) {
  constexpr int steps = 2;  // as many messages each way as in a round trip
  Patterns play(transport, bytes);
  std::vector<BothWaysTimes> all;
  for (const Pattern& pattern : patterns(transport, nodes)) {
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
  Patterns play(transport, bytes);
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
  Patterns play(transport, bytes);
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
  Patterns play(transport, bytes);
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
  if (transport.rank() == 0) std::sort(shares.begin(), shares.end());
  return agreed(transport, shares.empty() ? 0 : std::clamp(shares[shares.size() / 2], 0.0, 1.0));
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
  Patterns play(transport, bytes);
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
