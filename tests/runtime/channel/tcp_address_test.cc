#include "runtime/transport/tcp_address.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>

#include "tests/support/error_of.h"

namespace paceline::runtime::tcp {
namespace {

bool is_reached(const char* host, std::uint16_t port) {
  const Socket socket = begin_connection(resolve(host, port).front());
  if (!socket.is_open()) return false;
  pollfd waited{socket.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&waited, 1, -1), 1);
  return connection_error(socket) == 0;
}

TEST(TcpAddress, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(resolve(host, 1).front().is_loopback()) << host;
  for (const char* host : {"0.0.0.0", "10.0.0.7", "128.0.0.1", "::", "::2", "fe80::1",
                           "::ffff:10.0.0.7", "2001:db8::1"})
    EXPECT_FALSE(resolve(host, 1).front().is_loopback()) << host;
}

TEST(TcpAddress, ListensWhereItIsAskedToAndNowhereElse) {
  const Socket listener = listen_at(resolve("127.0.0.1", 0).front());
  ASSERT_TRUE(listener.is_open());
  const std::uint16_t port = own_address(listener).port();
  EXPECT_EQ(host_text(own_address(listener)), "127.0.0.1");
  EXPECT_TRUE(is_reached("127.0.0.1", port));
  EXPECT_FALSE(is_reached("127.0.0.2", port));  // an address of this machine, too
}

TEST(TcpAddress, ListensAtAnAddressOfIpv6WithoutTakingThatOfIpv4) {
  const Socket listener = listen_at(resolve("::1", 0).front());
  if (!listener.is_open()) GTEST_SKIP() << "no IPv6 is here";
  EXPECT_EQ(host_text(own_address(listener)), "::1");
  EXPECT_TRUE(is_reached("::1", own_address(listener).port()));
  EXPECT_FALSE(is_reached("127.0.0.1", own_address(listener).port()));
}

TEST(TcpAddress, SaysThatAnAddressIsOfAnotherMachine) {
  EXPECT_FALSE(listen_at(resolve("192.0.2.1", 29500).front()).is_open());
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST(TcpAddress, IsWholeOrIsNone) {
  Address address = resolve("127.0.0.1", 29500).front();
  EXPECT_TRUE(address.is_valid());
  EXPECT_EQ(address.port(), 29500);
  address.size = 3;
  EXPECT_FALSE(address.is_valid());
  EXPECT_FALSE(Address{}.is_valid());
}

TEST(TcpAddress, AHostThatIsNoneIsNamed) {
  const std::string error = test::run_error_of([] { return resolve("no host has spaces", 1); });
  EXPECT_EQ(error.substr(0, error.find(':')), "cannot find host no host has spaces");
}

}  // namespace
}  // namespace paceline::runtime::tcp
