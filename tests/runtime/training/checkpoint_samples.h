// Bytes of files, and small checkpoints.
#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/training/checkpoint.h"
#include "tests/support/temporary_folder.h"

namespace paceline::test {

inline std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline runtime::Checkpoint small_checkpoint() {
  return {.job = "resnet-small, 2 ranks, recipe fashion-mnist",
          .epoch = 3,
          .batch = 14,
          .iteration = 1234567890123,
          .loss_scale = {.scale = 65536, .good_steps = 17, .skipped = 2},
          .arrays = {{"weights", {1, -0.0F, 0x1p-149F, 3.4e38F, 0.1F}},
                     {"momentum", {}},
                     {"statistics.0", {0, 1}}}};
}

// `elements` numbers that `iteration` tells.
inline runtime::Checkpoint large_checkpoint(std::int64_t iteration, std::size_t elements) {
  runtime::Checkpoint checkpoint{.job = "job", .iteration = iteration};
  checkpoint.arrays = {{"weights", std::vector<float>(elements, static_cast<float>(iteration))},
                       {"momentum", std::vector<float>(elements, -static_cast<float>(iteration))}};
  return checkpoint;
}

}  // namespace paceline::test
