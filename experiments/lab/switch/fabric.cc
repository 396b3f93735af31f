#include "experiments/lab/switch/fabric.h"

#include <algorithm>
#include <cmath>

namespace paceline::lab {

Fabric::Fabric(const FabricOptions& options)
    : options_(options), hosts_per_rack_((options.hosts + options.racks - 1) / options.racks) {
  const auto hosts = static_cast<std::size_t>(options.hosts);
  out_.assign(hosts, Link{1e9 / options.rate, 0});
  in_ = out_;
  if (options.racks > 1) {
    up_.assign(static_cast<std::size_t>(options.racks), Link{1e9 / options.uplink_rate, 0});
    down_ = up_;
  }
}

Nanoseconds Fabric::send(int from, int to, std::int64_t wire_bytes, Nanoseconds now) {
  Nanoseconds first_byte = now;
  Nanoseconds last_byte = now;
  const auto pass = [&](Link& link) {
    const auto duration = static_cast<Nanoseconds>(
        std::llround(static_cast<double>(wire_bytes) * link.nanoseconds_per_byte));
    first_byte = std::max(first_byte, link.free_at);
    // Not before the link before it has let the last byte go.
    last_byte = std::max(first_byte + duration, last_byte);
    link.free_at = first_byte + duration;
  };
  pass(out_[static_cast<std::size_t>(from)]);
  first_byte += options_.latency;
  last_byte += options_.latency;
  if (const int here = rack_of(from), there = rack_of(to); here != there) {
    pass(up_[static_cast<std::size_t>(here)]);
    pass(down_[static_cast<std::size_t>(there)]);
  }
  pass(in_[static_cast<std::size_t>(to)]);
  return last_byte;
}

Nanoseconds Fabric::idle_at(int from) const {
  return out_[static_cast<std::size_t>(from)].free_at;
}

std::int64_t wire_bytes(std::int64_t frame_bytes, std::int64_t header_bytes,
                        std::int64_t segment_bytes) {
  constexpr std::int64_t ethernet = 8 + 4 + 12;
  if (segment_bytes <= 0) return frame_bytes + ethernet;
  const std::int64_t payload = frame_bytes - header_bytes;
  const std::int64_t segments =
      std::max<std::int64_t>((payload + segment_bytes - 1) / segment_bytes, 1);
  return payload + segments * (header_bytes + ethernet);
}

}  // namespace paceline::lab
