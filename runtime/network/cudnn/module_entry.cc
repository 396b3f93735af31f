// What paceline-cudnn.so offers to runtime/training/cuda/module_entry.cc.
#include "runtime/network/cudnn/cudnn_steps.h"

extern "C" {

__attribute__((visibility("default"))) paceline::runtime::cuda::StepLibraries* paceline_open_cudnn(
    const paceline::runtime::cudnn::CudnnOptions* options) {
  return paceline::runtime::cudnn::open_cudnn(*options).release();
}
}
