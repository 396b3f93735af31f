// Tests: tests/runtime/training/checkpoint_test.cc,
// tests/runtime/training/checkpoint_faults_test.cc.
#include <algorithm>

#include "models/base/error.h"
#include "runtime/training/atomic_file.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/checkpoint_format.h"

namespace paceline::runtime {
namespace {

Checksum write_array(const AtomicFile& file, std::uint64_t offset,
                     std::span<const std::byte> left) {
  Checksummer summer;
  while (!left.empty()) {
    const auto piece = left.first(std::min(left.size(), checkpoint_piece));
    summer.add(piece);
    file.write_at(offset, piece);
    offset += piece.size();
    left = left.subspan(piece.size());
  }
  return summer.sum();
}

std::vector<ArrayEntry> entries_of(const Checkpoint& checkpoint) {
  std::vector<ArrayEntry> entries;
  for (const CheckpointArray& array : checkpoint.arrays)
    entries.push_back({array.name, array.values.size(), to_hex(Checksum{})});
  return entries;
}

void write_all(const AtomicFile& file, const Checkpoint& checkpoint) {
  // The arrays come first, so that their checksums are taken in the same pass; the header is as
  // long with them as without.
  std::vector<ArrayEntry> entries = entries_of(checkpoint);
  const std::size_t header_bytes = header_text(checkpoint, entries).size();
  if (header_bytes > longest_checkpoint_header)
    throw RunError("write a checkpoint", "its header is longer than 4 MiB");
  std::uint64_t offset = sizeof(CheckpointStart) + header_bytes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(checkpoint.arrays[i].values));
    entries[i].sum = to_hex(write_array(file, offset, bytes));
    offset += bytes.size();
  }
  const std::string header = header_text(checkpoint, entries);
  PACELINE_ASSERT(header.size() == header_bytes, "checksums are of one length");
  CheckpointStart start{.magic = {},
                        .version = checkpoint_version,
                        .header_bytes = static_cast<std::uint32_t>(header_bytes),
                        .sum = {}};
  std::copy(checkpoint_magic.begin(), checkpoint_magic.end(), start.magic.begin());
  start.sum = header_sum(start, header);
  file.write_at(0, std::as_bytes(std::span(&start, 1)));
  file.write_at(sizeof start, std::as_bytes(std::span(header)));
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  AtomicFile file(path, Writers::one);
  write_all(file, checkpoint);
  file.commit();
  // A rename is on disk when its folder is.
  file.flush_folder();
}

}  // namespace paceline::runtime
