// Where the ranks of a command that runs come from: a launcher, or threads of this process.
#pragma once

#include <optional>
#include <string>

#include "models/base/units.h"
#include "runtime/transport/launcher.h"

namespace paceline::job {

inline constexpr int most_thread_ranks = 64;

// This process's place in a launcher's job of several ranks; nothing for a process by itself. A
// launcher's job of one rank counts as a process by itself: it may be a shell that srun has
// started. Throws InputError if a launcher does not say how many ranks there are.
[[nodiscard]] std::optional<runtime::LaunchedRank> rank_of_job();

// Refuses --ranks beside a launcher, which says it itself. Throws InputError.
void refuse_ranks_option(const std::string& ranks);

// How long ranks wait for a silent one where --patience is not given.
inline constexpr char default_patience[] = "300 s";

// The time that --patience says. Throws InputError that names the option.
[[nodiscard]] Seconds parse_patience(const std::string& patience);

}  // namespace paceline::job
