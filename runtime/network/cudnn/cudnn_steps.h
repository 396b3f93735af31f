// cuDNN as what computes the steps of networks on one device (runtime/network/cuda/step_library.h).
//
// Plans are made for the device that is there, as planner.h says, and written down, so that a later
// run on a device of its kind makes none. What is executed was always loaded from its serialised form, so
// that a stored plan and a new one are the same.
//
// A plan is stored in a file: the given one, or cudnn-plans-<hash>.json in the folder paceline of the
// user's cache ($XDG_CACHE_HOME, else ~/.cache), where the hash tells versions of cuDNN, rules and
// devices apart. A file that is damaged is noted, and made anew; it is replaced as a whole. A file
// that cannot be written is noted.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "runtime/network/cuda/step_library.h"

namespace paceline::runtime::cudnn {

struct CudnnOptions {
  int device = 0;          // CUDA's number
  std::string plans = {};  // the file of plans; the one of the user's cache if it is empty
  int threads = 0;         // that make plans; 0: one for each core
  bool tf32 = true;        // FP32 operands of convolutions may be rounded to TF32 (planner.h)
};

// Throws RunError if cuDNN does not start on the device.
[[nodiscard]] std::unique_ptr<cuda::StepLibraries> open_cudnn(const CudnnOptions& options);

// Where plans for this description of a device are stored if no file is given: empty where the user
// has neither a cache nor a home.
[[nodiscard]] std::string default_plan_file(const std::string& made_for);

}  // namespace paceline::runtime::cudnn
