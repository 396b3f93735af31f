// The communicators that there are in the double of libnccl, and the group that a thread has begun.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/nccl/parts.h"

namespace cuda_on_host::nccl {

struct Cliques {
  std::map<std::string, std::shared_ptr<Clique>> by_id;
  std::vector<std::unique_ptr<ncclComm>> all;  // those that are gone, too, until the next reset
  std::vector<ncclComm*> live;
  bool hides_aborts = false;
  int ids = 0;
  int launches = 0;  // of communicators that do not block
};
[[nodiscard]] Cliques& cliques();

// Ends the test for a communicator that is gone or never was.
ncclComm& live(ncclComm_t comm);
// ncclSuccess where operations may be issued. Otherwise sets the communicator's last error.
[[nodiscard]] ncclResult_t ensure_ready(ncclComm& comm);
// Whether all its operations have run or were dropped.
[[nodiscard]] bool is_idle(const ncclComm& comm);

// The thread has begun a group and not ended it.
[[nodiscard]] bool in_group();
// Waits at the end of the group until all ranks of the communicator have come.
void wait_at_end_of_group(ncclComm& comm, ncclComm_t* handle);
// Waits until all ranks have come, for this many seconds. Returns ncclInProgress where they have not.
[[nodiscard]] ncclResult_t await_members(ncclComm& comm, double seconds);
// Gives the communicator back.
void bury(ncclComm& comm);

// How long a blocking call waits for the other ranks, in seconds.
inline constexpr double rendezvous_s = 30;

}  // namespace cuda_on_host::nccl
