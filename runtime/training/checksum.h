// XXH3-128 checksums (github.com/Cyan4973/xxHash) of bytes that are given piece by piece.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace paceline::runtime {

// A checksum in xxHash's canonical form: high half first, big-endian.
using Checksum = std::array<std::byte, 16>;

class Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(const Checksummer&) = delete;
  Checksummer& operator=(const Checksummer&) = delete;

  void add(std::span<const std::byte> bytes);
  // The checksum of all bytes so far.
  [[nodiscard]] Checksum sum() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 32 hexadecimal digits.
[[nodiscard]] std::string to_hex(const Checksum& sum);

}  // namespace paceline::runtime
