// Drawn shapes and numbers for tests of cuDNN, and where the numbers of images stand.
#pragma once

#include <cstdint>
#include <vector>

#include "models/base/random.h"
#include "runtime/network/steps/operation.h"
#include "tests/cuda/cudnn/rig.h"

namespace cuda_contract {

using Numbers = std::vector<float>;
using paceline::models::NumberType;
using paceline::runtime::steps::Images;
using paceline::runtime::steps::Role;

inline constexpr NumberType types[] = {NumberType::fp16, NumberType::bf16, NumberType::fp32};

inline std::size_t size_of(const Images& i) {
  return static_cast<std::size_t>(i.batch * i.channels * i.height * i.width);
}
// In NHWC order.
inline std::size_t at(const Images& i, std::int64_t n, std::int64_t c, std::int64_t y,
                      std::int64_t x) {
  return static_cast<std::size_t>(((n * i.height + y) * i.width + x) * i.channels + c);
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  // A whole number, both ends included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::size_t>(high - low + 1)));
  }
  bool flip() { return between(0, 1) == 1; }
  // Whole numbers up to `largest` on both sides of 0.
  Numbers whole(std::size_t count, std::int64_t largest = 3) {
    Numbers all(count);
    for (float& number : all) number = static_cast<float>(between(-largest, largest));
    return all;
  }
  // Numbers of the type, normal with this mean and deviation.
  Numbers normal(std::size_t count, cudnnDataType_t type, double mean = 0, double deviation = 1) {
    Numbers all(count);
    for (float& number : all) number = rounded(type, mean + deviation * random_.normal());
    return all;
  }
  Images images(std::int64_t channel_unit = 8) {
    return {between(1, 4), channel_unit * between(1, 4), between(1, 9), between(1, 9)};
  }

 private:
  paceline::Random random_;
};

inline Numbers rounded_all(cudnnDataType_t type, const std::vector<double>& exact) {
  Numbers all;
  all.reserve(exact.size());
  for (const double value : exact) all.push_back(rounded(type, value));
  return all;
}

// One rounding of the type, and errors of arithmetic in FP32.
inline void expect_near(const Numbers& got, const std::vector<double>& exact, cudnnDataType_t type,
                        double arithmetic = 2e-5) {
  ASSERT_EQ(got.size(), exact.size());
  const double unit = type == CUDNN_DATA_HALF ? 0x1p-11 : type == CUDNN_DATA_BFLOAT16 ? 0x1p-8 : 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], exact[i], arithmetic + (1.01 * unit + arithmetic) * std::abs(exact[i]))
        << "number " << i;
}

}  // namespace cuda_contract
