// Where the ranks of a command that runs come from: a launcher, or threads of this process.
#pragma once

#include <optional>
#include <string>

#include "runtime/transport/launcher.h"

namespace paceline::cli {

inline constexpr int most_thread_ranks = 64;

// This process's place in a launcher's job of several ranks; nothing if it is by itself. One rank
// of a launcher sends nothing: it may also be a shell that srun has started. Throws InputError if a
// launcher does not say how many ranks there are.
[[nodiscard]] std::optional<runtime::LaunchedRank> rank_of_job();

// Refuses --ranks beside a launcher, which says it itself. Throws InputError.
void refuse_ranks_option(const std::string& ranks);

}  // namespace paceline::cli
