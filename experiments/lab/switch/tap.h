// A host's network device: a TAP in the host's network namespace, whose other end is a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace paceline::lab {

// The header that the kernel puts before each frame: which checksum is still missing, and how the
// frame is to be cut up. It is virtio_net_hdr of linux/virtio_net.h, which C++ cannot include.
struct FrameHeader {
  std::uint8_t flags;
  std::uint8_t segmentation;  // 0: none
  std::uint16_t header_bytes;
  std::uint16_t segment_bytes;
  std::uint16_t checksum_start;
  std::uint16_t checksum_offset;
};
static_assert(sizeof(FrameHeader) == 10);

inline constexpr std::size_t largest_frame = sizeof(FrameHeader) + 65536 + 64;

// Makes the device "nic" in a network namespace, with the Ethernet address of host_number (from 0).
// It is down and has no IP address. It hands over frames of up to 64 KiB without checksums, and
// takes such frames. Throws std::system_error. The thread is in its own namespace before and after.
class Tap {
 public:
  Tap(const std::string& namespace_path, int host_number, int mtu);
  Tap(Tap&& other) noexcept;
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;
  Tap& operator=(Tap&&) = delete;
  ~Tap();

  [[nodiscard]] int file() const { return file_; }

 private:
  int file_ = -1;
};

// The host number in the destination address of a frame, or -1 where it is no host's. The address of
// a host is 02:77:00:00 and its number.
[[nodiscard]] int destination(std::span<const std::byte> frame);

}  // namespace paceline::lab
