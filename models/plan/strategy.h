// Strategies: named ways to make a plan. Users choose a strategy by its name.
//
// To turn a strategy into a plan needs no clock, so the runtime does it without the simulator. The
// search for good thresholds needs one, and is in simulator/planner/thresholds.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::models {

// What a strategy leaves open, as a threshold-driven runtime takes it. Sizes are in bytes on the
// wire. A strategy ignores what it does not take.
struct Thresholds {
  Bytes fusion{0};  // theta: a bucket is closed as soon as it holds this much; 0 fuses nothing
  std::optional<Bytes> first_fusion = {};  // the same for the first bucket, where it differs
  Bytes hybrid{0};     // eta: a Hybrid sends buckets up to this size by its `small` algorithm
  int group_size = 1;  // k: ranks of a group
  int segments = 0;    // pieces of a bucket in a pipelined tree; 0 takes the algorithm's default
  int rings = 0;       // disjoint rings of multi-ring; 0 takes the algorithm's default
  int servers = 1;     // servers among the ranks
  ServerPlacement placement = ServerPlacement::balanced;
  int streams = 1;         // buckets that may be in flight at the same time
  Bytes partition{0};      // tensors that are larger are cut into parts of this size; 0 cuts none
  Dispatch dispatch = {};  // strategies of other systems; `through_host`: all strategies
  int factors_every = 1;   // iterations from one refresh of K-FAC's factors to the next
  bool own_machines = false;  // servers of other systems: do they have nodes of their own?
  ServerTransport transport =
      ServerTransport::tcp;  // servers of other systems: by what they are reached

  bool operator==(const Thresholds&) const = default;
};

// When a strategy fuses gradients into buckets of at least theta.
enum class Fusion {
  never,       // one collective for each tensor, by definition
  if_asked,    // one collective for each tensor, unless the user names a theta
  by_default,  // theta is chosen where the user names none
};

// Every bucket takes the same algorithm.
struct Scheduled {
  std::string_view algorithm;  // name in all_reduce_catalogue()
};

// The size of a bucket decides its algorithm.
struct Hybrid {
  std::string_view small;  // name in all_reduce_catalogue(), for buckets up to eta
  std::string_view large;  // the same for larger buckets
  Bytes threshold{0};      // eta where the strategy defines it; 0 where it is chosen
};

// Each bucket is summed on one server among the ranks, and all buckets are in flight at once.
struct OnServers {
  std::string_view algorithm;  // name in all_reduce_catalogue()
};

// Systems whose way from a gradient to its collective is modelled, beside ours.
enum class System {
  horovod,
  byte_scheduler,
  byteps,
  tf_parameter_server,
  tf_distributed_replicated,
  kvstore,
  p3,
  k_fac,
  nccl_2_4,
  ddp,
  inductor,
  mg_wfbp,
};

// What a strategy of another system takes where the user names nothing. Partition, credit, and theta of
// DDP and Inductor are of parameters, and so half as much on a wire of half the size; BytePS counts
// bytes.
struct OtherSystem {
  System system = System::horovod;
  Bytes fusion{0};                         // theta
  std::optional<Bytes> first_fusion = {};  // theta of the first bucket, where it differs
  Bytes partition{0};                      // at FP32
  Dispatch dispatch = {};
  ServerTransport transport = ServerTransport::tcp;
};

// Each bucket is summed by servers of another system, on machines (models/plan/servers.h).
struct Served {
  // Tensors of at least this many elements are summed by all servers, an equal share each; smaller ones
  // by one server. 0: all of them by all.
  std::int64_t shared_from = 0;
  // How the one server of a smaller tensor is chosen: as in a parameter-server plan; or, where this
  // is empty, number (9973 x key) mod s, for keys that count tensors in forward order.
  std::optional<ServerPlacement> placement = {};
};

// All gradients in one bucket, which the owners of the layers sum and precondition, beside the factors
// (models/plan/k_fac.h).
struct Preconditioned {};

struct Strategy {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view source;   // paper and section
  Fusion fusion = Fusion::if_asked;
  std::variant<Scheduled, Hybrid, OnServers, Library, Served, Preconditioned> all_reduce;
  Overlap overlap = Overlap::wait_free;
  // Set where the strategy models another system. It is predicted where its name is asked for.
  std::optional<OtherSystem> other = {};

  // The alternative of all_reduce, or null (empty) where it is another one.
  [[nodiscard]] const Hybrid* hybrid() const { return std::get_if<Hybrid>(&all_reduce); }
  [[nodiscard]] const OnServers* on_servers() const { return std::get_if<OnServers>(&all_reduce); }
  [[nodiscard]] std::optional<Library> library() const;
  [[nodiscard]] const Served* served() const { return std::get_if<Served>(&all_reduce); }
  [[nodiscard]] bool preconditions() const {
    return std::holds_alternative<Preconditioned>(all_reduce);
  }
  // Whether our runtime can run its plans: its buckets are of our kind. It has libraries of its own.
  [[nodiscard]] bool is_runnable() const;
  // Whether `replay` can run its plans. Replay skips the negotiation of systems with cycles.
  [[nodiscard]] bool is_replayable() const;
  // Whether its buckets depend on when gradients are there and how long all-reduces take, so that
  // make_plan() alone does not make them (simulator/planner/cycles.h).
  [[nodiscard]] bool needs_times() const;

  // The algorithms that its buckets may take, that of small buckets first. Empty for a library, for
  // servers of another system, and for K-FAC.
  [[nodiscard]] std::vector<std::string_view> algorithms() const;
  // Whether any of these algorithms takes the option.
  [[nodiscard]] bool takes_group() const;
  [[nodiscard]] bool takes_segments() const;
  [[nodiscard]] bool takes_rings() const;
};

// The strategies that the runtime runs, and the libraries' own all-reduces.
[[nodiscard]] std::span<const Strategy> strategy_catalogue();
// Models of other systems.
[[nodiscard]] std::span<const Strategy> other_system_catalogue();
// Optimizers that move and compute more than gradients and an update: they are predicted where they
// are named, and in no table with the others, which do the same work in different ways.
[[nodiscard]] std::span<const Strategy> optimizer_catalogue();
// The names of the strategies of all three catalogues.
[[nodiscard]] std::vector<std::string> strategy_names();
// Throws InputError that suggests the nearest name.
[[nodiscard]] const Strategy& strategy(std::string_view name);

// Sets theta, and that of the first bucket, to the system's own. DDP counts FP32 gradients, whatever
// its hook makes of them on the wire. Without a theta of its own, the system has one bucket, of all
// `parameters`.
void take_buckets_of_ddp(const OtherSystem& ddp, WireType wire, std::int64_t parameters,
                         Thresholds& thresholds);

// The plan of a strategy for these gradients (in backward order) on `ranks` ranks. Fusion follows
// Jizhi (4.3): gradients join the open bucket, which is sent once it holds theta or more. Buckets of
// a system with a cycle depend on when gradients are there; simulator/planner/cycles.h makes those.
// Throws InputError if ranks < 1, if k does not divide the ranks, or if the servers are more than
// the ranks. O(gradients x servers).
[[nodiscard]] Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients,
                             int ranks, WireType wire, const Thresholds& thresholds);

}  // namespace paceline::models
