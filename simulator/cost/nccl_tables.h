// The numbers of NCCL's tuning model, of one version, as read from simulator/cost/nccl/*.yaml. What
// they mean and how they are used is in nccl_model.h; each section of the files names its source.
//
// Plain numbers with the unit in the name, as the source has them: microseconds and GB/s (1e9
// bytes per second). Rows of protocols are in the order of NcclProtocol.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::simulator {

enum class NcclAlgorithm { tree, ring };        // in NCCL's order, in which ties go to the first
enum class NcclProtocol { ll, ll128, simple };  // likewise
enum class NcclGeneration { volta, ampere, hopper, blackwell };  // volta and all before it

inline constexpr std::array nccl_algorithms = {NcclAlgorithm::tree, NcclAlgorithm::ring};
inline constexpr std::array nccl_protocols = {NcclProtocol::ll, NcclProtocol::ll128,
                                              NcclProtocol::simple};

[[nodiscard]] std::string_view name(NcclAlgorithm algorithm);  // "tree", "ring"
[[nodiscard]] std::string_view name(NcclProtocol protocol);    // "LL", "LL128", "Simple"

struct NcclTables {
  using Row = std::array<double, 3>;   // by protocol
  using Pair = std::array<Row, 2>;     // by algorithm, protocol
  using ByNodes = std::array<Row, 4>;  // by generation; then on 1, 2, and more nodes

  std::string version;  // "2.28.3-1"
  std::string url;
  std::string source;
  std::vector<std::pair<std::string, std::string>> sources;  // of each section

  Pair base_latency_us{};
  Pair nvlink_latency_us{};
  Pair pci_latency_us{};
  Pair network_latency_us{};
  ByNodes ll_most_gbps{};
  ByNodes ring_ll128_most_gbps{};
  ByNodes tree_ll128_most_gbps{};
  ByNodes tree_most_gbps{};

  struct {
    double ring_ll = 0;
    double ring_ll128 = 0;
    double ring_ll128_one_rank_a_node = 0;
    double tree = 0;
    double tree_ll = 0;
    double tree_ll128_one_node = 0;
    double tree_ll128 = 0;
    double tree_through_one_rank = 0;
  } efficiency;

  // PAT, parallel aggregated trees: all-gathers and reduce-scatters where each node has one rank. Versions
  // before 2.23 have none.
  struct Pat {
    double base_us = 0;
    double step_share = 0;  // of a network step of trees, each of log2(nodes) times
    double rank_us = 0;     // for each rank
    double efficiency = 0;
  };
  std::optional<Pat> pat = {};

  std::array<std::vector<double>, 3> tree_correction;  // by protocol; then by log2(bytes / 64)

  struct {
    double net_overhead_intel_us = 0;
    double net_overhead_amd_us = 0;
    double net_overhead_simple = 0;
    int ring_network_steps_less = 0;
    bool one_rank_a_node_as_tree = false;
    double plateau_bytes = 0;
    double plateau_before_ampere = 0;
    double plateau = 0;
  } latency;

  std::vector<int> ll128_only;  // compute capabilities with LL128; empty where `ll128_from` says
  int ll128_from = 0;

  struct {
    Row bytes_a_thread{};
    Row most{};
    double ring_simple_slow = 0;
    double slow_ring_gbps = 0;
  } threads;

  struct {
    std::array<std::vector<double>, 3> intra_gbps;  // before Hopper, Hopper, Blackwell; falling
    std::array<std::vector<double>, 3> inter_gbps;
    double least_next = 0;
    int simple_tree_from = 0;
    double split_from_gbps = 0;
    double split_from_after_ampere_gbps = 0;
    int split_channels = 0;
    int most_channels = 0;
    double fallback_gbps = 0;
    int copies = 0;
    int most_communicator_channels = 0;
    int recopied_from = 0;
    double recopied_above_gbps = 0;
    int recopied_below = 0;
  } search;

  struct {
    double pascal = 0;
    double volta = 0;
    double ampere = 0;
    double hopper = 0;
    double blackwell = 0;
    double pci = 0;
  } link_share;
};

// `file` names the text in errors. Throws InputError (file, line, column) for what is no such file.
[[nodiscard]] NcclTables parse_nccl_tables(std::string_view text, const std::string& file);

// The tables of a version that ships: "2.20" or "2.28". Throws InputError that suggests the nearest.
[[nodiscard]] NcclTables nccl_tables(std::string_view version);
[[nodiscard]] std::vector<std::string> nccl_versions();  // the newest last
// The one of them that is nearest to a release such as "2.5.6"; the older one where two are as near.
[[nodiscard]] std::string nearest_nccl_version(std::string_view version);

}  // namespace paceline::simulator
