#include "experiments/lab/switch/fabric.h"

#include <algorithm>
#include <cmath>

#include "models/base/to_size.h"

namespace paceline::lab {

Fabric::Fabric(const FabricOptions& options)
    : options_(options), hosts_per_rack_((options.hosts + options.racks - 1) / options.racks) {
  const auto hosts = to_size(options.hosts);
  out_.assign(hosts, Link{1e9 / options.rate, 0});
  in_ = out_;
  if (options.racks > 1) {
    up_.assign(to_size(options.racks), Link{1e9 / options.uplink_rate, 0});
    down_ = up_;
  }
}

Transit Fabric::send(int from, int to, std::int64_t wire_bytes, Nanoseconds now) {
  Transit frame{.from = from,
                .to = to,
                .wire_bytes = wire_bytes,
                .links_left = rack_of(from) == rack_of(to) ? 1 : 3,
                .first_byte = now,
                .last_byte = now};
  pass(out_[to_size(from)], frame);
  frame.first_byte += options_.latency;
  frame.last_byte += options_.latency;
  return frame;
}

void Fabric::pass(Transit& frame) {
  const auto next = [&]() -> Link& {
    if (frame.links_left == 3) return up_[to_size(rack_of(frame.from))];
    if (frame.links_left == 2) return down_[to_size(rack_of(frame.to))];
    return in_[to_size(frame.to)];
  };
  pass(next(), frame);
  --frame.links_left;
}

void Fabric::pass(Link& link, Transit& frame) {
  const auto duration = static_cast<Nanoseconds>(
      std::llround(static_cast<double>(frame.wire_bytes) * link.nanoseconds_per_byte));
  frame.first_byte = std::max(frame.first_byte, link.free_at);
  // The last byte cannot pass this link before the link in front of it has let it go.
  frame.last_byte = std::max(frame.first_byte + duration, frame.last_byte);
  link.free_at = frame.first_byte + duration;
}

Nanoseconds Fabric::idle_at(int from) const {
  return out_[to_size(from)].free_at;
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
