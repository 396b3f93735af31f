// GB/s of each kernel and form, beside memcpy and std::transform in the same run. Bytes are those
// that the kernel reads and writes; memcpy's are both of its sides. Arrays that fit the first and
// the second cache, and memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/tensor/kernel_forms.h"

namespace paceline::runtime {
namespace {

constexpr std::array<std::int64_t, 3> elements{1 << 11, 1 << 16, 1 << 24};

// An array aligned to a page, as is every slice that the kernels are given.
struct Pages {
  explicit Pages(std::size_t bytes)
      : data(static_cast<unsigned char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))) {
    std::memset(data, 0, bytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { std::free(data); }
  unsigned char* data;
};

template <class Body>
void measure(const std::string& name, std::size_t target_bytes, std::size_t source_bytes,
             std::size_t moved_bytes, Body body) {
  auto* registered = benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    const Pages target(count * target_bytes);
    const Pages source(count * source_bytes);
    for (auto _ : state) {
      body(target.data, source.data, count);
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(count * moved_bytes));
  });
  for (const std::int64_t count : elements) registered->Arg(count);
}

void measure_peers() {
  measure("memcpy/fp32", 4, 4, 8, [](void* target, const void* source, std::size_t count) {
    std::memcpy(target, source, 4 * count);
  });
  measure("transform_plus/fp32", 4, 4, 12, [](void* target, const void* source, std::size_t count) {
    auto* to = static_cast<float*>(target);
    const auto* from = static_cast<const float*>(source);
    std::transform(to, to + count, from, to, std::plus<>());
  });
}

void measure_form(const KernelForm& form) {
  const std::string name = std::string("/") + form.name;
  measure("fp16_from_fp32" + name, 2, 4, 6, form.fp16_from_fp32);
  measure("bf16_from_fp32" + name, 2, 4, 6, form.bf16_from_fp32);
  measure("fp32_from_fp16" + name, 4, 2, 6, form.fp32_from_fp16);
  measure("fp32_from_bf16" + name, 4, 2, 6, form.fp32_from_bf16);
  measure("add_fp32" + name, 4, 4, 12, form.add_fp32);
  measure("add_fp16" + name, 2, 2, 6, form.add_fp16);
  measure("add_bf16" + name, 2, 2, 6, form.add_bf16);
  measure("add_fp16_to_fp32" + name, 4, 2, 10, form.add_fp16_to_fp32);
  measure("add_bf16_to_fp32" + name, 4, 2, 10, form.add_bf16_to_fp32);
  measure("scale" + name, 4, 0, 8, [&form](void* target, const void*, std::size_t count) {
    form.scale(target, 0.999F, count);
  });
  measure("all_finite" + name, 4, 0, 4, [&form](void* target, const void*, std::size_t count) {
    benchmark::DoNotOptimize(form.all_finite(target, count));
  });
  measure("sum_of_squares" + name, 4, 0, 4, [&form](void* target, const void*, std::size_t count) {
    benchmark::DoNotOptimize(form.sum_of_squares(target, count));
  });
}

}  // namespace
}  // namespace paceline::runtime

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  paceline::runtime::measure_peers();
  for (const auto* form : paceline::runtime::kernel_forms()) paceline::runtime::measure_form(*form);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
