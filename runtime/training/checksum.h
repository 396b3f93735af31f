// XXH3-128 (github.com/Cyan4973/xxHash), of what is given piece by piece.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace paceline::runtime {

// In the canonical form of xxHash: high half first, big-endian.
using Checksum = std::array<std::byte, 16>;

class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(const Checksummer&) = delete;
  Checksummer& operator=(const Checksummer&) = delete;

  void add(std::span<const std::byte> bytes);
  // Of all bytes so far.
  [[nodiscard]] Checksum sum() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 32 hexadecimal digits.
[[nodiscard]] std::string to_hex(const Checksum& sum);

}  // namespace paceline::runtime
