// The arithmetic of the lab's switch.
#include "experiments/lab/switch/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "experiments/lab/switch/tap.h"

namespace paceline::lab {
namespace {

// A fabric that is given all frames first, and then has them pass their links in the order in which
// they reach them.
class Frames {
 public:
  explicit Frames(const FabricOptions& options) : fabric_(options) {}
  // Which frame it is.
  std::size_t send(int from, int to, std::int64_t wire_bytes, Nanoseconds now) {
    frames_.push_back(fabric_.send(from, to, wire_bytes, now));
    return frames_.size() - 1;
  }
  [[nodiscard]] Nanoseconds idle_at(int from) const { return fabric_.idle_at(from); }
  // When each frame is there.
  std::vector<Nanoseconds> arrivals() {
    using Next = std::pair<Nanoseconds, std::size_t>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
    for (std::size_t i = 0; i < frames_.size(); ++i) next.emplace(frames_[i].next_at(), i);
    while (!next.empty()) {
      Transit& frame = frames_[next.top().second];
      const std::size_t index = next.top().second;
      next.pop();
      if (frame.is_there()) continue;
      fabric_.pass(frame);
      next.emplace(frame.next_at(), index);
    }
    std::vector<Nanoseconds> arrivals;
    for (const Transit& frame : frames_) arrivals.push_back(frame.last_byte);
    return arrivals;
  }

 private:
  Fabric fabric_;
  std::vector<Transit> frames_;
};

// One byte takes 1 us; the latency is 100 us.
constexpr FabricOptions star{.hosts = 4, .rate = 1e6, .latency = 100'000};
constexpr Nanoseconds us = 1000;

TEST(Fabric, TakesLatencyAndSizeByRate) {
  Frames frames(star);
  frames.send(0, 1, 500, 7 * us);
  EXPECT_EQ(frames.idle_at(0), 507 * us);
  EXPECT_EQ(frames.idle_at(1), 0);
  EXPECT_EQ(frames.arrivals(), std::vector{607 * us});
}

TEST(Fabric, SendsOneFrameAfterTheOther) {
  Frames frames(star);
  frames.send(0, 1, 500, 0);
  frames.send(0, 2, 500, 0);
  // Late or not, a link that was idle begins when it is given a frame.
  frames.send(0, 1, 500, 5000 * us);
  EXPECT_EQ(frames.arrivals(), (std::vector{600 * us, 1100 * us, 5600 * us}));
}

TEST(Fabric, SharesTheLinkIntoAHost) {
  Frames frames(star);
  for (const int from : {0, 1, 2}) frames.send(from, 3, 1000, 0);
  EXPECT_EQ(frames.arrivals(), (std::vector{1100 * us, 2100 * us, 3100 * us}));
}

TEST(Fabric, IsFullDuplex) {
  Frames frames(star);
  frames.send(0, 1, 1000, 0);
  frames.send(1, 0, 1000, 0);
  EXPECT_EQ(frames.arrivals(), (std::vector{1100 * us, 1100 * us}));
}

TEST(Fabric, SharesTheUplinkOfARack) {
  FabricOptions options = star;
  options.racks = 2;
  options.uplink_rate = 1e6;
  Frames frames(options);
  frames.send(0, 1, 1000, 0);          // within the rack
  frames.send(1, 2, 1000, 0);          // up, which is free
  frames.send(0, 3, 1000, 1000 * us);  // and is free again
  frames.send(1, 2, 1000, 1000 * us);  // behind the frame of host 0
  frames.send(3, 0, 1000, 1000 * us);  // the other way
  EXPECT_EQ(frames.arrivals(),
            (std::vector{1100 * us, 1100 * us, 2100 * us, 3100 * us, 2100 * us}));
}

TEST(Fabric, WaitsForTheSlowestLinkOfAPath) {
  FabricOptions options = star;
  options.racks = 2;
  for (const auto& [uplink, arrival] : {std::pair{0.5e6, 2100 * us}, {2e6, 1100 * us}}) {
    options.uplink_rate = uplink;
    Frames frames(options);
    frames.send(0, 3, 1000, 0);
    EXPECT_EQ(frames.arrivals(), std::vector{arrival});
  }
}

// Host 0 has three frames for the other rack, which wait for the uplink; the last of them comes
// into host 2 at 6.1 ms. What host 3 sends there meanwhile finds its link idle.
TEST(Fabric, WhatWaitsForAnUplinkHoldsNoLinkBehindIt) {
  FabricOptions options = star;
  options.racks = 2;
  options.uplink_rate = 0.5e6;
  Frames frames(options);
  for (int i = 0; i < 3; ++i) frames.send(0, 2, 1000, 0);
  frames.send(3, 2, 1000, 3000 * us);
  EXPECT_EQ(frames.arrivals(), (std::vector{2100 * us, 4100 * us, 6100 * us, 4100 * us}));
}

// Each of `flows` hands over frames as fast as its link takes them; when the last byte of this many
// frames is there, of each.
std::vector<Nanoseconds> last_arrivals(const FabricOptions& options,
                                       const std::vector<std::pair<int, int>>& flows, int count) {
  Frames frames(options);
  for (int i = 0; i < count; ++i) {
    for (const auto& [from, to] : flows) frames.send(from, to, 1000, frames.idle_at(from));
  }
  const std::vector<Nanoseconds> all = frames.arrivals();
  return {all.end() - static_cast<std::ptrdiff_t>(flows.size()), all.end()};
}

TEST(Fabric, KeepsItsRateExactlyOverManyFrames) {
  FabricOptions options = star;
  options.rate = 250e6 / 8;  // 32 ns a byte
  EXPECT_EQ(last_arrivals(options, {{0, 1}}, 100'000),
            std::vector{Nanoseconds{100'000} * 32'000 + options.latency});
}

TEST(Fabric, PaysTheLatencyOnceWhateverThePath) {
  FabricOptions options = star;
  options.racks = 2;
  for (const double uplink : {0.1e6, 1e6, 1e9}) {
    options.uplink_rate = uplink;
    const double slowest = std::min(uplink, options.rate);
    // One byte at a time through four links, and not one wait more than the slowest.
    EXPECT_EQ(last_arrivals(options, {{0, 3}}, 1),
              std::vector<Nanoseconds>{options.latency + std::llround(1000 / slowest * 1e9)});
  }
}

TEST(Fabric, GivesUplinksTheirRateSharedFairly) {
  FabricOptions options{
      .hosts = 8, .rate = 1e6, .latency = 100'000, .racks = 2, .uplink_rate = 1e6};
  const std::vector<std::pair<int, int>> all_up{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  constexpr int count = 1000;
  const auto first_and_last = [&] {
    const std::vector<Nanoseconds> finished = last_arrivals(options, all_up, count);
    const auto [first, last] = std::minmax_element(finished.begin(), finished.end());
    return std::pair(*first, *last);
  };
  // Four hosts of 1 MB/s behind 1 MB/s: four times as long, and all end within a frame of each
  // other.
  const auto [first, last] = first_and_last();
  EXPECT_EQ(last, 4 * count * 1000 * us + 100 * us);
  EXPECT_LE(last - first, 3 * 1000 * us);
  // Twice the uplink, half the time; four times the uplink, and hosts are the limit.
  options.uplink_rate = 2e6;
  EXPECT_EQ(first_and_last().second, (2 * count * 1000 + 500) * us + 100 * us);
  options.uplink_rate = 4e6;
  EXPECT_LE(first_and_last().second, (count * 1000 + 1000) * us + 100 * us);
}

TEST(Fabric, LeavesOtherRacksAlone) {
  FabricOptions options{.hosts = 6, .rate = 1e6, .latency = 0, .racks = 3, .uplink_rate = 0.5e6};
  // Rack 0 to rack 1 fills one uplink; within rack 2, and from it to rack 0, nothing is felt.
  Frames frames(options);
  std::size_t last_within = 0;
  for (int i = 0; i < 100; ++i) {
    frames.send(0, 2, 1000, frames.idle_at(0));
    last_within = frames.send(4, 5, 1000, frames.idle_at(4));
  }
  const std::size_t across = frames.send(5, 1, 1000, 0);
  const std::vector<Nanoseconds> arrivals = frames.arrivals();
  EXPECT_EQ(arrivals[last_within], 100 * 1000 * us);
  EXPECT_EQ(arrivals[across], 2000 * us);
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
