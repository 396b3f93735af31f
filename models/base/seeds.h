// Seeds that are derived from seeds: for an epoch, a sample, a pixel, a dropout mask.
#pragma once

#include <cstdint>

namespace paceline {

// A seed that depends on both arguments, in their order, and is the same on every platform
// (the finaliser of SplitMix64, Steele, Lea & Flood 2014).
[[nodiscard]] constexpr std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t number) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  std::uint64_t z = seed + (number + 1) * golden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace paceline
