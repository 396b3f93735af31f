// The emulated network between hosts, as arithmetic: links with virtual clocks.
//
// A link carries one frame at a time at its rate. Each frame takes the links of its path in turn,
// cut-through: its first byte reaches the next link one latency after it entered the last one (the
// latency of a path is paid once, after the first link), and it waits where a link is busy. Nothing
// is dropped: hosts are held back at their own link (switch.h), and queues behind later links are
// bounded by TCP's windows.
//
// Clocks are virtual: what a link could have done before it was looked at is not lost, so a late
// wake-up of the switch delays frames, and does not lower a rate.
//
// Hosts hang on switches of racks, in order: host h on rack h / ceil(hosts / racks). Each rack has
// one uplink, full duplex, to a core without limits. With one rack there is no uplink.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::lab {

using Nanoseconds = std::int64_t;

struct FabricOptions {
  int hosts = 2;
  double rate = 0.0;  // of a host's link, each way, in bytes a second
  Nanoseconds latency = 0;
  int racks = 1;
  double uplink_rate = 0.0;  // of a rack's uplink, each way, in bytes a second
};

class Fabric {
 public:
  // Requires 1 <= racks <= hosts, positive rates, and a latency of 0 or more.
  explicit Fabric(const FabricOptions& options);

  [[nodiscard]] int hosts() const { return options_.hosts; }
  // Sends a frame that its host handed over at `now`; returns when its last byte is there.
  // Requires two different hosts.
  Nanoseconds send(int from, int to, std::int64_t wire_bytes, Nanoseconds now);
  // When the host's link will have sent everything that was handed over.
  [[nodiscard]] Nanoseconds idle_at(int from) const;

 private:
  struct Link {
    double nanoseconds_per_byte = 0.0;
    Nanoseconds free_at = 0;
  };
  [[nodiscard]] int rack_of(int host) const { return host / hosts_per_rack_; }

  FabricOptions options_;
  int hosts_per_rack_;
  // Out of and into each host, out of and into each rack.
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
