// Addresses of TCP: those that a host name stands for, and sockets that listen at one or connect to
// one.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/transport/tcp_sockets.h"

namespace paceline::runtime::tcp {

// An address of IPv4 or IPv6 with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  void set_port(std::uint16_t port);
  [[nodiscard]] std::uint16_t port() const;
  // Whether only processes of this machine reach it: 127.0.0.0/8, ::1.
  [[nodiscard]] bool is_loopback() const;
  // Whether it is one that can be connected to, in a size that its family has.
  [[nodiscard]] bool is_valid() const;
};

// "127.0.0.1", "::1".
[[nodiscard]] std::string host_text(const Address& address);

// All addresses of a host. Throws RunError if there is none.
[[nodiscard]] std::vector<Address> resolve(const std::string& host, std::uint16_t port);

// A socket that listens at this address and no other; at a free port for port 0. One that is not
// open, and errno, if that failed.
[[nodiscard]] Socket listen_at(const Address& address);

// A connection that was begun: it is there, or it failed, once the socket can be written to
// (connection_error). One that is not open, and errno, if it failed at once.
[[nodiscard]] Socket begin_connection(const Address& address);
// The errno of a connection that was begun; 0 if it is there.
[[nodiscard]] int connection_error(const Socket& socket);

// The next connection of a socket that listens; one that is not open, and errno, if there is none.
[[nodiscard]] Socket accept_from(const Socket& listener);

[[nodiscard]] Address own_address(const Socket& socket);
[[nodiscard]] Address peer_address(const Socket& socket);

}  // namespace paceline::runtime::tcp
