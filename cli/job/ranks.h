// Where the ranks of a command that runs come from: a launcher, processes that meet by TCP, or threads
// of this process.
#pragma once

#include <optional>
#include <string>

#include "models/base/units.h"
#include "runtime/transport/launcher.h"
#include "runtime/transport/rendezvous_secret.h"
#include "runtime/transport/tcp_connections.h"

namespace paceline::job {

inline constexpr int most_thread_ranks = 64;

// This process's place in a launcher's job of several ranks; nothing for a process by itself. A
// launcher's job of one rank counts as a process by itself: it may be a shell that srun has
// started. Throws InputError if a launcher does not say how many ranks there are.
[[nodiscard]] std::optional<runtime::LaunchedRank> rank_of_job();

// Refuses --ranks beside a launcher, which says it itself. Throws InputError.
void refuse_ranks_option(const std::string& ranks);

// As typed; an empty text is an option that is not given.
struct RendezvousOptions {
  std::string rendezvous;
  std::string ranks;
  std::string rank;
};

// This process's place in a job whose processes meet by TCP.
struct MeetingRank {
  runtime::Rendezvous place;
  int rank = 0;
  int ranks = 1;
};

inline constexpr int most_meeting_ranks = 1024;

// The place that --rendezvous names, or MASTER_ADDR and MASTER_PORT for `env`; the rank and the number
// of ranks of --rank and --ranks, or else those of torchrun (RANK, WORLD_SIZE), srun or mpirun.
// Nothing without --rendezvous. torchrun may listen at MASTER_PORT itself, which it says by
// TORCHELASTIC_USE_AGENT_STORE=True; then it is the port behind that. Throws InputError that names
// the option, and also where torchrun has started several processes and --rendezvous is missing:
// each would train by itself.
[[nodiscard]] std::optional<MeetingRank> rank_by_rendezvous(const RendezvousOptions& options);

// The secret that PACELINE_RENDEZVOUS_SECRET says; none where it is not set. Throws InputError that
// names the variable if it is too short.
[[nodiscard]] runtime::RendezvousSecret rendezvous_secret();

// How long ranks wait for a silent one where --patience is not given.
inline constexpr char default_patience[] = "300 s";

// The time that --patience says. Throws InputError that names the option.
[[nodiscard]] Seconds parse_patience(const std::string& patience);

}  // namespace paceline::job
