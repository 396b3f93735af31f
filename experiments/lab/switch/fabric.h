// The emulated network between hosts, as arithmetic: links with virtual clocks.
//
// A link carries one frame at a time at its rate, in the order in which they reach it. Each frame
// takes the links of its path in turn, cut-through: its first byte reaches the next link when it
// enters the last one (and the second a latency after it entered the first), and it waits where a
// link is busy. It takes no link before it is there: what waits for an uplink keeps nobody from the
// link behind it. Nothing is dropped: hosts are held back at their own link (switch.h), and queues
// behind later links are bounded by TCP's windows.
//
// Clocks are virtual: what a link could have done before it was looked at is not lost, so a late
// wake-up of the switch delays frames, and does not lower a rate.
//
// Hosts depend on switches of racks, in order: host h on rack h / ceil(hosts / racks). Each rack has
// one uplink, full duplex, to a core without limits. With one rack there is no uplink.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::lab {

using Nanoseconds = std::int64_t;

struct FabricOptions {
  int hosts = 2;
  double rate = 0.0;  // that a host's link carries each way, bytes a second
  Nanoseconds latency = 0;
  int racks = 1;
  double uplink_rate = 0.0;  // that a rack's uplink carries each way, bytes a second
};

// A frame on its way: its first byte reaches the next link, or its last byte the host.
struct Transit {
  int from = 0;
  int to = 0;
  std::int64_t wire_bytes = 0;
  int links_left = 0;
  Nanoseconds first_byte = 0;
  Nanoseconds last_byte = 0;

  [[nodiscard]] bool is_there() const { return links_left == 0; }
  [[nodiscard]] Nanoseconds next_at() const { return is_there() ? last_byte : first_byte; }
};

class Fabric {
 public:
  // Requires 1 <= racks <= hosts, positive rates, and a latency of 0 or more.
  explicit Fabric(const FabricOptions& options);

  [[nodiscard]] int hosts() const { return options_.hosts; }
  // Takes a frame that its host handed over at `now` through the host's own link. Requires two
  // different hosts.
  [[nodiscard]] Transit send(int from, int to, std::int64_t wire_bytes, Nanoseconds now);
  // Takes a frame that is not there yet through its next link. Frames pass a link in the order of
  // the calls, which should be that of next_at().
  void pass(Transit& frame);
  // When the host's link will have sent everything that was handed over.
  [[nodiscard]] Nanoseconds idle_at(int from) const;

 private:
  struct Link {
    double nanoseconds_per_byte = 0.0;
    Nanoseconds free_at = 0;
  };
  static void pass(Link& link, Transit& frame);
  [[nodiscard]] int rack_of(int host) const { return host / hosts_per_rack_; }

  FabricOptions options_;
  int hosts_per_rack_;
  // The links out of and into each host, and out of and into each rack.
  std::vector<Link> out_;
  std::vector<Link> in_;
  std::vector<Link> up_;
  std::vector<Link> down_;
};

// The bytes that a frame of `frame_bytes` is on an Ethernet wire, with preamble, check sequence and
// gap. A segmentation offload frame is cut every `segment_bytes` of payload, each with its headers;
// segment_bytes = 0: one frame.
[[nodiscard]] std::int64_t wire_bytes(std::int64_t frame_bytes, std::int64_t header_bytes,
                                      std::int64_t segment_bytes);

}  // namespace paceline::lab
