// What a collective by NCCL takes on a cluster. It chooses ring or tree and a protocol by its own
// tuning model (simulator/cost/nccl_model.h), which is left as it is; what it has chosen then takes
// longer than that model expects, in two ways:
//
//   time = latency + transfer / eta
//
// latency: NCCL's own, base and steps, times nccl_latency_factor(), without what a network's plugin tells
// NCCL, by which it only chooses. A step over EFA or TCP, for
// which NCCL has no constants (its network row is InfiniBand's), takes at least what is known of
// these: the link's latency, over TCP nccl_tcp_step() at least; with protocol Simple over EFA,
// nccl_efa_completion more.
//
// Where an all-reduce was measured (Pace), LL's latencies are multiplied by what it tells, and the
// other protocols' grow by as much: what a host and its hops add is theirs, too, and the rest of
// their constants is the time of a chunk, which it does not change.
//
// transfer: NCCL's own, with its shares for protocols and trees, but with the bandwidth that links
// have in place of the channels that the search counts from line rates. eta is the least of
//   node    what an engine gets from a ring over the g ranks of one node, over the channels' C b;
//           between nodes times g / (g-1) on NVLink, where a channel's last rank in a node sends by
//           its NIC, and last ranks are spread over the GPUs
//   network the NICs' bandwidth of a node, over the channels' C b between nodes
// and at most 1 for trees, whose speed kernels limit, too. No transfer is shorter than what the busiest
// link between nodes takes (nccl_routes.h). Reduction takes no time of its own.
//
// Where NVSwitches reduce (simulator/cost/nccl_nvls.h) and NCCL expects less of that than of rings
// and trees, it takes it. Its latency is NCCL's own times nccl_nvls_latency_factor(), and where an
// all-reduce was measured what LL's is beyond NCCL's own. Its bandwidth has the share of NCCL's that
// a ring has of the port, and the NICs of theirs, and NCCL's own correction for Simple in trees: it
// applies that to trees only, but this pipeline, too, has its peak at sizes of GB (nccl-tests#212).
//
// PAT (simulator/cost/nccl_pat.h) is taken where NCCL expects less of it, at the trees' eta and a ring's
// busiest link.
//
// An all-to-all is a group of sends and receives, and its time has no model in NCCL. It takes the base and one
// step, of LL for messages up to nccl_most_sent_by_ll and else of Simple, each times the factor, and
// then what the busiest link carries: a GPU's port (g-1)/p of the rank's buffer to the others of its node,
// at the rate that an exchange among them has in our engines, or
// the links between nodes. NCCL sends to another node by the GPU beside the peer's rail (PXN), so that
// NICs carry equal shares.
//
// The interval is that of the factor, of the steps and of the links, all at their fast or slow end.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/cost/nccl_nvls.h"
#include "simulator/cost/nccl_pat.h"
#include "simulator/cost/pace.h"

namespace paceline::simulator {

// Time of a small all-reduce over what NCCL's model says, inside nodes and over InfiniBand: seven
// systems with 2 to 24 ranks, none of which is a row that predictions are compared with.
[[nodiscard]] const Figure<double>& nccl_latency_factor();
// The same of NVLS and NVLSTree.
[[nodiscard]] const Figure<double>& nccl_nvls_latency_factor();
// A step of NCCL over TCP.
[[nodiscard]] const Figure<Seconds>& nccl_tcp_step();
// The largest message to one rank that NCCL sends by LL (NCCL_P2P_LL_THRESHOLD of src/enqueue.cc).
inline constexpr Bytes nccl_most_sent_by_ll{16384};
// What waiting for a completion adds to a step of protocol Simple over EFA.
inline constexpr Seconds nccl_efa_completion{3e-6};

// The tables with the latencies of practice at a bound, and at the pace of what was measured.
[[nodiscard]] NcclTables with_practical_latencies(NcclTables tables, const models::Cluster& cluster,
                                                  Bound bound, const Pace& pace = {});

class NcclPractice {
 public:
  // `cost` is that of the cluster for these ranks at `bound` and `pace`, with whatever a profile
  // calibrated. Throws as NcclModel does.
  NcclPractice(const NcclTables& tables, const models::Cluster& cluster, int ranks,
               const CommunicationCost& cost, Bound bound, const Pace& pace = {},
               models::Collective collective = models::Collective::all_reduce);

  // The time of NCCL's choice, NVLS and PAT among it; 0 for one rank. `bytes` are those of a rank's buffer
  // in an all-to-all, and else of the whole bucket. With `only`, of its choice among the protocols of
  // that algorithm, as NCCL_ALGO makes it.
  [[nodiscard]] Seconds time(Bytes bytes, std::optional<NcclAlgorithm> only = {}) const;
  // The same in its two parts.
  [[nodiscard]] NcclTime parts(Bytes bytes, std::optional<NcclAlgorithm> only = {}) const;
  // NCCL's own model, untouched.
  [[nodiscard]] const NcclModel& model() const { return model_; }
  // The same with the latencies of practice, and NCCL's own bandwidths.
  [[nodiscard]] const NcclModel& slowed() const { return slowed_; }
  [[nodiscard]] int ranks() const { return model_.ranks(); }
  [[nodiscard]] double eta(NcclAlgorithm algorithm) const;

  // What an algorithm takes with a protocol, chosen or not. There is none where NCCL does not use
  // the two together, and for one rank.
  [[nodiscard]] std::optional<Seconds> time(NcclAlgorithm algorithm, NcclProtocol protocol,
                                            Bytes bytes) const;
  // What NCCL expects of its NVSwitches (NVLS, between nodes NVLSTree), and what they take. There is
  // none where NCCL has none.
  [[nodiscard]] std::optional<Seconds> expected_of_switches(Bytes bytes) const;
  [[nodiscard]] std::optional<Seconds> time_in_switches(Bytes bytes) const;
  // The latency of that, and NCCL's own.
  [[nodiscard]] std::optional<std::pair<Seconds, Seconds>> latency_in_switches() const;

 private:
  [[nodiscard]] NcclTime parts_in_switches(Bytes bytes) const;
  // The share of their bandwidth that pipelines of Simple reach at this size.
  [[nodiscard]] double tree_correction(Bytes bytes) const;

  // The time of a transfer for which NCCL itself expects `own`.
  [[nodiscard]] Seconds transfer(NcclAlgorithm algorithm, Seconds own, Bytes bytes) const;

  NcclModel model_;
  NcclModel slowed_;  // with the latencies of practice
  std::array<double, 2> eta_ = {1, 1};
  std::array<SecondsPerByte, 2> least_ = {};  // that the links between nodes need
  // In switches, where NCCL has that: what it expects, and what it takes.
  struct Switched {
    NcclNvls own;
    Seconds latency;
    double intra_share = 1;
    double inter_share = 1;
  };
  std::optional<Switched> switched_;
  // PAT, where NCCL has it: what it expects, and what it takes.
  struct Trees {
    NcclPat own;
    NcclPat slowed;
  };
  std::optional<Trees> pat_;
  std::optional<SecondsPerByte> exchange_;  // of an all-to-all
};

// "NCCL 2.28.3-1's own choice (tuning.cc), at the links' rates and at latencies as measured"
[[nodiscard]] std::string described(const NcclPractice& practice);

}  // namespace paceline::simulator
