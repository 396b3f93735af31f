// Tests: tests/cli/cuda_test.py (end to end).
#include "runtime/training/cuda_module.h"

#include <vector>

#include "models/base/module.h"

namespace paceline::runtime {
namespace {

struct Module {
  int (*devices)() = nullptr;
  Backend* (*make)(int, const CudaLayers*) = nullptr;
  const char* (*version)() = nullptr;
};

const Module& module() {
  static const Module loaded = [] {
    const std::vector<void*> symbols = load_module(
        {.file = "paceline-cuda.so",
         .what = "the CUDA backend",
         .remedy = "build with a CUDA toolkit, or leave out --device"},
        {"paceline_cuda_devices", "paceline_make_cuda_backend", "paceline_cuda_version"});
    return Module{reinterpret_cast<int (*)()>(symbols[0]),
                  reinterpret_cast<Backend* (*)(int, const CudaLayers*)>(symbols[1]),
                  reinterpret_cast<const char* (*)()>(symbols[2])};
  }();
  return loaded;
}

}  // namespace

int cuda_devices() {
  return module().devices();
}

std::unique_ptr<Backend> load_cuda_backend(int index, const CudaLayers& layers) {
  return std::unique_ptr<Backend>(module().make(index, &layers));
}

std::string cuda_version() {
  return module().version();
}

}  // namespace paceline::runtime
