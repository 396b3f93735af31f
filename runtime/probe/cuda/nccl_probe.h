// NCCL between the GPUs of this process. Private to runtime/probe/cuda; with nccl_probe_absent.cc in a
// build without NCCL.
#pragma once

#include <memory>
#include <string>

#include "runtime/probe/device_probe.h"

namespace paceline::runtime::cuda {

// "NCCL 2.28.9"; empty where this build has none.
[[nodiscard]] std::string nccl_version();

// Between GPUs 0 to ranks - 1. Null where this build has no NCCL. Throws RunError.
[[nodiscard]] std::unique_ptr<CollectiveProbe> make_nccl_probe(int ranks);

}  // namespace paceline::runtime::cuda
