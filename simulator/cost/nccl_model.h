// What NCCL itself expects of a collective, and so chooses: ring or tree, protocol LL, LL128 or
// Simple, and how many channels. A model of another program's model (src/graph/tuning.cc; key
// "NCCL tuning" in docs/sources.md), not one of our engines: it is the baseline that a plan is to
// beat. CollNet, NVLS and PAT, which need switches that reduce, are left out.
//
// With p ranks on N nodes, C channels of b GB/s each in the graph of the algorithm (NcclGraph), n
// bytes, everything in GB/s and seconds (ncclTopoTuneModel, ncclTopoGetAlgoTime):
//   time      = latency + n / bandwidth
//   bandwidth: ring   B p / T,  B = C b; LL: min(LL's most, share B); LL128: min(share B,
//                     C most a channel)
//              tree   B c(n) / 2,      B = min(0.92 C b, C most a channel); LL: min(B / 3.8, LL's
//                     most); LL128: min(share B, C most a channel); 0.85 of it where all traffic of
//                     a NIC passes one GPU; c(n) is treeCorrectionFactor
// inter is NCCL's network step and what the network's plugin tells it (Link::told_latency), twice with Simple.
//   latency:   ring   base + (T - S) intra + S inter; Simple on several nodes, in all-reduces: times
//                     1.4 (1.9 before Ampere) from 64 bytes a rank and channel on; of broadcast and
//                     reduce base + one step, over the network on several nodes
//              tree   base + 2 ((p/N - 1) intra + floor(log2 N) inter)
//
// A ring has T steps, S of them over the network:
//   all-reduce                   T = 2(p-1)   S = 2(N-1)
//   all-gather, reduce-scatter   T = p-1      S = N-1
//   broadcast, reduce            T = p
// Trees are for all-reduces alone; all-gathers and reduce-scatters of one rank a node have PAT
// (nccl_pat.h). n counts the whole bucket, as the column `size` of nccl-tests does. An all-to-all is a
// group of sends and receives, for which NCCL has no model; gathers and scatters are, too.
//
// time grows with n within one algorithm and protocol, except for trees at the powers of two at which
// c(n) rises; that is NCCL's. The latency of rings only jumps up.
//
// The hardware is the cluster's, in NCCL's way: a link carries a share of its line rate, and
// ncclTopoCompute cuts that into channels of one of a few speeds. Of that search we keep the
// counting of bandwidth (ports of GPUs, NICs), not the paths. What the search sees and a Cluster
// does not say is taken to be: a NIC near each GPU (GPUDirect), Intel processors unless said
// otherwise, no socket between GPUs on PCIe, and an NVSwitch between GPUs on NVLink. Nodes are those
// that ranks are placed on. Neither profiles nor the fabric enter: NCCL does not know them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/nccl_tables.h"

namespace paceline::simulator {

// The vendor of the nodes' processors, as far as NCCL asks for it.
enum class CpuVendor { intel, amd };

// Throws InputError that suggests the nearest name.
[[nodiscard]] CpuVendor cpu_vendor_from_name(std::string_view text);

// Whether a device is a GPU: the library of its vendor is NCCL or RCCL.
[[nodiscard]] bool is_gpu(const models::Device& device);
// Whether devices exchange buckets themselves, by the library of their vendor, and not their hosts.
[[nodiscard]] bool has_collectives(const models::Device& device);
// Whether that library is NCCL, which has a model.
[[nodiscard]] bool sums_by_nccl(const models::Device& device);
// Throws InputError where it is another one.
void check_runs_nccl(const models::Device& device);

// Whether NCCL has the collective: all but gather and scatter, which are sends and receives of its users.
[[nodiscard]] bool is_nccls(models::Collective collective);
// Throws InputError unless it has.
void check_is_nccls(models::Collective collective);
// Whether NCCL's users make it of sends and receives, for which NCCL chooses no algorithm. Its size is
// that of a rank's buffer, and not of what all ranks have together.
[[nodiscard]] bool is_sends_and_receives(models::Collective collective);
// Throws InputError unless NCCL's model knows it: all of these but all-to-all.
void check_has_model(models::Collective collective);

// What the topology search gives an algorithm: channels, and what one of them carries.
struct NcclGraph {
  int channels = 0;
  double intra_gbps = 0;          // of one channel, inside a node
  double inter_gbps = 0;          // of one channel, between nodes
  bool through_one_rank = false;  // in trees, all traffic of a NIC, both ways, passes one GPU
};

// What a time is made of: `transfer` is that of the bytes.
struct NcclTime {
  Seconds latency;
  Seconds transfer;
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  int channels = 0;
  Seconds time;
};

class NcclModel {
 public:
  // Throws InputError if the ranks do not fit the cluster, its device is no GPU, or NCCL has no such
  // collective (gather, scatter). The tables are copied.
  NcclModel(NcclTables tables, const models::Cluster& cluster, int ranks,
            models::Collective collective = models::Collective::all_reduce,
            CpuVendor cpu = CpuVendor::intel);

  // The time of one collective of `bytes` >= 0. There is none where NCCL does not use the two
  // together for it, and for one rank.
  [[nodiscard]] std::optional<Seconds> time(NcclAlgorithm algorithm, NcclProtocol protocol,
                                            Bytes bytes) const;
  // The same in two parts, whose sum it is.
  [[nodiscard]] std::optional<NcclTime> parts(NcclAlgorithm algorithm, NcclProtocol protocol,
                                              Bytes bytes) const;
  // The least of these, the first in NCCL's order at a tie; nothing for one rank. With `only`, of
  // that algorithm, as NCCL_ALGO makes it.
  [[nodiscard]] std::optional<NcclChoice> choice(Bytes bytes,
                                                 std::optional<NcclAlgorithm> only = {}) const;
  // The time of the choice; 0 for one rank.
  [[nodiscard]] Seconds time(Bytes bytes) const;

  // n / bandwidth and latency of the formula above, before c(n) and the jump of rings.
  [[nodiscard]] BytesPerSecond bandwidth(NcclAlgorithm algorithm, NcclProtocol protocol) const;
  [[nodiscard]] Seconds latency(NcclAlgorithm algorithm, NcclProtocol protocol) const;
  // The base and one step of a protocol: what a message takes without its bytes.
  [[nodiscard]] Seconds message_latency(NcclProtocol protocol) const;
  // Channels of one operation.
  [[nodiscard]] int channels(NcclAlgorithm algorithm, NcclProtocol protocol, Bytes bytes) const;

  [[nodiscard]] const NcclGraph& graph(NcclAlgorithm algorithm) const;
  [[nodiscard]] int communicator_channels() const { return communicator_channels_; }
  [[nodiscard]] const NcclTables& tables() const { return tables_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] models::Collective collective() const { return collective_; }
  // The latency that the network's plugin reports, as NCCL adds it to a step over the network. NCCL counts
  // it twice with Simple. It is 0 on one node.
  [[nodiscard]] Seconds told_latency(NcclProtocol protocol) const {
    return (protocol == NcclProtocol::simple ? 2 : 1) * told_latency_;
  }
  // Nodes that have ranks, and how many the fullest of them has.
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] int most_on_a_node() const { return most_on_a_node_; }
  // The NICs that the ranks of the node with fewest of them use: those beside them (models::nics_beside); a
  // rank that is alone on its node uses one.
  [[nodiscard]] int nics_on_a_node() const { return nics_on_a_node_; }
  // Whether each of these nodes has as many.
  [[nodiscard]] bool are_nodes_alike() const { return are_nodes_alike_; }
  [[nodiscard]] int compute_capability() const { return compute_capability_; }
  // Whether the device stands in the table; otherwise it was placed by the rates that it has.
  [[nodiscard]] bool knows_device() const { return knows_device_; }
  [[nodiscard]] bool on_nvlink() const { return on_nvlink_; }

 private:
  struct Cost {
    double latency_us = 0;
    double bandwidth_gbps = 0;  // 0 where it is not used
  };
  [[nodiscard]] bool offers_ll128() const;
  [[nodiscard]] double bus_bandwidth(NcclAlgorithm algorithm, NcclProtocol protocol) const;
  [[nodiscard]] double node_step_us(NcclAlgorithm algorithm, NcclProtocol protocol) const;
  [[nodiscard]] double network_step_us(NcclAlgorithm algorithm, NcclProtocol protocol) const;
  [[nodiscard]] double first_step_us(NcclProtocol protocol) const;
  [[nodiscard]] double step_latencies(NcclAlgorithm algorithm, NcclProtocol protocol) const;
  [[nodiscard]] const Cost& cost(NcclAlgorithm algorithm, NcclProtocol protocol) const;

  NcclTables tables_;
  models::Collective collective_;
  CpuVendor cpu_;
  int ranks_ = 1;
  int nodes_ = 1;
  Seconds told_latency_{0};
  int compute_capability_ = 0;
  bool knows_device_ = false;
  bool on_nvlink_ = false;
  int most_on_a_node_ = 1;  // ranks
  int nics_on_a_node_ = 1;
  bool are_nodes_alike_ = true;
  std::array<NcclGraph, 2> graphs_;
  int communicator_channels_ = 0;
  std::array<std::array<Cost, 3>, 2> costs_{};
};

// The algorithms with their protocols in the order in which people list them: rings first.
inline constexpr std::array<std::pair<NcclAlgorithm, NcclProtocol>, 6> nccl_pairs = {
    {{NcclAlgorithm::ring, NcclProtocol::ll},
     {NcclAlgorithm::ring, NcclProtocol::ll128},
     {NcclAlgorithm::ring, NcclProtocol::simple},
     {NcclAlgorithm::tree, NcclProtocol::ll},
     {NcclAlgorithm::tree, NcclProtocol::ll128},
     {NcclAlgorithm::tree, NcclProtocol::simple}}};

// The ratio of busbw to algbw in nccl-tests (doc/PERFORMANCE.md). It is the number of bytes that a ring sends
// over each of its links for each byte of the size.
[[nodiscard]] double bus_factor(models::Collective collective, int ranks);
// nccl-tests counts one rank's buffer where is_sends_and_receives(), and the bucket has those of all ranks.
// Convert counted bytes to those of the bucket, and back.
[[nodiscard]] Bytes bucket_of(models::Collective collective, int ranks, Bytes counted);
[[nodiscard]] Bytes counted_of(models::Collective collective, int ranks, Bytes bucket);

// The bus bandwidth of a collective that takes `time`, as nccl-tests defines it (src/*.cu): of `bytes` as its
// column `size` has them, those of a rank's buffer before an all-to-all, and else of the whole bucket.
[[nodiscard]] BytesPerSecond bus_bandwidth(models::Collective collective, int ranks, Bytes bytes,
                                           Seconds time);
[[nodiscard]] inline BytesPerSecond bus_bandwidth(int ranks, Bytes bytes, Seconds time) {
  return bus_bandwidth(models::Collective::all_reduce, ranks, bytes, time);
}

// "9.0" for compute capability 90.
[[nodiscard]] std::string described_capability(int capability);

// "NCCL 2.28.3-1's own tuning model (tuning.cc)"
[[nodiscard]] std::string described(const NcclTables& tables);

}  // namespace paceline::simulator
