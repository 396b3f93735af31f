// The catalogue of collective algorithms: the one list from which strategies, commands, the
// tests and docs/algorithms.md are derived. To add an algorithm: one .cc with its builder, its
// declaration in algorithms.h, and one entry here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/closed_form.h"
#include "models/collective/schedule.h"

namespace paceline::models {

// What a collective does to the bucket of n bytes. Part r is part r of p, as part() cuts it.
enum class Collective {
  all_reduce,          // every rank ends with the sum
  reduce_scatter,      // rank r ends with part r of the sum
  all_gather,          // rank r starts with part r, and every rank ends with all parts
  broadcast,           // every rank ends with what rank 0 has
  reduce,              // rank 0 ends with the sum
  gather,              // rank r starts with part r, and rank 0 ends with all parts
  scatter,             // rank 0 starts with all parts, and rank r ends with part r
  all_to_all,          // the bucket is a matrix of p x p blocks: rank r starts with row r and ends
                       // with column r
  neighbour_exchange,  // rank r starts with part r, and rank r + 1 (mod p) ends with it
};

[[nodiscard]] std::string_view name(Collective collective);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Collective collective_from_name(std::string_view text);
// The names of all: "all-reduce, reduce-scatter, ...".
[[nodiscard]] std::string names_of_collectives();
// Whether it adds anything up: all-reduce, reduce-scatter and reduce.
[[nodiscard]] bool reduces(Collective collective);

// How an algorithm is to be built. 0 means the algorithm's default. Options that an algorithm does
// not take are ignored.
struct ScheduleOptions {
  int ranks = 1;
  int group_size = 0;  // k: ranks of a group, or of a row of a torus
  int segments = 0;    // a bucket is cut into this many, which travel one behind the other
  int rings = 0;
  int servers = 0;
  int first_server = 0;  // the rank of server 0

  bool operator==(const ScheduleOptions&) const = default;
};

struct CollectiveAlgorithm {
  std::string_view name = {};     // as users type it
  std::string_view summary = {};  // one line
  std::string_view source = {};   // paper and section
  std::string_view steps = {};    // closed form of the number of steps
  std::string_view bytes = {};    // what a rank sends, in buckets of n bytes
  std::string_view time = {};     // closed form in alpha, beta, gamma; empty where there is none
  std::string_view exact = {};    // where the step engine equals `time`; if that is empty, why
  Collective collective = Collective::all_reduce;
  bool takes_group = false;
  bool takes_segments = false;
  bool takes_rings = false;
  bool takes_servers = false;
  Schedule (*build)(const ScheduleOptions&) = nullptr;  // throws InputError
  // The closed form for options that build() takes, where one holds.
  std::optional<ClosedForm> (*closed_form)(const ScheduleOptions&) = nullptr;
};

// All algorithms; the all-reduces come first.
[[nodiscard]] std::span<const CollectiveAlgorithm> collective_catalogue();
[[nodiscard]] std::span<const CollectiveAlgorithm> all_reduce_catalogue();
// Throw InputError that suggests the nearest name.
[[nodiscard]] const CollectiveAlgorithm& collective_algorithm(std::string_view name);
[[nodiscard]] const CollectiveAlgorithm& all_reduce_algorithm(std::string_view name);
[[nodiscard]] std::vector<std::string> collective_names();

// The ranks, and those of the options that the algorithm takes; the others are 0.
[[nodiscard]] ScheduleOptions taken_options(const CollectiveAlgorithm& algorithm,
                                            const ScheduleOptions& options);

// An algorithm with those of its options that are set: "ring", "hierarchical k=8".
[[nodiscard]] std::string described(std::string_view algorithm, const ScheduleOptions& options);

// The most ranks that any schedule is built for; steps and chunk indices fit an int.
inline constexpr int max_ranks = 1 << 20;
// Throws InputError unless 1 <= ranks <= max_ranks.
void check_rank_count(int ranks);

}  // namespace paceline::models
