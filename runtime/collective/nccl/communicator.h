// A communicator of NCCL: one rank's end of it, made without blocking and with a deadline.
//
// NCCL's calls do not block: each may go on in NCCL's own threads, and settle() waits for that, so
// that a peer which never comes ends the wait and not the job's patience with it. An error that NCCL
// finds later (a peer that died, a broken network) is an asynchronous error of the communicator.
// After any error the communicator can only be aborted. What it costs that NCCL starts each group from
// a thread of its own was not measured yet.
//
// Thread safety: one thread at a time calls all communicators of a rank.
#pragma once

#include <nccl.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "models/base/units.h"
#include "runtime/channel/channel.h"

namespace paceline::runtime::nccl {

// The name of one communicator, which rank 0 draws and all ranks get. All ranks call it at the same
// point. Throws RunError.
[[nodiscard]] ncclUniqueId draw_unique_id(Channel& channel);

class Communicator {
 public:
  // Throws RunError "cannot make an NCCL communicator as rank 1 of 4: <why>", also if not all ranks
  // have come after so long. `device` is the number of the GPU, which no other rank has: NCCL refuses
  // two ranks on one.
  Communicator(const ncclUniqueId& id, int rank, int ranks, int device, Seconds patience);
  // Gives it back. What was started must be done, or the communicator aborted.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Null once it was aborted.
  [[nodiscard]] ncclComm_t handle() const { return comm_; }

  // Throws RunError "cannot <operation> as rank 1 of 4: <NCCL's words>" unless the status is success
  // or says that the call goes on. Where the cause is a peer, it is a LostRank.
  void check(ncclResult_t status, std::string_view operation) const;
  // Returns when the last call is done: its work is in the stream. Throws as check() does, and after
  // the patience.
  void settle(std::string_view operation) const;
  // Throws as check() does if the communicator has an asynchronous error.
  void check_for_errors(std::string_view operation) const;

  // "as rank 1 of 4"
  [[nodiscard]] const std::string& who() const { return who_; }

 private:
  friend void abort_all(std::span<const std::unique_ptr<Communicator>> communicators) noexcept;

  ncclComm_t comm_ = nullptr;
  std::string who_;
  Seconds patience_;
};

// Aborts communicators of one rank: first all are marked, then each is given back, since one may
// wait for work that waits for another. What they have in streams ends without result.
void abort_all(std::span<const std::unique_ptr<Communicator>> communicators) noexcept;

// A group of NCCL's calls, which run as one. Its destructor ends a group that was not ended, as
// where one of the calls threw: NCCL then drops what is in it.
class Group {
 public:
  explicit Group(const Communicator& communicator);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Gives what is in the group to NCCL, and settles.
  void end(std::string_view operation);

 private:
  const Communicator& communicator_;
  bool open_ = true;
};

}  // namespace paceline::runtime::nccl
