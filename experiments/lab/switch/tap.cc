#include "experiments/lab/switch/tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace paceline::lab {
namespace {

int checked(int result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

class File {
 public:
  File(int file, const std::string& what) : file_(checked(file, what)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(file_); }
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

// While an object of this class lives, its thread is in another network namespace.
class Visit {
 public:
  explicit Visit(const std::string& path)
      : home_(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "own namespace") {
    const File there(open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
    checked(setns(there.get(), CLONE_NEWNET), "enter " + path);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { static_cast<void>(setns(home_.get(), CLONE_NEWNET)); }

 private:
  File home_;
};

ifreq request_for_device() {
  ifreq request{};
  std::strcpy(request.ifr_name, "nic");
  return request;
}

}  // namespace

Tap::Tap(const std::string& namespace_path, int host_number, int mtu) {
  const Visit visit(namespace_path);
  file_ = checked(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
  ifreq request = request_for_device();
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  checked(ioctl(file_, TUNSETIFF, &request), "TUNSETIFF");
  int header_bytes = sizeof(FrameHeader);
  checked(ioctl(file_, TUNSETVNETHDRSZ, &header_bytes), "TUNSETVNETHDRSZ");
  checked(ioctl(file_, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4), "TUNSETOFFLOAD");

  const File socket_file(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  request = request_for_device();
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  const std::array<char, 6> address{
      0x02, 0x77, 0, 0, static_cast<char>(host_number >> 8), static_cast<char>(host_number)};
  std::memcpy(request.ifr_hwaddr.sa_data, address.data(), address.size());
  checked(ioctl(socket_file.get(), SIOCSIFHWADDR, &request), "SIOCSIFHWADDR");
  request = request_for_device();
  request.ifr_mtu = mtu;
  checked(ioctl(socket_file.get(), SIOCSIFMTU, &request), "SIOCSIFMTU");
  request = request_for_device();
  request.ifr_qlen = 2000;  // what a host has sent and its link has not taken yet
  checked(ioctl(socket_file.get(), SIOCSIFTXQLEN, &request), "SIOCSIFTXQLEN");
}

Tap::Tap(Tap&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

Tap::~Tap() {
  if (file_ >= 0) close(file_);
}

int destination(std::span<const std::byte> frame) {
  constexpr std::array<std::byte, 4> prefix{std::byte{0x02}, std::byte{0x77}, std::byte{0},
                                            std::byte{0}};
  if (frame.size() < 14 || std::memcmp(frame.data(), prefix.data(), prefix.size()) != 0) return -1;
  return std::to_integer<int>(frame[4]) * 256 + std::to_integer<int>(frame[5]);
}

}  // namespace paceline::lab
