// Tests: tests/simulator/export/nccl_rules_test.cc.
#include "simulator/export/nccl_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

constexpr std::array way_names = {"tree", "ring", "nvls", "nvls_tree"};
constexpr std::array protocol_names = {"ll", "ll128", "simple"};
constexpr std::array generation_names = {"volta", "ampere", "hopper", "blackwell"};

// The algorithm of a way over rings or trees.
std::optional<NcclAlgorithm> plain(NcclWayAlgorithm algorithm) {
  if (algorithm == NcclWayAlgorithm::tree) return NcclAlgorithm::tree;
  if (algorithm == NcclWayAlgorithm::ring) return NcclAlgorithm::ring;
  return std::nullopt;
}

template <class Time>
NcclWay least_of(const std::vector<NcclWay>& ways, const Time& time) {
  PACELINE_ASSERT(!ways.empty(), "several ranks have a way");
  return *std::min_element(ways.begin(), ways.end(),
                           [&](const NcclWay& a, const NcclWay& b) { return time(a) < time(b); });
}

// What the rules say of one size.
struct Decision {
  std::optional<NcclWay> way;
  bool is_asked = false;

  bool operator==(const Decision&) const = default;
};

class Rules {
 public:
  Rules(const NcclPractice& practice, std::span<const NcclAsked> asked, NcclElsewhere elsewhere)
      : practice_(practice), ways_(nccl_ways(practice)), asked_(asked), elsewhere_(elsewhere) {}

  [[nodiscard]] std::vector<NcclRule> all() {
    std::int64_t begin = 1;
    for (const NcclAsked& range : asked_) {
      add_between(begin, range.least - 1, nullptr);
      add_between(range.least, range.most, &range);
      begin = range.most + 1;
    }
    add_between(begin, most_rule_bytes, nullptr);
    return std::move(rules_);
  }

 private:
  [[nodiscard]] Seconds time(NcclWay way, std::int64_t bytes) const {
    return taken(practice_, way, Bytes{static_cast<double>(bytes)});
  }
  [[nodiscard]] double gain(NcclWay way, std::int64_t bytes) const {
    return time(own_choice(practice_, Bytes{static_cast<double>(bytes)}), bytes) /
               time(way, bytes) -
           1;
  }
  [[nodiscard]] Decision decide(std::int64_t bytes, const NcclAsked* asked) const {
    std::vector<NcclWay> ways;
    for (const NcclWay& way : ways_) {
      if (asked == nullptr || plain(way.algorithm) == asked->algorithm) ways.push_back(way);
    }
    const NcclWay best = least_of(ways, [&](NcclWay way) { return time(way, bytes); });
    if (asked != nullptr) return {best, true};
    if (elsewhere_ == NcclElsewhere::leave) return {};
    if (gain(best, bytes) >= least_nccl_gain) return {best, false};
    if (elsewhere_ == NcclElsewhere::improve) return {};
    return {own_choice(practice_, Bytes{static_cast<double>(bytes)}), false};
  }
  // The rules of sizes that no range of `asked` cuts.
  void add_between(std::int64_t least, std::int64_t most, const NcclAsked* asked) {
    if (least > most) return;
    std::int64_t from = least;
    Decision decision = decide(least, asked);
    add(least, least, decision);
    while (from < most) {
      const std::int64_t to = std::min(next_size(from), most);
      const Decision next = decide(to, asked);
      const std::int64_t last = next == decision ? to : last_alike(from, to, decision, asked);
      add(from + 1, last, decision);
      if (last == to) {
        from = to;
        continue;
      }
      from = last + 1;
      decision = decide(from, asked);
      add(from, from, decision);
    }
  }
  // Eight sizes an octave, and the last before each power of two, at which trees change.
  static std::int64_t next_size(std::int64_t from) {
    std::int64_t power = 1;
    while (2 * power <= from) power *= 2;
    const std::int64_t step = std::max<std::int64_t>(1, power / 8);
    const std::int64_t next = from - from % step + step;
    return next == 2 * power && from < 2 * power - 1 ? 2 * power - 1 : next;
  }
  // The last size from which on the decision is another; `from` has it, `to` has not.
  [[nodiscard]] std::int64_t last_alike(std::int64_t from, std::int64_t to,
                                        const Decision& decision, const NcclAsked* asked) const {
    while (to - from > 1) {
      const std::int64_t middle = from + (to - from) / 2;
      (decide(middle, asked) == decision ? from : to) = middle;
    }
    return from;
  }
  void add(std::int64_t least, std::int64_t most, const Decision& decision) {
    if (least > most || !decision.way) return;
    const bool goes_on = !rules_.empty() && rules_.back().most == least - 1 &&
                         rules_.back().way == *decision.way &&
                         rules_.back().is_asked == decision.is_asked;
    if (!goes_on)
      rules_.push_back({least, most, *decision.way, decision.is_asked, gain(*decision.way, least)});
    NcclRule& rule = rules_.back();
    rule.most = most;
    const double here = gain(*decision.way, most);
    rule.gain = rule.is_asked ? std::min(rule.gain, here) : std::max(rule.gain, here);
  }

  const NcclPractice& practice_;
  std::vector<NcclWay> ways_;
  std::span<const NcclAsked> asked_;
  NcclElsewhere elsewhere_;
  std::vector<NcclRule> rules_;
};

// Adds the constants of rings and trees: their latencies in the unit.
void add_latencies(const NcclPractice& practice, NcclConstants& constants) {
  const NcclTables& tables = practice.slowed().tables();
  const NcclModel& model = practice.model();
  const bool has_intra = model.ranks() > model.nodes();
  const bool nvlink = model.on_nvlink() && has_intra;
  std::optional<double> least_overhead_us;
  for (const NcclAlgorithm algorithm : nccl_algorithms) {
    const auto a = to_size(algorithm);
    for (const NcclProtocol protocol : nccl_protocols) {
      const auto p = to_size(protocol);
      const std::string pair = fmt::format("{} {}", way_names[a], protocol_names[p]);
      const auto add = [&](const std::string& kind, double us) {
        constants.values.push_back({fmt::format("{} {}", kind, pair), constants.unit * us});
      };
      add("base", tables.base_latency_us[a][p]);
      double intra = (nvlink ? tables.nvlink_latency_us : tables.pci_latency_us)[a][p];
      // Between nodes a step of a ring takes what posting to the NIC takes, at least. That is no
      // constant of the plugin's, but the step is.
      if (model.nodes() > 1 && algorithm == NcclAlgorithm::ring) {
        const auto posting = [&](const NcclTables& of) {
          return of.latency.net_overhead_intel_us *
                 (protocol == NcclProtocol::simple ? of.latency.net_overhead_simple : 1);
        };
        intra = std::max(intra, posting(tables));
        const NcclTables& own = model.tables();
        const double scale = posting(own) / own.latency.net_overhead_intel_us;
        if (constants.unit * intra < posting(own))
          least_overhead_us = std::min(least_overhead_us.value_or(constants.unit * intra / scale),
                                       constants.unit * intra / scale);
      }
      add(nvlink ? "step nvlink" : "step pci", intra);
      // NCCL adds what the network's plugin tells.
      constexpr double micro = 1e-6;
      const double told_us = model.told_latency(protocol).value() / micro;
      add("step net", std::max(0.0, tables.network_latency_us[a][p] - told_us / constants.unit));
    }
  }
  constexpr double nano_a_micro = 1000;
  if (least_overhead_us) {
    constants.net_overhead_ns = static_cast<int>(*least_overhead_us * nano_a_micro);
    constants.notes.push_back(fmt::format("these constants need NCCL_NET_OVERHEAD={} (ns), too",
                                          *constants.net_overhead_ns));
  }
  if (const auto switched = practice.latency_in_switches()) {
    const double factor = constants.unit * (switched->first / switched->second);
    constexpr double node_us = 25;
    constexpr double network_us = 14;
    if (model.nodes() == 1) {
      constants.values.push_back({"step nvlink nvls simple", factor * node_us});
    } else {
      constants.values.push_back({"step nvlink nvls_tree simple", factor * node_us});
      constants.values.push_back({"step net nvls_tree simple", factor * network_us});
    }
    constants.notes.push_back(
        "NVLS: its latency only, because no constant of NCCL says its bandwidth");
  }
}

// Adds the most of a tree's channel where a tree gets a lesser share of its bandwidth than a ring.
void add_tree_bandwidths(const NcclPractice& practice, NcclConstants& constants) {
  const NcclModel& model = practice.model();
  const double share = practice.eta(NcclAlgorithm::tree) / practice.eta(NcclAlgorithm::ring);
  constexpr double alike = 1e-3;
  constants.trees_fall_short = share > 1 + alike;
  if (constants.trees_fall_short)
    constants.notes.push_back(
        fmt::format("trees get {:.3g} times the share of their bandwidth that rings get, and no "
                    "constant raises "
                    "it",
                    share));
  if (share > 1 - alike) return;
  const NcclGraph& graph = model.graph(NcclAlgorithm::tree);
  const int capability = model.compute_capability();
  const std::size_t generation = capability >= 100  ? 3
                                 : capability >= 90 ? 2
                                 : capability >= 80 ? 1
                                                    : 0;
  const char* scale = model.nodes() == 1 ? "1" : model.nodes() == 2 ? "2" : "4";
  constexpr double giga = 1e9;
  for (const auto& [protocol, name] : {std::pair(NcclProtocol::simple, "tree-most"),
                                       std::pair(NcclProtocol::ll128, "tree-ll128-most")}) {
    double bus = 2 * model.bandwidth(NcclAlgorithm::tree, protocol).value() / giga;
    if (bus == 0) continue;
    if (graph.through_one_rank) bus /= model.tables().efficiency.tree_through_one_rank;
    constants.values.push_back({fmt::format("{} {} {}", name, generation_names[generation], scale),
                                share * bus / graph.channels});
  }
}

}  // namespace

std::string_view tuner_name(NcclWayAlgorithm algorithm) {
  return way_names[to_size(algorithm)];
}

std::string_view tuner_name(NcclProtocol protocol) {
  return protocol_names[to_size(protocol)];
}

std::vector<NcclWay> nccl_ways(const NcclPractice& practice) {
  std::vector<NcclWay> ways;
  for (const auto algorithm : {NcclWayAlgorithm::tree, NcclWayAlgorithm::ring}) {
    for (const NcclProtocol protocol : nccl_protocols) {
      if (practice.model().time(*plain(algorithm), protocol, Bytes{1}))
        ways.push_back({algorithm, protocol});
    }
  }
  if (practice.expected_of_switches(Bytes{1}))
    ways.push_back(
        {practice.model().nodes() == 1 ? NcclWayAlgorithm::nvls : NcclWayAlgorithm::nvls_tree,
         NcclProtocol::simple});
  return ways;
}

Seconds expected(const NcclPractice& practice, NcclWay way, Bytes bytes) {
  const auto algorithm = plain(way.algorithm);
  return algorithm ? *practice.model().time(*algorithm, way.protocol, bytes)
                   : *practice.expected_of_switches(bytes);
}

Seconds taken(const NcclPractice& practice, NcclWay way, Bytes bytes) {
  const auto algorithm = plain(way.algorithm);
  return algorithm ? *practice.time(*algorithm, way.protocol, bytes)
                   : *practice.time_in_switches(bytes);
}

NcclWay own_choice(const NcclPractice& practice, Bytes bytes) {
  return least_of(nccl_ways(practice), [&](NcclWay way) { return expected(practice, way, bytes); });
}

std::vector<NcclRule> nccl_rules(const NcclPractice& practice, std::span<const NcclAsked> asked,
                                 NcclElsewhere elsewhere) {
  if (practice.ranks() == 1) return {};
  return Rules(practice, asked, elsewhere).all();
}

NcclConstants nccl_constants(const NcclPractice& practice) {
  NcclConstants constants;
  if (practice.ranks() == 1) return constants;
  constants.unit = practice.eta(NcclAlgorithm::ring);
  add_latencies(practice, constants);
  add_tree_bandwidths(practice, constants);
  return constants;
}

}  // namespace paceline::simulator
