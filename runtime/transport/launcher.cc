// Tests: tests/runtime/launcher_test.cc.
#include "runtime/transport/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace paceline::runtime {
namespace {

// Reads a count from the environment. Returns nothing if the variable is not set or is no count.
std::optional<int> variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<LaunchedRank> launched(const char* rank_name, const char* ranks_name,
                                     std::optional<int> ranks_on_node,
                                     const char* rank_on_node_name) {
  const auto rank = variable(rank_name);
  const auto ranks = variable(ranks_name);
  if (!rank || !ranks || *rank >= *ranks) return std::nullopt;
  const int together = std::clamp(ranks_on_node.value_or(1), 1, *ranks);
  return LaunchedRank{*rank, *ranks, together,
                      std::min(variable(rank_on_node_name).value_or(0), together - 1)};
}

// srun lists the tasks of each node as "2(x3),1". This is the number of the first node, which is
// the largest by srun's default.
std::optional<int> tasks_per_node() {
  const char* text = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const auto [stop, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

bool started_by_launcher() {
  return launched_rank().has_value() || variable("PMIX_RANK").has_value();
}

std::optional<LaunchedRank> launched_rank() {
  if (const auto by_mpirun =
          launched("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                   variable("OMPI_COMM_WORLD_LOCAL_SIZE"), "OMPI_COMM_WORLD_LOCAL_RANK"))
    return by_mpirun;
  // srun sets these for the tasks of a step, and not for the script of a batch job.
  return launched("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", tasks_per_node(), "SLURM_LOCALID");
}

}  // namespace paceline::runtime
