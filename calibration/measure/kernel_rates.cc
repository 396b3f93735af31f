// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/kernel_rates.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "calibration/fit/statistics.h"
#include "runtime/tensor/kernels.h"

namespace paceline::calibration {
namespace {

using models::CalibratedRate;
using models::NumberType;
using models::RateKind;

template <class F>
Figure<BytesPerSecond> rate(std::size_t bytes, int repetitions, const std::string& source,
                            F kernel) {
  kernel();
  std::vector<BytesPerSecond> rates;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    kernel();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    rates.emplace_back(static_cast<double>(bytes) / std::max(1e-9, time.count()));
  }
  return median_figure(rates, Provenance::measured, source);
}

}  // namespace

std::vector<CalibratedRate> measure_kernel_rates(std::size_t bytes, int repetitions,
                                                 const std::string& source) {
  std::vector<CalibratedRate> rates;
  std::vector<float> values(bytes / sizeof(float), 1.0F);
  std::vector<float> others(values.size(), 0.5F);
  const auto measure = [&](RateKind kind, NumberType type, std::size_t moved, auto kernel) {
    rates.push_back({kind, type, rate(moved, repetitions, source, kernel)});
  };
  measure(RateKind::copy, NumberType::fp32, bytes,
          [&] { runtime::cast_to_fp32(others.data(), NumberType::fp32, values); });
  for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
    const std::size_t moved = values.size() * runtime::bytes_of(type);
    measure(RateKind::cast, type, 2 * moved, [&] {
      runtime::cast_from_fp32(values, type, others.data());
      runtime::cast_to_fp32(others.data(), type, values);
    });
  }
  for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
    std::fill(values.begin(), values.end(), 0.0F);
    std::fill(others.begin(), others.end(), 0.0F);
    const std::size_t count = bytes / runtime::bytes_of(type);
    measure(RateKind::reduce, type, bytes,
            [&] { runtime::add(type, values.data(), others.data(), count); });
  }
  return rates;
}

}  // namespace paceline::calibration
