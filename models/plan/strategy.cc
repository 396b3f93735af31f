// Tests: tests/models/strategy_test.cc.
#include "models/plan/strategy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/plan/not_of_strategy.h"
#include "models/plan/tuned.h"

namespace paceline::models {
namespace {

constexpr std::array catalogue = {
    Strategy{.name = "ring",
             .summary = "a ring all-reduce for each tensor",
             .source = "Jizhi 4.3, its baseline",
             .fusion = Fusion::never,
             .all_reduce = Scheduled{"ring"}},
    Strategy{.name = "fused-ring",
             .summary = "tensors fused up to theta, by a ring, or as NCCL chooses",
             .source = "Jizhi 4.3; Horovod 2018",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .leaves_choice = true},
    Strategy{.name = "halving-doubling",
             .summary = "recursive halving and doubling for each tensor",
             .source = "Hitchhiker VI; Goyal 2017",
             .all_reduce = Scheduled{"halving-doubling"}},
    Strategy{.name = "hierarchical",
             .summary = "three phases in groups of k, for each tensor",
             .source = "Jizhi 4.3",
             .all_reduce = Scheduled{"hierarchical"}},
    Strategy{.name = "hybrid",
             .summary = "fused; hierarchical up to eta, ring above",
             .source = "Jizhi 4.3",
             .fusion = Fusion::by_default,
             .all_reduce = Hybrid{.small = "hierarchical", .large = "ring"}},
    Strategy{.name = "bidirectional-ring",
             .summary = "fused; half of each bucket around the ring in each direction",
             .source = "Jain & Sabharwal 2010",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"bidirectional-ring"}},
    Strategy{.name = "multi-ring",
             .summary = "fused; a share of each bucket around each of several disjoint rings",
             .source = "Cho 2017 (PowerAI DDL)",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"multi-ring"}},
    Strategy{.name = "recursive-doubling",
             .summary = "fused; all of a bucket with partners at doubling distance",
             .source = "Thakur 2005",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"recursive-doubling"}},
    Strategy{.name = "binary-blocks",
             .summary = "fused; halving-doubling in blocks of powers of two",
             .source = "Hitchhiker VII",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"binary-blocks"}},
    Strategy{.name = "hierarchical-scatter",
             .summary = "fused; reduce-scatter in groups of k, halving-doubling across",
             .source = "Goyal 2017, 3.2; NCCL",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"hierarchical-scatter"}},
    Strategy{.name = "goyal",
             .summary = "for each tensor; through the masters up to 256 KB, scattered above",
             .source = "Goyal 2017, 3.2",
             .all_reduce = Hybrid{.small = "hierarchical-direct",
                                  .large = "hierarchical-scatter",
                                  .threshold = Bytes{256e3}}},
    Strategy{.name = "torus-2d",
             .summary = "fused; reduce-scatter along rows of k, ring along columns, all-gather",
             .source = "Mikami 2018 (Sony)",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"torus-2d"}},
    Strategy{.name = "double-binary-tree",
             .summary = "fused; half of each bucket over each of two trees, in segments",
             .source = "Sanders 2009; NCCL 2.4",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"double-binary-tree"}},
    Strategy{.name = "direct-exchange",
             .summary = "fused; each rank sums its part of every bucket",
             .source = "Hitchhiker IV",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"direct-exchange"}},
    Strategy{.name = "parameter-server",
             .summary = "each tensor on one of s servers among the ranks, all at once",
             .source = "Li 2014; PAISoar 2",
             .all_reduce = OnServers{"parameter-server"}},
    Strategy{.name = "nccl",
             .summary = "fused; NCCL's own choice of ring or tree, timed by its tuning model",
             .source = "NVIDIA NCCL 2.28, src/graph/tuning.cc; NCCL tuning",
             .fusion = Fusion::by_default,
             .all_reduce = Called{Library::nccl}},
    Strategy{.name = "open-mpi",
             .summary = "fused; MPI_Allreduce of Open MPI, timed by its calibrated curve",
             .source = "Open MPI; the profile",
             .fusion = Fusion::by_default,
             .all_reduce = Called{Library::open_mpi}},
    Strategy{.name = "no-overlap",
             .summary = "fused-ring after the whole backward pass",
             .source = "for comparison",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .overlap = Overlap::none,
             .leaves_choice = true},
};

constexpr std::array sharded_strategies = {
    Strategy{.name = "zero1",
             .summary = "gradients reduced to shards, updated there, and parameters gathered",
             .source = "Rajbhandari 2020, ZeRO, 5.1; Megatron-LM's distributed optimizer",
             .fusion = Fusion::by_default,
             .all_reduce = Sharded{ShardingKind::zero1}},
    Strategy{.name = "zero2",
             .summary = "zero1 that also keeps its gradients in shards, reduced in each pass",
             .source = "Rajbhandari 2020, ZeRO, 5.2",
             .fusion = Fusion::by_default,
             .all_reduce = Sharded{ShardingKind::zero2}},
    Strategy{.name = "fsdp",
             .summary = "all in shards; parameters of a block gathered before its passes (ZeRO-3)",
             .source = "Zhao 2023, PyTorch FSDP; Rajbhandari 2020, ZeRO, 5.3",
             .fusion = Fusion::if_asked,
             .all_reduce = Sharded{ShardingKind::zero3}},
    Strategy{.name = "hsdp",
             .summary = "fsdp in groups of k, a node by default, replicated across groups",
             .source = "Zhao 2023, PyTorch FSDP, 3.2.2",
             .fusion = Fusion::if_asked,
             .all_reduce = Sharded{.kind = ShardingKind::zero3, .in_groups = true}},
};

// Whatever reads an algorithm from it reads the plan's schedules instead (tuned.h).
constexpr Strategy tuned = {
    .name = "tuned",
    .summary = "the best all-reduce for each bucket, as paceline tune finds",
    .source = "docs/models.md, Plans",
    .fusion = Fusion::by_default,
    .all_reduce = Scheduled{"ring"}};

template <class Takes>
bool any_algorithm(const Strategy& strategy, Takes takes) {
  const std::vector<std::string_view> names = strategy.algorithms();
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view entry) { return all_reduce_algorithm(entry).*takes; });
}

}  // namespace

std::span<const Strategy> strategy_catalogue() {
  return catalogue;
}

std::span<const Strategy> sharded_catalogue() {
  return sharded_strategies;
}

std::array<std::span<const Strategy>, 4> strategy_catalogues() {
  return {strategy_catalogue(), sharded_catalogue(), other_system_catalogue(),
          optimizer_catalogue()};
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const auto& entries : strategy_catalogues())
    for (const Strategy& entry : entries) names.emplace_back(entry.name);
  return names;
}

const Strategy& strategy(std::string_view name) {
  for (const auto& entries : strategy_catalogues()) {
    for (const Strategy& entry : entries) {
      if (entry.name == name) return entry;
    }
  }
  if (name == tuned.name) return tuned;
  throw unknown_name("strategy", name, strategy_names());
}

const Strategy& by_library(const Strategy& strategy, Library library) {
  static const std::vector<Strategy> choosing = [] {
    std::vector<Strategy> found;
    for (const Library called : {Library::nccl, Library::open_mpi}) {
      for (const auto& entries : {strategy_catalogue(), other_system_catalogue()}) {
        for (const Strategy& entry : entries) {
          if (!entry.leaves_choice) continue;
          found.push_back(entry);
          found.back().all_reduce = Called{called};
        }
      }
    }
    return found;
  }();
  for (const Strategy& entry : choosing) {
    if (entry.name == strategy.name && entry.library() == library) return entry;
  }
  return strategy;
}

const Strategy& strategy_of(const Plan& plan) {
  const Strategy& named = strategy(plan.strategy);
  const auto* library = plan.uses<Library>();
  return library == nullptr ? named : by_library(named, *library);
}

const Strategy& tuned_strategy() {
  return tuned;
}

bool is_tuned(const Strategy& strategy) {
  return strategy.name == tuned.name;
}

std::string_view strategy_of(std::span<const PlannedSchedule> all_reduces) {
  const auto library =
      all_reduces.size() == 1 ? all_reduces.front().library() : std::optional<Library>();
  return library ? name(*library) : tuned.name;
}

std::optional<Library> library_of(std::span<const std::string> all_reduces) {
  return all_reduces.size() == 1 ? library_named(all_reduces.front()) : std::nullopt;
}

std::optional<Library> Strategy::library() const {
  const auto* called = way<Called>();
  return called == nullptr ? std::nullopt : std::optional(called->library);
}

const WayTraits& Strategy::traits() const {
  return std::visit([](const auto& way) -> const WayTraits& { return way.traits; }, all_reduce);
}

bool Strategy::allows(const PlannedSchedule& schedule) const {
  if (is_tuned(*this)) return schedule.has_steps();
  if (leaves_choice && schedule.library()) return true;
  return std::visit([&](const auto& way) { return way.allows(schedule); }, all_reduce);
}

std::string Strategy::allowed() const {
  return std::visit([](const auto& way) { return way.allowed(); }, all_reduce);
}

bool Strategy::is_runnable() const {
  if (sharded() != nullptr) return true;
  return !other || other->system == System::ddp || other->system == System::inductor ||
         other->system == System::mg_wfbp;
}

bool Strategy::is_replayable() const {
  return is_runnable() || (other->system == System::horovod && !other->dispatch.through_host);
}

bool Strategy::needs_times() const {
  return other && (other->dispatch.cycle > Seconds{0} || other->system == System::inductor ||
                   other->system == System::mg_wfbp);
}

std::vector<std::string_view> Strategy::algorithms() const {
  return std::visit([](const auto& way) { return way.algorithms(); }, all_reduce);
}

bool Strategy::takes_host_copies() const {
  return traits().takes_host_copies && !(other && other->dispatch.through_host);
}

bool Strategy::takes_group() const {
  if (sharded() != nullptr) return sharded()->in_groups;
  return any_algorithm(*this, &CollectiveAlgorithm::takes_group);
}

bool Strategy::takes_segments() const {
  return any_algorithm(*this, &CollectiveAlgorithm::takes_segments);
}

bool Strategy::takes_rings() const {
  return any_algorithm(*this, &CollectiveAlgorithm::takes_rings);
}

void check_overlap(const Strategy& strategy, Overlap overlap) {
  if (strategy.traits().may_overlap_iterations || overlap == Overlap::wait_free ||
      overlap == Overlap::none)
    return;
  throw NotOfStrategy({"--overlap"},
                      fmt::format("{} has no overlap {}", strategy.name, name(overlap)),
                      "choose wait-free or none");
}

void take_buckets_of_ddp(const OtherSystem& ddp, WireType wire, std::int64_t parameters,
                         Thresholds& thresholds) {
  const double of_fp32 = element_size(wire) / element_size(WireType::fp32);
  thresholds.fusion = ddp.fusion > Bytes{0} ? of_fp32 * ddp.fusion
                                            : static_cast<double>(parameters) * element_size(wire);
  if (ddp.first_fusion) thresholds.first_fusion = of_fp32 * *ddp.first_fusion;
}

}  // namespace paceline::models
