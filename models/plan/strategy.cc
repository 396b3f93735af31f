// Tests: tests/models/strategy_test.cc.
#include "models/plan/strategy.h"

#include <array>

#include "models/base/names.h"
#include "models/collective/all_reduce.h"

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
    Strategy{.name = "no-overlap",
             .summary = "fused-ring after the whole backward pass",
             .source = "for comparison",
             .fuses = true,
             .small = "ring",
             .large = "ring",
             .overlap = Overlap::none},
};

// The index of an algorithm among the plan's schedules, built on first use.
int planned(Plan& plan, std::string_view algorithm, int group_size) {
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    if (plan.schedules[i].algorithm == algorithm) return static_cast<int>(i);
  }
  const AllReduceAlgorithm& entry = all_reduce_algorithm(algorithm);
  const int k = entry.takes_group ? group_size : 0;
  plan.schedules.push_back(
      {std::string(algorithm), k, entry.build({.ranks = plan.ranks, .group_size = k})});
  return static_cast<int>(plan.schedules.size()) - 1;
}

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

Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients, int ranks,
               WireType wire, const Thresholds& thresholds) {
  check_rank_count(ranks);
  Plan plan{.strategy = std::string(strategy.name),
            .ranks = ranks,
            .wire = wire,
            .overlap = strategy.overlap,
            .schedules = {},
            .buckets = {}};
  const Bytes theta = strategy.never_fuses ? Bytes{0} : thresholds.fusion;
  Bucket open;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    open.elements += gradients[i].elements;
    ++open.gradient_count;
    const Bytes size = plan.bytes(open);
    if (size < theta && i + 1 < gradients.size()) continue;
    const bool is_small = !strategy.takes_hybrid || size <= thresholds.hybrid;
    open.schedule =
        planned(plan, is_small ? strategy.small : strategy.large, thresholds.group_size);
    plan.buckets.push_back(open);
    open = Bucket{.first_gradient = static_cast<int>(i) + 1};
  }
  return plan;
}

}  // namespace paceline::models
