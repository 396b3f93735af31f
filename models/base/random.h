// Seeded random numbers that are the same on every platform: the standard fixes what
// std::mt19937_64 yields, but not what its distributions make of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>

namespace paceline {

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}

  // Uniform in (0, 1), without the ends: the middles of 2^52 equal parts.
  double uniform() {
    constexpr double part = 0x1p-52;
    return (static_cast<double>(bits_() >> 12) + 0.5) * part;
  }
  // Normal with mean 0 and variance 1 (Box and Muller 1958).
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }
  // Uniform among the whole numbers in [0, count), for 1 <= count <= 2^52.
  std::size_t below(std::size_t count) {
    return std::min(count - 1, static_cast<std::size_t>(uniform() * static_cast<double>(count)));
  }

 private:
  std::mt19937_64 bits_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace paceline
