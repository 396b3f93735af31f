// The arithmetic of the lab's switch.
#include "experiments/lab/switch/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

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

// Each of `senders` hands over frames as fast as its link takes them; when the last byte of so many
// frames is there.
Nanoseconds last_arrival(Fabric& fabric, const std::vector<std::pair<int, int>>& flows, int frames,
                         std::vector<Nanoseconds>* of_flow = nullptr) {
  Nanoseconds last = 0;
  std::vector<Nanoseconds> finished(flows.size());
  for (int i = 0; i < frames; ++i) {
    for (std::size_t flow = 0; flow < flows.size(); ++flow) {
      const auto [from, to] = flows[flow];
      finished[flow] = fabric.send(from, to, 1000, fabric.idle_at(from));
      last = std::max(last, finished[flow]);
    }
  }
  if (of_flow != nullptr) *of_flow = finished;
  return last;
}

TEST(Fabric, KeepsItsRateExactlyOverManyFrames) {
  FabricOptions options = star;
  options.rate = 250e6 / 8;  // 32 ns a byte
  Fabric fabric(options);
  EXPECT_EQ(last_arrival(fabric, {{0, 1}}, 100'000), 100'000LL * 32'000 + options.latency);
}

TEST(Fabric, PaysTheLatencyOnceWhateverThePath) {
  FabricOptions options = star;
  options.racks = 2;
  for (const double uplink : {0.1e6, 1e6, 1e9}) {
    options.uplink_rate = uplink;
    Fabric fabric(options);
    const double slowest = std::min(uplink, options.rate);
    // One byte at a time through four links, and not one wait more than the slowest.
    EXPECT_EQ(fabric.send(0, 3, 1000, 0), options.latency + std::llround(1000 / slowest * 1e9));
  }
}

TEST(Fabric, GivesUplinksTheirRateSharedFairly) {
  FabricOptions options{
      .hosts = 8, .rate = 1e6, .latency = 100'000, .racks = 2, .uplink_rate = 1e6};
  const std::vector<std::pair<int, int>> all_up{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  Fabric fabric(options);
  std::vector<Nanoseconds> finished;
  constexpr int frames = 1000;
  // Four hosts of 1 MB/s behind 1 MB/s: four times as long, and all end within a frame of each
  // other.
  EXPECT_EQ(last_arrival(fabric, all_up, frames, &finished), 4 * frames * 1000 * us + 100 * us);
  const auto [first, last] = std::minmax_element(finished.begin(), finished.end());
  EXPECT_LE(*last - *first, 3 * 1000 * us);
  // Twice the uplink, half the time; four times the uplink, and hosts are the limit.
  options.uplink_rate = 2e6;
  Fabric twice(options);
  EXPECT_EQ(last_arrival(twice, all_up, frames), (2 * frames * 1000 + 500) * us + 100 * us);
  options.uplink_rate = 4e6;
  Fabric enough(options);
  EXPECT_LE(last_arrival(enough, all_up, frames), (frames * 1000 + 1000) * us + 100 * us);
}

TEST(Fabric, LeavesOtherRacksAlone) {
  FabricOptions options{.hosts = 6, .rate = 1e6, .latency = 0, .racks = 3, .uplink_rate = 0.5e6};
  Fabric fabric(options);
  // Rack 0 to rack 1 fills one uplink; within rack 2, and from it to rack 0, nothing is felt.
  std::vector<Nanoseconds> finished;
  last_arrival(fabric, {{0, 2}, {4, 5}}, 100, &finished);
  EXPECT_EQ(finished[1], 100 * 1000 * us);
  EXPECT_EQ(fabric.send(5, 1, 1000, 0), 2000 * us);
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
