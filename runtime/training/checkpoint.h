// Checkpoints: all that a training job needs to go on bit by bit as if it had never stopped.
//
// A file has a magic number and version, a JSON header (the numbers below, and name, type, length
// and XXH3-128 checksum of each array), a checksum of the header, then the arrays. docs/formats.md
// has the layout. It is written to a temporary file beside the path (PATH.partial), flushed to disk
// (fsync of file and folder) and renamed: the path always holds a whole checkpoint, the old or the
// new one. Reading and writing take one pass over the arrays, without copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/training/loss_scale.h"

namespace paceline::runtime {

struct CheckpointArray {
  // "weights", "momentum" and others of the optimizer, "statistics" (of all ranks, one after the
  // other), within an epoch "epoch" (its sums, likewise of all ranks; epoch_sums.h), and with
  // double buffering "gradients.pending" and "gradients.pending.scale".
  std::string name;
  std::vector<float> values;
};

struct Checkpoint {
  std::string job;             // fingerprint of what must be the same on resume, as readable text
  std::int64_t epoch = 0;      // of the next iteration
  std::int64_t batch = 0;      // of the next iteration, within the epoch
  std::int64_t iteration = 0;  // so far
  LossScaleState loss_scale = {};
  std::vector<CheckpointArray> arrays = {};

  // Throws InputError if there is none of that name or it has another length.
  [[nodiscard]] const std::vector<float>& array(const std::string& name,
                                                std::size_t elements) const;
};

// Throws RunError that names the path and the cause ("No space left on device"); then the path is
// as it was, and no temporary file is left. (Only where the folder itself cannot be flushed the
// path may hold the new one already.) A process that is killed while it writes leaves PATH.partial,
// which the next write takes over. Two at a time on one path: the second is refused. Names are
// different, texts UTF-8, numbers not negative.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Throws InputError that says what is wrong: no checkpoint, another version, cut short at which
// byte, a flipped bit in which array. Reserves no more memory for arrays than the file is long.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path);
// The same of a file's bytes; `name` is for errors.
[[nodiscard]] Checkpoint parse_checkpoint(std::span<const std::byte> bytes,
                                          const std::string& name);

}  // namespace paceline::runtime
