// Tests: tests/runtime/training/checkpoint_test.cc.
#include "runtime/training/checksum.h"

#include <xxhash.h>

#include <cstring>
#include <new>

namespace paceline::runtime {

struct Checksummer::State {
  State() : xxh3(XXH3_createState()) {
    if (xxh3 == nullptr || XXH3_128bits_reset(xxh3) != XXH_OK) throw std::bad_alloc();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh3); }

  XXH3_state_t* xxh3;
};

Checksummer::Checksummer() : state_(std::make_unique<State>()) {}
Checksummer::~Checksummer() = default;

void Checksummer::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh3, bytes.data(), bytes.size());
}

Checksum Checksummer::sum() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh3));
  Checksum sum;
  static_assert(sizeof canonical == sizeof sum);
  std::memcpy(sum.data(), &canonical, sizeof sum);
  return sum;
}

std::string to_hex(const Checksum& sum) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : sum) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

}  // namespace paceline::runtime
