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
  DeviceProbe* (*make_probe)(int, int, const CudaLayers*) = nullptr;
};

const Module& module() {
  static const Module loaded = [] {
    const std::vector<void*> symbols =
        load_module({.file = "paceline-cuda.so",
                     .what = "the CUDA backend",
                     .remedy = "build with a CUDA toolkit, or leave out --device"},
                    {"paceline_cuda_devices", "paceline_make_cuda_backend", "paceline_cuda_version",
                     "paceline_make_cuda_probe"});
    return Module{reinterpret_cast<int (*)()>(symbols[0]),
                  reinterpret_cast<Backend* (*)(int, const CudaLayers*)>(symbols[1]),
                  reinterpret_cast<const char* (*)()>(symbols[2]),
                  reinterpret_cast<DeviceProbe* (*)(int, int, const CudaLayers*)>(symbols[3])};
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

std::unique_ptr<DeviceProbe> load_cuda_probe(int index, bool all_devices,
                                             const CudaLayers& layers) {
  return std::unique_ptr<DeviceProbe>(module().make_probe(index, all_devices ? 1 : 0, &layers));
}

std::string cuda_version() {
  return module().version();
}

}  // namespace paceline::runtime
