// The portable form of the kernels, which defines the bits of all others.
#include <bit>
#include <cstring>

#include "runtime/tensor/kernel_forms.h"
#include "runtime/tensor/kernel_loops.h"

namespace paceline::runtime {

extern const KernelForm portable_kernels;

namespace {

constexpr std::uint32_t infinity = 0x7f800000;
constexpr std::uint32_t quiet_nan = 0x7fc00000;
// The difference of the exponents' biases, in place.
constexpr std::uint32_t rebias = (127 - 15) << 23;

std::uint16_t fp16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t sign = (bits & 0x80000000) >> 16;
  // Nearest, ties to even: half of the last place is added, less one bit where that place is even.
  const std::uint32_t normal = (magnitude - rebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // The last place of 0.5 in FP32 is the last place of subnormals of FP16, so that sum rounds.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
      std::bit_cast<std::uint32_t>(0.5F);
  // From 65,520 on, half of a last place above the largest, the nearest is infinity.
  const std::uint32_t large = magnitude > infinity ? 0x7e00 : 0x7c00;
  const std::uint32_t small = magnitude < 0x38800000 ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x477ff000 ? large : small));
}

float fp16_value(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t normal = (magnitude << 13) + rebias + (magnitude >= 0x7c00 ? rebias : 0);
  const auto subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  return std::bit_cast<float>(sign | (magnitude < 0x400 ? subnormal : normal));
}

struct Portable {
  using Floats = float;
  static constexpr std::size_t lanes = 1;

  static Floats broadcast(float value) { return value; }
  static Floats add(Floats a, Floats b) { return a + b; }
  static Floats multiply(Floats a, Floats b) { return a * b; }
  static Floats canonical(Floats value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return std::bit_cast<float>((bits & 0x7fffffff) > infinity ? quiet_nan : bits);
  }
  static bool finite(Floats value) {
    return (std::bit_cast<std::uint32_t>(value) & infinity) != infinity;
  }

  template <class Element, float (*decode)(Element), Element (*encode)(float)>
  struct Format {
    static constexpr std::size_t bytes = sizeof(Element);
    static Floats load(const unsigned char* from) {
      Element element;
      std::memcpy(&element, from, sizeof element);
      return decode(element);
    }
    static void store(unsigned char* to, Floats value) {
      const Element element = encode(value);
      std::memcpy(to, &element, sizeof element);
    }
    static Floats load(const unsigned char* from, std::size_t) { return load(from); }
    static void store(unsigned char* to, Floats value, std::size_t) { store(to, value); }
  };

  static float fp32_value(std::uint32_t bits) { return std::bit_cast<float>(bits); }
  static std::uint32_t fp32_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
  static float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(bits * 0x10000U); }
  static std::uint16_t bf16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }

  using Fp32 = Format<std::uint32_t, fp32_value, fp32_bits>;
  using Fp16 = Format<std::uint16_t, fp16_value, fp16_bits>;
  using Bf16 = Format<std::uint16_t, bf16_value, bf16_bits>;

  struct SquareSums {
    double sums[kernel_loops::square_lanes] = {};
    void accumulate(std::size_t group, Floats value) {
      sums[group] += static_cast<double>(value) * static_cast<double>(value);
    }
    void store(double* lanes) const { std::memcpy(lanes, sums, sizeof sums); }
  };
};

}  // namespace

constinit const KernelForm portable_kernels = kernel_loops::form<Portable>("portable");

}  // namespace paceline::runtime
