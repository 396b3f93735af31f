// The checkpoints of a job of several ranks. Rank 0 reads and writes the file, and every rank gets
// what is in it, or the same error.
//
// All ranks call the same function at the same point, with the same arguments where nothing else is
// said, while no iteration is under way. Each throws RunError that names a rank that is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/channel/channel.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/checkpoint_lock.h"
#include "runtime/training/loss_scale.h"

namespace paceline::runtime {

// How far a run has come in its recipe.
struct Position {
  std::int64_t epoch = 0;  // of the next iteration
  std::int64_t batch = 0;  // of the next iteration, within the epoch
  std::int64_t iteration = 0;
};

// Claims `path` for the checkpoints of this job, until rank 0 drops the lock that it gets; the other
// ranks get none. Throws InputError if another job has claimed it, or if a file is there that is no
// checkpoint of this job and not the very file that `resume` names. Where `path` is empty there is
// nothing to claim.
[[nodiscard]] std::unique_ptr<CheckpointLock> claim_checkpoint_path(Channel& channel,
                                                                    const std::string& path,
                                                                    const std::string& resume,
                                                                    const std::string& job);

// Rank 0 writes its checkpoint; that of the others is not read. Throws RunError with rank 0's cause
// where that fails.
void write_together(Channel& channel, const std::string& path, const Checkpoint& checkpoint);

// A checkpoint that was read, from which all ranks take one array after the other.
class SharedCheckpoint {
 public:
  // Throws InputError if the file is no checkpoint, damaged, or of another job
  // (why_not_resumed). The channel
  // outlives the checkpoint.
  SharedCheckpoint(Channel& channel, const std::string& path, const std::string& job);

  [[nodiscard]] const Position& position() const { return position_; }
  // Without `fixed`, which is the job's.
  [[nodiscard]] const LossScaleState& loss_scale() const { return loss_scale_; }
  // Whether it has "gradients.pending" and "gradients.pending.scale".
  [[nodiscard]] bool has_pending_gradients() const { return has_pending_gradients_; }

  // The array of this name and length. Where there is none, rank 0 throws InputError.
  [[nodiscard]] std::vector<float> take(const std::string& name, std::size_t elements) const;
  // An array with as many elements for each of the checkpoint's ranks, which may be others than this job's.
  [[nodiscard]] std::vector<std::vector<float>> take_of_ranks(const std::string& name,
                                                              std::size_t elements) const;

 private:
  Channel& channel_;
  Checkpoint checkpoint_;  // of rank 0; empty on the others
  Position position_;
  LossScaleState loss_scale_;
  bool has_pending_gradients_ = false;
  int ranks_ = 1;
};

}  // namespace paceline::runtime
