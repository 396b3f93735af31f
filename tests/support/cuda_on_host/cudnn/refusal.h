// What cuDNN's functions answer where they refuse something.
#pragma once

#include <cudnn_graph.h>

#include <string>

namespace cuda_on_host::cudnn {

// Thrown inside of a function of cuDNN, which then returns the status. The text is what
// cudnnGetLastErrorString() has to say.
struct Refusal {
  cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM;
  std::string why;
};

inline void require(bool holds, cudnnStatus_t status, const std::string& why) {
  if (!holds) throw Refusal{status, why};
}
inline void require(bool holds, const std::string& why) {
  require(holds, CUDNN_STATUS_BAD_PARAM, why);
}

}  // namespace cuda_on_host::cudnn
