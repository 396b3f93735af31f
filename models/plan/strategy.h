// Strategies: named ways to make a plan, as users say them. Turning a strategy into a plan
// needs no clock, so the runtime can do it without the simulator; only the search for good
// thresholds is the planner's (simulator/planner/thresholds.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::models {

// Which server holds a bucket.
enum class ServerPlacement {
  round_robin,  // bucket i on server i mod s
  balanced,     // on the server that holds the fewest bytes so far
};

// theta, eta and k, as a threshold-driven runtime takes them. Sizes are on the wire.
struct Thresholds {
  Bytes fusion{0};     // theta: a bucket is closed as soon as it holds this much; 0 fuses nothing
  Bytes hybrid{0};     // eta: buckets up to this size go the one way, larger ones the other
  int group_size = 1;  // k
  int segments = 0;    // of trees; 0 takes the algorithm's default, here and below
  int rings = 0;       // of multi-ring
  int servers = 1;     // of parameter-server
  ServerPlacement placement = ServerPlacement::balanced;
  int streams = 1;  // buckets in flight at the same time

  bool operator==(const Thresholds&) const = default;
};

struct Strategy {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool fuses = false;  // theta by default; otherwise one collective for each tensor unless asked
  bool never_fuses = false;     // one collective for each tensor by definition
  bool takes_hybrid = false;    // eta
  bool takes_group = false;     // k
  std::string_view small = {};  // catalogue name of the all-reduce of buckets up to eta, or of all
  std::string_view large = {};  // of larger buckets; the same where there is no eta
  Overlap overlap = Overlap::wait_free;
  Bytes hybrid{0};          // eta by definition; 0 where it is chosen
  bool on_servers = false;  // each bucket on a server of its own, all in flight at once
  // The library whose own all-reduce it is, timed by the library's own model (nccl) or by its
  // calibrated curve (open-mpi) and not by an engine; then `small` and `large` are empty.
  std::string_view library = {};

  // Whether any of its all-reduces takes the option.
  [[nodiscard]] bool takes_segments() const;
  [[nodiscard]] bool takes_rings() const;
};

[[nodiscard]] std::span<const Strategy> strategy_catalogue();
[[nodiscard]] std::vector<std::string> strategy_names();
// Throw InputError that suggests the nearest name.
[[nodiscard]] ServerPlacement server_placement_from_name(std::string_view text);
[[nodiscard]] std::string_view name(ServerPlacement placement);
[[nodiscard]] const Strategy& strategy(std::string_view name);

// The plan of a strategy for these gradients (in backward order) on `ranks` ranks. Fusion is
// Jizhi's (4.3): gradients join the open bucket, which is sent once it holds theta or more.
// Throws InputError if ranks < 1 or k does not divide the ranks. O(gradients x servers).
[[nodiscard]] Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients,
                             int ranks, WireType wire, const Thresholds& thresholds);

}  // namespace paceline::models
