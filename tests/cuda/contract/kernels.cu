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

// What follows is wrong.

struct Undeclared {
  float* declared;
  float* actual;
  PACELINE_HD void operator()(std::uint64_t) const { actual[0] = 1; }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(declared, 1);
  }
};

struct WriteToInput {
  float* y;
  PACELINE_HD void operator()(std::uint64_t) const { y[0] = 1; }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(y, 1);
  }
};

struct DivergentBarrier {
  PACELINE_HD void operator()(const Block& block) const {
    if (block.thread < 16) block.sync();
  }
  template <class Visitor>
  void access(const Visitor&) const {}
};

struct DivergentShuffle {
  PACELINE_HD void operator()(const Block& block) const {
    if (block.thread == 3) block.shared<float>()[0] = block.shuffle_down(1.F, 1);
  }
  template <class Visitor>
  void access(const Visitor&) const {}
};

struct ForgottenBarrier {
  float* y;
  unsigned distance;
  PACELINE_HD void operator()(const Block& block) const {
    auto* value = block.shared<float>();
    value[block.thread] = static_cast<float>(block.thread);
    const float neighbour = value[(block.thread + distance) % block.threads];
    block.sync();
    y[block.thread] = neighbour;
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(y, 64);
  }
};

struct Neighbour {
  static constexpr int phases = 2;
  float* y;
  unsigned distance;
  PACELINE_HD void phase(int p, const Block& block) const {
    auto* value = block.shared<float>();
    if (p == 0)
      value[block.thread] = static_cast<float>(block.thread);
    else
      y[block.thread] = value[(block.thread + distance) % block.threads];
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(y, 64);
  }
};

struct SharedOverrun {
  static constexpr int phases = 1;
  PACELINE_HD void phase(int, const Block& block) const {
    block.shared<float>()[block.thread + 1] = 1;
  }
  template <class Visitor>
  void access(const Visitor&) const {}
};

struct Last {
  float* y;
  PACELINE_HD void operator()(std::uint64_t i) const { y[0] = static_cast<float>(i); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(y, 1);
  }
};

struct LastBlock {
  static constexpr int phases = 1;
  float* y;
  PACELINE_HD void phase(int, const Block& block) const { y[0] = static_cast<float>(block.block); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(y, 1);
  }
};

__global__ void without_body() {}

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
cudaError_t start_undeclared(cudaStream_t stream, float* declared, float* actual) {
  return paceline::runtime::cuda::start_elements(stream, Undeclared{declared, actual}, 1);
}
cudaError_t start_write_to_input(cudaStream_t stream, float* y) {
  return paceline::runtime::cuda::start_elements(stream, WriteToInput{y}, 1);
}
cudaError_t start_divergent_barrier(cudaStream_t stream) {
  return paceline::runtime::cuda::start_cooperative(stream, DivergentBarrier{}, {1, 64, 0});
}
cudaError_t start_divergent_shuffle(cudaStream_t stream) {
  return paceline::runtime::cuda::start_cooperative(stream, DivergentShuffle{}, {1, 64, 4});
}
cudaError_t start_forgotten_barrier(cudaStream_t stream, float* y, unsigned distance) {
  return paceline::runtime::cuda::start_cooperative(stream, ForgottenBarrier{y, distance},
                                                    {1, 64, 64 * sizeof(float)});
}
cudaError_t start_neighbour(cudaStream_t stream, float* y, unsigned distance) {
  return paceline::runtime::cuda::start_phased(stream, Neighbour{y, distance},
                                               {1, 64, 64 * sizeof(float)});
}
cudaError_t start_shared_overrun(cudaStream_t stream) {
  return paceline::runtime::cuda::start_phased(stream, SharedOverrun{},
                                               {1, 64, 64 * sizeof(float)});
}
cudaError_t start_last(cudaStream_t stream, float* y, std::size_t n) {
  return paceline::runtime::cuda::start_elements(stream, Last{y}, n);
}
cudaError_t start_last_block(cudaStream_t stream, float* y, unsigned n) {
  return paceline::runtime::cuda::start_phased(stream, LastBlock{y}, {n, 32, 0});
}
cudaError_t start_without_body(cudaStream_t stream) {
  without_body<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}
cudaError_t allow_shared_memory(std::size_t bytes) {
  return cudaFuncSetAttribute(
      reinterpret_cast<const void*>(&paceline::runtime::cuda::detail::run_phases<WithSharedMemory>),
      cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

}  // namespace cuda_contract
