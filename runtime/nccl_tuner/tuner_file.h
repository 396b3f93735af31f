// The file of rules that the tuner plugin reads: text "paceline.nccl-tuner/1" (docs/formats.md),
// which `paceline export PLAN --format nccl-tuner` writes.
//
// It runs inside NCCL's process: no exceptions, no allocation but the one that is said, no locale, no
// state. It needs the C library only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/nccl_tuner/tuner_api.h"

namespace paceline::nccl_tuner {

inline constexpr std::size_t most_file_bytes = 1 << 20;
inline constexpr int most_rules = 4096;
inline constexpr int most_constants = 1024;
inline constexpr std::uint64_t most_ranks = 1 << 20;
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;
inline constexpr int most_channels = 64;
inline constexpr std::size_t longest_line = 255;

// Calls of one function from `least` to `most` bytes, both included, on communicators of this many
// ranks and nodes.
struct Rule {
  int function;
  std::uint64_t ranks;
  std::uint64_t nodes;
  std::uint64_t least;
  std::uint64_t most;
  int algorithm;
  int protocol;
  int channels;  // 0: NCCL decides
};

// A number in the place of NCCL's own, on communicators of this many ranks and nodes.
struct Constant {
  std::uint64_t ranks;
  std::uint64_t nodes;
  std::size_t slot;  // which double of Constants
  double value;
};

struct TunerFile {
  char plan[longest_line + 1];
  int rule_count;
  int constant_count;
  Rule rules[most_rules];  // by function, ranks, nodes and least bytes; no two overlap
  Constant constants[most_constants];
};

// What is wrong with a text, and in which line, counted from 1; 0: all of it.
struct Fault {
  int line;
  const char* what;  // null: nothing
};

// Reads the text strictly. What `file` then holds is of use only if nothing is wrong.
[[nodiscard]] Fault parse(const char* text, std::size_t size, TunerFile& file) noexcept;

// FNV-1a of the bytes, by which people compare the files of all ranks.
[[nodiscard]] std::uint64_t digest(const char* text, std::size_t size) noexcept;

}  // namespace paceline::nccl_tuner
