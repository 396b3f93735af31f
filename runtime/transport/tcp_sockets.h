// Sockets of TCP that do not block, and bytes on them.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "models/base/units.h"

namespace paceline::runtime::tcp {

using Clock = std::chrono::steady_clock;

// A time from now.
[[nodiscard]] Clock::time_point after(Seconds time);

// Owns a descriptor. Its reads and writes do not block.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, none)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ != none; }
  // Whether the other end has closed the connection and nothing that it sent is left to read.
  [[nodiscard]] bool is_gone() const;
  // Both ends learn that nothing more comes.
  void shut_down() const noexcept;

 private:
  static constexpr int none = -1;
  int descriptor_ = none;
};

// One connection with each peer, by rank; that of this rank is not open.
using Connections = std::vector<Socket>;

// How a wait for bytes ended. `silent`: nothing moved for as long as the patience.
enum class End { done, gone, silent };

[[nodiscard]] End write_all(const Socket& socket, std::span<const std::byte> bytes,
                            Seconds patience);
[[nodiscard]] End read_all(const Socket& socket, std::span<std::byte> bytes, Seconds patience);

// What can be moved at once. Returns the number of bytes, 0 if none can be moved yet, and -1 if the
// other end is gone.
[[nodiscard]] int write_some(const Socket& socket, std::span<const std::byte> bytes);
[[nodiscard]] int read_some(const Socket& socket, std::span<std::byte> bytes);

}  // namespace paceline::runtime::tcp
