// Tests: tests/runtime/launcher_test.cc.
#include "runtime/transport/launcher.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace paceline::runtime {
namespace {

// A count in the environment; nothing if it is not there or is none.
std::optional<int> variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<LaunchedRank> pair(const char* rank_name, const char* ranks_name) {
  const auto rank = variable(rank_name);
  const auto ranks = variable(ranks_name);
  if (!rank || !ranks || *rank >= *ranks) return std::nullopt;
  return LaunchedRank{*rank, *ranks};
}

}  // namespace

bool started_by_launcher() {
  return launched_rank().has_value() || variable("PMIX_RANK").has_value();
}

std::optional<LaunchedRank> launched_rank() {
  if (const auto by_mpirun = pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) return by_mpirun;
  // Set by srun for the tasks of a step, and not for the script of a batch job.
  return pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
}

}  // namespace paceline::runtime
