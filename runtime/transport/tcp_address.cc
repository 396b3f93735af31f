// Tests: tests/runtime/channel/tcp_address_test.cc.
#include "runtime/transport/tcp_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "models/base/error.h"

namespace paceline::runtime::tcp {
namespace {

void set_on(const Socket& socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket.get(), level, option, &on, sizeof on);
}

const sockaddr_in& as_ipv4(const Address& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}
const sockaddr_in6& as_ipv6(const Address& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

// Closes the socket, and leaves errno as it is.
Socket failed(Socket socket) {
  const int error = errno;
  socket = Socket();
  errno = error;
  return {};
}

Address named(const Socket& socket, int (*name)(int, sockaddr*, socklen_t*)) {
  Address address;
  address.size = sizeof address.storage;
  if (name(socket.get(), address.get(), &address.size) != 0) return {};
  return address;
}

}  // namespace

void Address::set_port(std::uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
}

std::uint16_t Address::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? as_ipv6(*this).sin6_port : as_ipv4(*this).sin_port);
}

bool Address::is_loopback() const {
  constexpr std::uint32_t net_of_ipv4 = 127;
  if (storage.ss_family == AF_INET)
    return ntohl(as_ipv4(*this).sin_addr.s_addr) >> 24 == net_of_ipv4;
  const in6_addr& ipv6 = as_ipv6(*this).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&ipv6)) return ipv6.s6_addr[12] == net_of_ipv4;
  return IN6_IS_ADDR_LOOPBACK(&ipv6);
}

bool Address::is_valid() const {
  return (storage.ss_family == AF_INET && size == sizeof(sockaddr_in)) ||
         (storage.ss_family == AF_INET6 && size == sizeof(sockaddr_in6));
}

std::string host_text(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const bytes = address.storage.ss_family == AF_INET6
                                ? static_cast<const void*>(&as_ipv6(address).sin6_addr)
                                : &as_ipv4(address).sin_addr;
  ::inet_ntop(address.storage.ss_family, bytes, text.data(), text.size());
  return text.data();
}

std::vector<Address> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (status != 0) throw RunError(fmt::format("find host {}", host), ::gai_strerror(status));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
  }
  return addresses;
}

Socket listen_at(const Address& address) {
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  set_on(socket, SOL_SOCKET, SO_REUSEADDR);
  // An address of IPv4 beside it has a socket of its own.
  if (address.storage.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&as_ipv6(address).sin6_addr))
    set_on(socket, IPPROTO_IPV6, IPV6_V6ONLY);
  if (::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0)
    return failed(std::move(socket));
  return socket;
}

Socket begin_connection(const Address& address) {
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  set_on(socket, IPPROTO_TCP, TCP_NODELAY);
  if (::connect(socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS)
    return failed(std::move(socket));
  return socket;
}

int connection_error(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open()) set_on(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

Address own_address(const Socket& socket) {
  return named(socket, &::getsockname);
}

Address peer_address(const Socket& socket) {
  return named(socket, &::getpeername);
}

}  // namespace paceline::runtime::tcp
