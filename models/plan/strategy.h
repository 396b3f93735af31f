// Strategies: named ways to make a plan. Users choose a strategy by its name.
//
// To turn a strategy into a plan needs no clock, so the runtime does it without the simulator. The
// search for good thresholds needs one, and is in simulator/planner/thresholds.h.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "models/plan/thresholds.h"
#include "models/plan/ways/library.h"
#include "models/plan/ways/preconditioned.h"
#include "models/plan/ways/scheduled.h"
#include "models/plan/ways/served.h"
#include "models/plan/ways/sharded.h"

namespace paceline::models {

// When a strategy fuses gradients into buckets of at least theta.
enum class Fusion {
  never,       // one collective for each tensor, by definition
  if_asked,    // one collective for each tensor, unless the user names a theta
  by_default,  // theta is chosen where the user names none
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

struct Strategy {
  std::string_view name;
  std::string_view summary;  // one line
  std::string_view source;   // paper and section
  Fusion fusion = Fusion::if_asked;
  std::variant<Scheduled, Hybrid, OnServers, Called, Served, Preconditioned, Sharded> all_reduce;
  Overlap overlap = Overlap::wait_free;
  // Whether runtimes leave the all-reduce to the library of the devices. Its own algorithm is what those
  // run whose library has no choice, as NCCL's before 2.4: by_library().
  bool leaves_choice = false;
  // Set where the strategy models another system. It is predicted where its name is asked for.
  std::optional<OtherSystem> other = {};

  // The alternative of all_reduce, or null where it is another one.
  template <class T>
  [[nodiscard]] const T* way() const {
    return std::get_if<T>(&all_reduce);
  }
  [[nodiscard]] const Hybrid* hybrid() const { return way<Hybrid>(); }
  // The library whose all-reduce it calls; nothing where it calls none.
  [[nodiscard]] std::optional<Library> library() const;
  // Facts about its way to travel, which all strategies of that way share.
  [[nodiscard]] const WayTraits& traits() const;
  // Whether a plan of the strategy may have it, and what it may have, in words.
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const;
  // How it is sharded; null where every rank keeps all of everything.
  [[nodiscard]] const Sharded* sharded() const { return way<Sharded>(); }
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
  // Whether its plans depend on the threshold. All others leave it aside.
  [[nodiscard]] bool takes_fusion() const { return fusion != Fusion::never; }
  [[nodiscard]] bool takes_hybrid() const { return hybrid() != nullptr; }
  [[nodiscard]] bool takes_group() const;
  [[nodiscard]] bool takes_segments() const;
  [[nodiscard]] bool takes_rings() const;
  // Systems of others have one stream. A system that goes through the host in any case is not changed
  // by it.
  [[nodiscard]] bool takes_streams() const { return !other && traits().takes_streams; }
  [[nodiscard]] bool takes_host_copies() const;
};

// The strategies that the runtime runs, and the libraries' own all-reduces.
[[nodiscard]] std::span<const Strategy> strategy_catalogue();
// Models of other systems.
[[nodiscard]] std::span<const Strategy> other_system_catalogue();
// Optimizers that move and compute more than gradients and an update: they are predicted where they
// are named, and in no table with the others, which do the same work in different ways.
[[nodiscard]] std::span<const Strategy> optimizer_catalogue();
// Strategies whose ranks do not keep all parameters, gradients and states (models/layout/sharding.h).
[[nodiscard]] std::span<const Strategy> sharded_catalogue();
// All catalogues, in the order in which people read them.
[[nodiscard]] std::array<std::span<const Strategy>, 4> strategy_catalogues();
// The names of the strategies of all catalogues.
[[nodiscard]] std::vector<std::string> strategy_names();
// Throws InputError that suggests the nearest name.
[[nodiscard]] const Strategy& strategy(std::string_view name);

// The strategy with the library's own all-reduces in place of its algorithm, if it leaves the choice to
// a library; else the strategy itself.
[[nodiscard]] const Strategy& by_library(const Strategy& strategy, Library library);
// The strategy that made the plan, by_library() where a library sums its buckets.
[[nodiscard]] const Strategy& strategy_of(const Plan& plan);

// The policy of the strategy's plans where `asked` is asked for: it takes the place of wait-free overlap.
[[nodiscard]] inline Overlap overlap_of(const Strategy& strategy, std::optional<Overlap> asked) {
  return strategy.overlap == Overlap::wait_free ? asked.value_or(strategy.overlap)
                                                : strategy.overlap;
}
// Throws InputError unless the strategy's plans may have the policy.
void check_overlap(const Strategy& strategy, Overlap overlap);

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
