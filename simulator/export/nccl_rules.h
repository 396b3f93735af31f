// By what rules of size NCCL's tuner plugin makes NCCL's all-reduces faster, and what numbers in the
// place of its own make NCCL choose so by itself.
//
// NCCL takes what its own model expects the least time of (simulator/cost/nccl_model.h). What that
// then takes is another model's (simulator/engine/nccl_practice.h: the same with the links, latencies
// and measured all-reduces of the cluster and its profile). Where the two differ in which algorithm
// and protocol is the fastest, a rule takes the latter's. CollNet and PAT, which neither model has,
// are never chosen; NVLS and NVLSTree are, where NCCL has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/engine/nccl_practice.h"

namespace paceline::simulator {

// An algorithm with a protocol.
enum class NcclWayAlgorithm { tree, ring, nvls, nvls_tree };
struct NcclWay {
  NcclWayAlgorithm algorithm = NcclWayAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;

  bool operator==(const NcclWay&) const = default;
};
// As NCCL's tuner plugins write them: "nvls_tree", "ll128".
[[nodiscard]] std::string_view tuner_name(NcclWayAlgorithm algorithm);
[[nodiscard]] std::string_view tuner_name(NcclProtocol protocol);

// What NCCL may take on the practice's ranks, in NCCL's order, in which ties go to the first.
[[nodiscard]] std::vector<NcclWay> nccl_ways(const NcclPractice& practice);
// What NCCL expects of it, and what it takes. The way must be one of nccl_ways().
[[nodiscard]] Seconds expected(const NcclPractice& practice, NcclWay way, Bytes bytes);
[[nodiscard]] Seconds taken(const NcclPractice& practice, NcclWay way, Bytes bytes);
// NCCL's own choice; not for one rank.
[[nodiscard]] NcclWay own_choice(const NcclPractice& practice, Bytes bytes);

// Sizes from `least` to `most` bytes, both included, whose algorithm a plan says.
struct NcclAsked {
  std::int64_t least = 0;
  std::int64_t most = 0;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
};

struct NcclRule {
  std::int64_t least = 0;
  std::int64_t most = 0;
  NcclWay way;
  bool is_asked = false;  // a plan says the algorithm
  // How much longer NCCL's own choice takes, as a share of the rule's time: the most at the sizes
  // that were tried; where a plan says the algorithm, the least, which may be below 0.
  double gain = 0;

  bool operator==(const NcclRule&) const = default;
};

// A gain below this is left to NCCL: the models are no better than that.
inline constexpr double least_nccl_gain = 0.01;
// The sizes that have rules: all that frameworks send.
inline constexpr std::int64_t most_rule_bytes = std::int64_t{1} << 34;

// What the sizes have that no plan asks for: no rule; one where it gains least_nccl_gain or more; or
// that, and else NCCL's own choice, so that every size has a rule.
enum class NcclElsewhere { leave, improve, fill };

// Rules in the order of sizes, no two of which overlap: for the sizes of `asked` the fastest protocol
// of their algorithm, for all others what `elsewhere` says. Sizes are tried eight an octave, and what
// lies between two of them that differ is told apart to the byte. The ranges of `asked` must be in
// order and must not overlap. Nothing for one rank.
[[nodiscard]] std::vector<NcclRule> nccl_rules(const NcclPractice& practice,
                                               std::span<const NcclAsked> asked = {},
                                               NcclElsewhere elsewhere = NcclElsewhere::improve);

// A number in the place of one of NCCL's, as the plugin's file names it: "base tree ll".
struct NcclConstant {
  std::string name;
  double value = 0;
};

// Numbers with which NCCL's own choice is what takes least. Its constants say latencies, and a most
// of some bandwidths; the bandwidth of a ring comes from the search of the topology and has none. So
// the unit of time is another: with eta the share of its bandwidth that a ring gets, all latencies
// are eta times what they take, and what NCCL then expects is eta times what it takes. Trees that get
// another share have their most lowered, where theirs is the lesser one.
struct NcclConstants {
  std::vector<NcclConstant> values;
  double unit = 1;  // eta: NCCL's log will show this times what is expected
  // What posting to the NIC takes, where NCCL's own value for it would hide a step of a ring:
  // NCCL_NET_OVERHEAD, in nanoseconds, because it is no constant of the plugin's.
  std::optional<int> net_overhead_ns = {};
  bool trees_fall_short = false;   // trees get more of their bandwidth than these constants can say
  std::vector<std::string> notes;  // what these constants cannot say, a line each
};
[[nodiscard]] NcclConstants nccl_constants(const NcclPractice& practice);

}  // namespace paceline::simulator
