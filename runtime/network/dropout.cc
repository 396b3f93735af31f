// Tests: tests/runtime/network_parts_test.cc.
#include "runtime/network/dropout.h"

#include <cstddef>

namespace paceline::runtime {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose outputs look random.
constexpr std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;  // 2^64 / the golden ratio, odd

}  // namespace

void drop_out(const DropoutMask& mask, std::span<const float> source, std::span<float> target) {
  const std::uint64_t start =
      mixed(mixed(mask.seed + golden) + golden * (static_cast<std::uint64_t>(mask.layer) + 1));
  // Of 2^53 equally likely draws, the lowest are dropped.
  const auto dropped = static_cast<std::uint64_t>(mask.probability * 0x1p53);
  const double kept = 1 - mask.probability;
  const float factor = kept > 0 ? static_cast<float>(1 / kept) : 0.0F;
  const auto count = static_cast<std::ptrdiff_t>(source.size());
#pragma omp parallel for schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::uint64_t draw = mixed(start + golden * (index + 1)) >> 11;
    target[index] = draw < dropped ? 0.0F : factor * source[index];
  }
}

}  // namespace paceline::runtime
