// Servers: which one sums a bucket, and how those of other systems do it (models/plan/strategy.h has
// the systems).
#pragma once

#include <string_view>

namespace paceline::models {

// Which of s servers sums a bucket.
enum class ServerPlacement {
  round_robin,  // bucket i is on server i mod s
  balanced,     // each bucket, in order, is on the server that holds the fewest bytes so far
};

// The name that users type: "round-robin" or "balanced".
[[nodiscard]] std::string_view name(ServerPlacement placement);
// Throws InputError that suggests the nearest name.
[[nodiscard]] ServerPlacement server_placement_from_name(std::string_view text);

// What workers and servers speak.
enum class ServerTransport {
  grpc,  // a channel between each worker and each server (TensorFlow)
  tcp,   // ZMQ (ps-lite)
  rdma,
};

// As users type it: "grpc", "tcp", "rdma".
[[nodiscard]] std::string_view name(ServerTransport transport);
// Throws InputError that suggests the nearest name.
[[nodiscard]] ServerTransport server_transport_from_name(std::string_view text);

// How a bucket is summed: an entry of a plan's all-reduces.
struct ServerUse {
  int servers = 1;            // at most one on each machine
  bool own_machines = false;  // servers have machines to themselves, with NICs as those of workers
  int server = -1;            // that sums the bucket; -1: each server sums an equal share of it
  ServerTransport transport = ServerTransport::tcp;

  bool operator==(const ServerUse&) const = default;
};

inline constexpr int most_servers = 4096;

}  // namespace paceline::models
