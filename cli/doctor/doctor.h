// What of the parts that Paceline can use is on this machine, and what is missing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/doctor/build_info.h"
#include "models/base/document.h"

namespace paceline::doctor {

enum class State {
  found,
  missing,   // it is not there, or says that it cannot be used
  no_answer  // it hung until the time limit, or crashed
};
[[nodiscard]] std::string_view name(State state);

struct Part {
  std::string name;       // "NCCL"
  std::string needed_by;  // what it is for: "train --device cuda with several GPUs"
  std::string package;    // what brings it: "libnccl2 (NVIDIA's repository)"
  State state = State::missing;
  std::string version;  // empty where it is not there, or has none
  std::string where;    // a file or a folder; likewise
  std::string why;      // why it is not found; else empty
};

struct Gpu {
  std::string name;
  std::int64_t memory_bytes = 0;
  std::string compute_capability;  // "9.0"
};

struct Processor {
  std::string model;
  int threads = 0;  // that may run at the same time
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ and VL
  bool bf16 = false;    // AVX512_BF16
  bool amx = false;     // of BF16
  std::string kernels;  // the form of our own kernels that runs here
};

struct Findings {
  Processor processor;
  std::vector<Part> parts;
  std::vector<Gpu> gpus;
};

// Asks for all parts at the same time, each in a process of its own that ends at the time limit.
// Starts no work on a GPU. Call it before there are threads.
[[nodiscard]] Findings look_around(std::chrono::milliseconds limit);

[[nodiscard]] const Document<Findings>& doctor_document();

}  // namespace paceline::doctor
