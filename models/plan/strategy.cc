// Tests: tests/models/strategy_test.cc.
#include "models/plan/strategy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/names.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"

namespace paceline::models {
namespace {

constexpr std::array catalogue = {
    Strategy{.name = "ring",
             .summary = "a ring all-reduce for each tensor",
             .source = "Jizhi 4.3, its baseline",
             .never_fuses = true,
             .small = "ring",
             .large = "ring"},
    Strategy{.name = "fused-ring",
             .summary = "tensors fused up to theta, ring all-reduce",
             .source = "Jizhi 4.3; Horovod 2018",
             .fuses = true,
             .small = "ring",
             .large = "ring"},
    Strategy{.name = "halving-doubling",
             .summary = "recursive halving and doubling for each tensor",
             .source = "Hitchhiker VI; Goyal 2017",
             .small = "halving-doubling",
             .large = "halving-doubling"},
    Strategy{.name = "hierarchical",
             .summary = "three phases in groups of k, for each tensor",
             .source = "Jizhi 4.3",
             .takes_group = true,
             .small = "hierarchical",
             .large = "hierarchical"},
    Strategy{.name = "hybrid",
             .summary = "fused; hierarchical up to eta, ring above",
             .source = "Jizhi 4.3",
             .fuses = true,
             .takes_hybrid = true,
             .takes_group = true,
             .small = "hierarchical",
             .large = "ring"},
    Strategy{.name = "bidirectional-ring",
             .summary = "fused; half of each bucket around the ring in each direction",
             .source = "Jain & Sabharwal 2010",
             .fuses = true,
             .small = "bidirectional-ring",
             .large = "bidirectional-ring"},
    Strategy{.name = "multi-ring",
             .summary = "fused; a share of each bucket around each of several disjoint rings",
             .source = "Cho 2017 (PowerAI DDL)",
             .fuses = true,
             .takes_group = true,
             .small = "multi-ring",
             .large = "multi-ring"},
    Strategy{.name = "recursive-doubling",
             .summary = "fused; all of a bucket with partners at doubling distance",
             .source = "Thakur 2005",
             .fuses = true,
             .small = "recursive-doubling",
             .large = "recursive-doubling"},
    Strategy{.name = "binary-blocks",
             .summary = "fused; halving-doubling in blocks of powers of two",
             .source = "Hitchhiker VII",
             .fuses = true,
             .small = "binary-blocks",
             .large = "binary-blocks"},
    Strategy{.name = "hierarchical-scatter",
             .summary = "fused; reduce-scatter in groups of k, halving-doubling across",
             .source = "Goyal 2017, 3.2; NCCL",
             .fuses = true,
             .takes_group = true,
             .small = "hierarchical-scatter",
             .large = "hierarchical-scatter"},
    Strategy{.name = "goyal",
             .summary = "for each tensor; through the masters up to 256 KB, scattered above",
             .source = "Goyal 2017, 3.2",
             .takes_hybrid = true,
             .takes_group = true,
             .small = "hierarchical-direct",
             .large = "hierarchical-scatter",
             .hybrid = Bytes{256e3}},
    Strategy{.name = "torus-2d",
             .summary = "fused; reduce-scatter along rows of k, ring along columns, all-gather",
             .source = "Mikami 2018 (Sony)",
             .fuses = true,
             .takes_group = true,
             .small = "torus-2d",
             .large = "torus-2d"},
    Strategy{.name = "double-binary-tree",
             .summary = "fused; half of each bucket over each of two trees, in segments",
             .source = "Sanders 2009; NCCL 2.4",
             .fuses = true,
             .small = "double-binary-tree",
             .large = "double-binary-tree"},
    Strategy{.name = "direct-exchange",
             .summary = "fused; each rank sums its part of every bucket",
             .source = "Hitchhiker IV",
             .fuses = true,
             .small = "direct-exchange",
             .large = "direct-exchange"},
    Strategy{.name = "parameter-server",
             .summary = "each tensor on one of s servers among the ranks, all at once",
             .source = "Li 2014; PAISoar 2",
             .small = "parameter-server",
             .large = "parameter-server",
             .on_servers = true},
    Strategy{.name = "nccl",
             .summary = "fused; NCCL's own choice of ring or tree, timed by its tuning model",
             .source = "NVIDIA NCCL 2.28, src/graph/tuning.cc; NCCL tuning",
             .fuses = true,
             .library = "nccl"},
    Strategy{.name = "open-mpi",
             .summary = "fused; MPI_Allreduce of Open MPI, timed by its calibrated curve",
             .source = "Open MPI; the profile",
             .fuses = true,
             .library = "open-mpi"},
    Strategy{.name = "no-overlap",
             .summary = "fused-ring after the whole backward pass",
             .source = "for comparison",
             .fuses = true,
             .small = "ring",
             .large = "ring",
             .overlap = Overlap::none},
};

// The index of an all-reduce among the plan's schedules, built on first use.
int planned(Plan& plan, std::string_view name, const ScheduleOptions& wanted) {
  const CollectiveAlgorithm& algorithm = all_reduce_algorithm(name);
  const ScheduleOptions options = taken_options(algorithm, wanted);
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    if (plan.schedules[i].algorithm == name && plan.schedules[i].options == options)
      return static_cast<int>(i);
  }
  plan.schedules.push_back({std::string(name), options, algorithm.build(options)});
  return static_cast<int>(plan.schedules.size()) - 1;
}

// Likewise of a library's all-reduce.
int planned_library(Plan& plan, std::string_view library) {
  if (plan.schedules.empty())
    plan.schedules.push_back({std::string(library), {.ranks = plan.ranks}, {}, true});
  return 0;
}

// Places buckets on servers, in the order in which they come.
class Placer {
 public:
  Placer(int servers, ServerPlacement placement)
      : held_(static_cast<std::size_t>(servers)), placement_(placement) {}
  int place(std::int64_t elements) {
    const std::size_t server =
        placement_ == ServerPlacement::round_robin
            ? next_++ % held_.size()
            : static_cast<std::size_t>(std::min_element(held_.begin(), held_.end()) -
                                       held_.begin());
    held_[server] += elements;
    return static_cast<int>(server);
  }

 private:
  std::vector<std::int64_t> held_;
  ServerPlacement placement_;
  std::size_t next_ = 0;
};

constexpr std::array<std::pair<ServerPlacement, std::string_view>, 2> placements = {
    {{ServerPlacement::round_robin, "round-robin"}, {ServerPlacement::balanced, "balanced"}}};

}  // namespace

std::span<const Strategy> strategy_catalogue() {
  return catalogue;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& entry : catalogue) names.emplace_back(entry.name);
  return names;
}

const Strategy& strategy(std::string_view name) {
  for (const Strategy& entry : catalogue) {
    if (entry.name == name) return entry;
  }
  throw unknown_name("strategy", name, strategy_names());
}

bool Strategy::takes_segments() const {
  return library.empty() &&
         (all_reduce_algorithm(small).takes_segments || all_reduce_algorithm(large).takes_segments);
}

bool Strategy::takes_rings() const {
  return library.empty() &&
         (all_reduce_algorithm(small).takes_rings || all_reduce_algorithm(large).takes_rings);
}

std::string_view name(ServerPlacement placement) {
  for (const auto& [value, text] : placements) {
    if (value == placement) return text;
  }
  return "unknown";
}

ServerPlacement server_placement_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, candidate] : placements) {
    if (candidate == text) return value;
    known.emplace_back(candidate);
  }
  throw unknown_name("placement", text, known);
}

Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients, int ranks,
               WireType wire, const Thresholds& thresholds) {
  check_rank_count(ranks);
  if (strategy.on_servers) check_server_count(thresholds.servers, ranks);
  Plan plan{.strategy = std::string(strategy.name),
            .ranks = ranks,
            .wire = wire,
            .overlap = strategy.overlap,
            .streams = std::max(1, thresholds.streams),
            .schedules = {},
            .buckets = {}};
  const Bytes theta = strategy.never_fuses ? Bytes{0} : thresholds.fusion;
  ScheduleOptions options{.ranks = ranks,
                          .group_size = thresholds.group_size,
                          .segments = thresholds.segments,
                          .rings = thresholds.rings,
                          .servers = 1};
  Placer placer(strategy.on_servers ? thresholds.servers : 1, thresholds.placement);
  Bucket open;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    open.elements += gradients[i].elements;
    ++open.gradient_count;
    const Bytes size = plan.bytes(open);
    if (size < theta && i + 1 < gradients.size()) continue;
    const bool is_small = !strategy.takes_hybrid || size <= thresholds.hybrid;
    if (strategy.on_servers)
      options.first_server = server_rank(placer.place(open.elements), ranks, thresholds.servers);
    open.schedule = strategy.library.empty()
                        ? planned(plan, is_small ? strategy.small : strategy.large, options)
                        : planned_library(plan, strategy.library);
    plan.buckets.push_back(open);
    open = Bucket{.first_gradient = static_cast<int>(i) + 1};
  }
  if (strategy.on_servers) plan.streams = std::max<int>(1, static_cast<int>(plan.buckets.size()));
  return plan;
}

}  // namespace paceline::models
