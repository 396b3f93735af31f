// The catalogue of all-reduce algorithms: the one list from which strategies, commands, the
// tests and docs/algorithms.md are derived. To add an algorithm: one .cc with its builder, its
// declaration in algorithms.h, and one entry here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/schedule.h"

namespace paceline::models {

struct AllReduceOptions {
  int ranks = 1;
  int group_size = 0;  // k; 0 takes the algorithm's default. Ignored where there is none.
};

struct AllReduceAlgorithm {
  std::string_view name;     // as users type it
  std::string_view summary;  // one line
  std::string_view source;   // paper and section
  std::string_view steps;    // closed form of the number of steps
  std::string_view time;     // closed form in alpha, beta, gamma
  bool takes_group = false;
  Schedule (*build)(const AllReduceOptions&) = nullptr;  // throws InputError
};

[[nodiscard]] std::span<const AllReduceAlgorithm> all_reduce_catalogue();
[[nodiscard]] std::vector<std::string> all_reduce_names();
// Throws InputError that suggests the nearest name.
[[nodiscard]] const AllReduceAlgorithm& all_reduce_algorithm(std::string_view name);

// The most ranks that any schedule is built for; steps and chunk indices fit an int.
inline constexpr int max_ranks = 1 << 20;
// Throws InputError unless 1 <= ranks <= max_ranks.
void check_rank_count(int ranks);

}  // namespace paceline::models
