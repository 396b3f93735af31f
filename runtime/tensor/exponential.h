// e^x in FP32 for loops that a compiler turns into vectors.
#pragma once

#include <bit>
#include <cstdint>

namespace paceline::runtime {

// The relative error is below 2e-7 for x from -87 to 88; below -87 it is that of -87, about 1e-38. NaN gives NaN.
// x = n ln 2 + r, and e^r is a polynomial of degree 6 (Cephes, expf).
[[gnu::always_inline]] inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  constexpr float rounds = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * 1.44269504F + rounds;
  const float n = shifted - rounds;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float power = p * r * r + r + 1.0F;
  const auto exponent = std::bit_cast<std::uint32_t>(shifted) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + exponent);
}

}  // namespace paceline::runtime
