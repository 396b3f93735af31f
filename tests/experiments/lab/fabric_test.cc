// The arithmetic of the lab's switch.
#include "experiments/lab/switch/fabric.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "experiments/lab/switch/tap.h"

namespace paceline::lab {
namespace {

// One byte takes 1 us; the latency is 100 us.
constexpr FabricOptions star{.hosts = 4, .rate = 1e6, .latency = 100'000};
constexpr Nanoseconds us = 1000;

TEST(Fabric, TakesLatencyAndSizeByRate) {
  Fabric fabric(star);
  EXPECT_EQ(fabric.send(0, 1, 500, 7 * us), 607 * us);
  EXPECT_EQ(fabric.idle_at(0), 507 * us);
  EXPECT_EQ(fabric.idle_at(1), 0);
}

TEST(Fabric, SendsOneFrameAfterTheOther) {
  Fabric fabric(star);
  fabric.send(0, 1, 500, 0);
  EXPECT_EQ(fabric.send(0, 2, 500, 0), 1100 * us);
  // Late or not, a link that was idle begins when it is given a frame.
  EXPECT_EQ(fabric.send(0, 1, 500, 5000 * us), 5600 * us);
}

TEST(Fabric, SharesTheLinkIntoAHost) {
  Fabric fabric(star);
  EXPECT_EQ(fabric.send(0, 3, 1000, 0), 1100 * us);
  EXPECT_EQ(fabric.send(1, 3, 1000, 0), 2100 * us);
  EXPECT_EQ(fabric.send(2, 3, 1000, 0), 3100 * us);
}

TEST(Fabric, IsFullDuplex) {
  Fabric fabric(star);
  EXPECT_EQ(fabric.send(0, 1, 1000, 0), 1100 * us);
  EXPECT_EQ(fabric.send(1, 0, 1000, 0), 1100 * us);
}

TEST(Fabric, SharesTheUplinkOfARack) {
  FabricOptions options = star;
  options.racks = 2;
  options.uplink_rate = 1e6;
  Fabric fabric(options);
  EXPECT_EQ(fabric.send(0, 1, 1000, 0), 1100 * us) << "within the rack";
  EXPECT_EQ(fabric.send(1, 2, 1000, 0), 1100 * us);
  EXPECT_EQ(fabric.send(0, 3, 1000, 1000 * us), 2100 * us) << "the uplink is free again";
  EXPECT_EQ(fabric.send(1, 2, 1000, 1000 * us), 3100 * us) << "behind the frame of host 0";
  EXPECT_EQ(fabric.send(3, 0, 1000, 1000 * us), 2100 * us) << "the other way";
}

TEST(Fabric, WaitsForTheSlowestLinkOfAPath) {
  FabricOptions options = star;
  options.racks = 2;
  options.uplink_rate = 0.5e6;
  EXPECT_EQ(Fabric(options).send(0, 3, 1000, 0), 2100 * us);
  options.uplink_rate = 2e6;
  EXPECT_EQ(Fabric(options).send(0, 3, 1000, 0), 1100 * us);
}

TEST(WireBytes, CountsHeadersOfEachSegment) {
  EXPECT_EQ(wire_bytes(1514, 0, 0), 1538);
  EXPECT_EQ(wire_bytes(66 + 3000, 66, 1448), 3000 + 3 * 90);
  EXPECT_EQ(wire_bytes(66 + 2896, 66, 1448), 2896 + 2 * 90);
}

TEST(Destination, ReadsTheHostsNumber) {
  std::array<std::byte, 14> frame{std::byte{0x02}, std::byte{0x77}, std::byte{0},
                                  std::byte{0},    std::byte{1},    std::byte{4}};
  EXPECT_EQ(destination(frame), 260);
  EXPECT_EQ(destination(std::span(frame).first(13)), -1);
  frame[0] = std::byte{0xff};
  EXPECT_EQ(destination(frame), -1);
}

}  // namespace
}  // namespace paceline::lab
