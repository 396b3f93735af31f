// The time of a bucket over servers of other systems, as a closed form on what machines share.
//
// A bucket goes through phases, one after the other. In a phase it occupies lanes, all at once, each
// for so long, and the phase ends with the last of them. A lane serves one bucket after the other, in
// the order of the plan, so that buckets follow each other as in a pipeline. With b bytes of a bucket,
// g ranks on each of n machines, s servers, of which the bucket has f (1, or 1/s where each has a
// share), m machines that send to a server (n, or n - 1 where the server is on one of them), I the
// rate inside a node, H the copy to or from a host, B the rate of a machine's NICs each way:
//
//   phase          BytePS            distributed_replicated  parameter_server      MXNet kvstore
//   in the node    (g-1)/g b/I       (g-1)/g b/I             -                     -
//   to the host    b/(g H)           b/(g H)                 b/H                   b/H
//   sum on a CPU   -                 -                       g b/A                 g b/A
//   push           worker b/B; channel f b/C; server max(f b m / P, f b (m + s - 1) / B)
//   add            f b n / A
//   (all buckets)  -                 -                       wait for all          -
//   pull           as push
//   to the device  b/(g H)           b/H                     b/H                   b/H
//   in the node    (g-1)/g b/I       -                       -                     -
//
// s - 1 stands for what the machine of a server sends and receives as a worker at the same time; it is
// 0 where servers have machines of their own, or where pushes and pulls do not meet (parameter_server).
// On one machine nothing is pushed, added or pulled, and BytePS stays on its devices.
//
//   A  servers' additions, bytes that come in: BytePS and MXNet 12.5 GB/s (6 to 20), TensorFlow 15
//      (5 to 26)
//   C  a gRPC channel between one worker and one server: 0.55 GB/s (0.1 to 0.9)
//   P  a server's process: 2.6 GB/s (1.5 to 3) over gRPC, which is also what a worker's channels get
//      together; 2.25 (1 to 4) over ZMQ; 8.1 (6.25 to 11.25) over RDMA (ps-lite), for TensorFlow 3.4
//      (2.5 to 10) for a channel
//   H  the cluster's host link, or pinned memory over PCIe 3, 11 GB/s (10 to 12.3)
// Sources: key "servers" in docs/sources.md. None is fitted to a time of training.
//
// What is left out: that a phase may begin before the one before has ended, within a bucket; unequal
// loads by BytePS's hash of keys; PCIe switches and memory that GPUs of a node share; that TensorFlow's
// next forward pass can start before its last variables are back; what threads take from each other.
#pragma once

#include <optional>
#include <vector>

#include "models/plan/plan.h"
#include "models/plan/strategy.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

// What a bucket occupies, and for how long. Lanes are numbered from 0.
struct Occupied {
  int lane = 0;
  Seconds time;
};
struct ServedPhase {
  std::vector<Occupied> lanes;  // at least one
  bool after_all = false;  // begins when all buckets of the iteration are through the one before
};

struct ServedBucket {
  models::System system;
  const models::ServerUse& use;
  Bytes bytes;
  int ranks = 1;
  std::optional<BytesPerSecond> host_link = {};
};

// The phases of a bucket on more than one rank. At least one.
[[nodiscard]] std::vector<ServedPhase> served_phases(const ServedBucket& bucket,
                                                     const CommunicationCost& cost,
                                                     Reading reading);

// From the first phase to the last, with nothing else on its way.
[[nodiscard]] Seconds time_alone(const std::vector<ServedPhase>& phases);
// The longest that the bucket keeps any lane: buckets in a row follow each other at this distance.
[[nodiscard]] Seconds longest_on_a_lane(const std::vector<ServedPhase>& phases);

}  // namespace paceline::simulator
