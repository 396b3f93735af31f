// Tests: tests/models/all_reduce_test.cc.
#include "models/collective/all_reduce.h"

#include <fmt/format.h>

#include <array>

#include "models/base/names.h"
#include "models/collective/algorithms.h"

namespace paceline::models {
namespace {

const std::array catalogue = {
    AllReduceAlgorithm{.name = "ring",
                       .summary = "reduce-scatter and all-gather around one ring",
                       .source = "Hitchhiker V; Patarasuk & Yuan 2009",
                       .steps = "2(p-1)",
                       .time = "2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma",
                       .build = [](const AllReduceOptions& o) { return ring_all_reduce(o.ranks); }},
    AllReduceAlgorithm{
        .name = "halving-doubling",
        .summary = "recursive halving, then doubling; folds where p is no power of two",
        .source = "Hitchhiker VI; Thakur 2005",
        .steps = "2 log2 q, q = 2^floor(log2 p), and 2 more where p != q",
        .time = "2 log2 q alpha + 2(q-1)/q n beta + (q-1)/q n gamma, and 2 alpha + 2 n beta + n "
                "gamma where p != q",
        .build = [](const AllReduceOptions& o) { return halving_doubling_all_reduce(o.ranks); }},
    AllReduceAlgorithm{
        .name = "hierarchical",
        .summary = "reduce in groups of k, ring over the masters, broadcast in groups",
        .source = "Jizhi 4.3",
        .steps = "4(k-1) + 2(p/k-1)",
        .time = "4(k-1)(alpha + n/k beta) + 2(k-1) n/k gamma + 2(m-1)(alpha + n/m beta) + (m-1) "
                "n/m gamma, m = p/k",
        .takes_group = true,
        .build =
            [](const AllReduceOptions& o) {
              return hierarchical_all_reduce(
                  o.ranks, o.group_size == 0 ? default_group_size(o.ranks) : o.group_size);
            }},
};

}  // namespace

std::span<const AllReduceAlgorithm> all_reduce_catalogue() {
  return catalogue;
}

std::vector<std::string> all_reduce_names() {
  std::vector<std::string> names;
  for (const AllReduceAlgorithm& algorithm : catalogue) names.emplace_back(algorithm.name);
  return names;
}

const AllReduceAlgorithm& all_reduce_algorithm(std::string_view name) {
  for (const AllReduceAlgorithm& algorithm : catalogue) {
    if (algorithm.name == name) return algorithm;
  }
  throw unknown_name("schedule", name, all_reduce_names());
}

void check_rank_count(int ranks) {
  if (ranks < 1 || ranks > max_ranks) {
    throw InputError(fmt::format("{} ranks", ranks),
                     fmt::format("choose 1 to {} ranks", max_ranks));
  }
}

}  // namespace paceline::models
