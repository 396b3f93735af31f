// Any bytes as a checkpoint: one whose arrays are no longer than the file, or an InputError. Since
// no fuzzer finds a checksum, the same bytes are tried again with the right one for their header.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "models/base/error.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/checkpoint_format.h"

namespace {

using namespace paceline;

void try_to_parse(std::span<const std::byte> bytes) {
  try {
    const runtime::Checkpoint checkpoint = runtime::parse_checkpoint(bytes, "checkpoint");
    std::size_t elements = 0;
    for (const runtime::CheckpointArray& array : checkpoint.arrays) elements += array.values.size();
    PACELINE_ASSERT(elements * sizeof(float) < bytes.size(), "arrays come from the file");
    PACELINE_ASSERT(checkpoint.epoch >= 0 && checkpoint.loss_scale.scale > 0,
                    "numbers are in range");
  } catch (const InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  try_to_parse(bytes);
  runtime::CheckpointStart start{};
  if (size < sizeof start) return 0;
  std::memcpy(&start, bytes.data(), sizeof start);
  if (start.header_bytes > size - sizeof start) return 0;
  start.sum = runtime::header_sum(
      start, {reinterpret_cast<const char*>(bytes.data()) + sizeof start, start.header_bytes});
  std::memcpy(bytes.data(), &start, sizeof start);
  try_to_parse(bytes);
  return 0;
}
