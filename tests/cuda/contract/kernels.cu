#include "tests/cuda/contract/kernels.h"

#include "runtime/device/cuda/launch.h"

namespace cuda_contract {
namespace {

using paceline::runtime::cuda::Block;

struct Fill {
  float* y;
  float value;
  std::size_t n;
  PACELINE_HD void operator()(std::uint64_t i) const { y[i] = value; }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(y, n);
  }
};

struct Combine {
  float* y;
  const float* x;
  float a, b, c;
  std::size_t n;
  PACELINE_HD void operator()(std::uint64_t i) const { y[i] = a * x[i] + b * y[i] + c; }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(x, n);
    visitor.read(y, n);
    visitor.write(y, n);
  }
};

struct PhasedSum {
  static constexpr int phases = 2;
  float* sum;
  const float* x;
  std::size_t n;
  PACELINE_HD void phase(int p, const Block& block) const {
    auto* part = block.shared<float>();
    float total = 0;
    if (p == 0) {
      for (std::size_t i = block.thread; i < n; i += block.threads) total += x[i];
      part[block.thread] = total;
    } else if (block.thread == 0) {
      for (unsigned t = 0; t < block.threads; ++t) total += part[t];
      *sum = total;
    }
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(x, n);
    visitor.write(sum, 1);
  }
};

struct CooperativeSum {
  float* sum;
  const float* x;
  std::size_t n;
  PACELINE_HD void operator()(const Block& block) const {
    auto* part = block.shared<float>();
    float total = 0;
    for (std::size_t i = block.thread; i < n; i += block.threads) total += x[i];
    part[block.thread] = total;
    block.sync();
    for (unsigned half = block.threads / 2; half >= 32; half /= 2) {
      if (block.thread < half) part[block.thread] += part[block.thread + half];
      block.sync();
    }
    float lane = part[block.thread % 32];
    for (unsigned delta = 16; delta > 0; delta /= 2) lane += block.shuffle_down(lane, delta);
    if (block.thread == 0) *sum = lane;
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(x, n);
    visitor.write(sum, 1);
  }
};

struct WithSharedMemory {
  static constexpr int phases = 1;
  float* y;
  unsigned threads;
  PACELINE_HD void phase(int, const Block& block) const {
    y[block.thread] = static_cast<float>(block.thread);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(y, threads);
  }
};

}  // namespace

cudaError_t start_fill(cudaStream_t stream, float* y, float value, std::size_t n) {
  return paceline::runtime::cuda::start_elements(stream, Fill{y, value, n}, n);
}
cudaError_t start_combine(cudaStream_t stream, float* y, const float* x, float a, float b, float c,
                          std::size_t n) {
  return paceline::runtime::cuda::start_elements(stream, Combine{y, x, a, b, c, n}, n);
}
cudaError_t start_phased_sum(cudaStream_t stream, float* sum, const float* x, std::size_t n) {
  return paceline::runtime::cuda::start_phased(stream, PhasedSum{sum, x, n},
                                               {1, 256, 256 * sizeof(float)});
}
cudaError_t start_cooperative_sum(cudaStream_t stream, float* sum, const float* x, std::size_t n) {
  return paceline::runtime::cuda::start_cooperative(stream, CooperativeSum{sum, x, n},
                                                    {1, 256, 256 * sizeof(float)});
}
cudaError_t start_with_shared_memory(cudaStream_t stream, float* y, unsigned threads,
                                     std::size_t shared_bytes) {
  return paceline::runtime::cuda::start_phased(stream, WithSharedMemory{y, threads},
                                               {1, threads, shared_bytes});
}

}  // namespace cuda_contract
