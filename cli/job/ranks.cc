// Tests: tests/cli/train_test.py (end to end).
#include "cli/job/ranks.h"

#include "cli/job/option_values.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::job {

std::optional<runtime::LaunchedRank> rank_of_job() {
  const auto launched = runtime::launched_rank();
  if (!launched && runtime::started_by_launcher())
    throw InputError("a launcher that does not say how many ranks there are", "use mpirun or srun");
  if (!launched || launched->ranks == 1) return std::nullopt;
  return launched;
}

void refuse_ranks_option(const std::string& ranks) {
  if (!ranks.empty())
    throw InputError({"--ranks"}, "the launcher says how many ranks there are",
                     "leave it out under mpirun and srun");
}

Seconds parse_patience(const std::string& patience) {
  return parsing_option("--patience", [&] { return parse_seconds(patience); });
}

}  // namespace paceline::job
