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
//   in the node    2(g-1)/g b/I + c  (g-1)/g b/I             -                     -
//   to the host    b/(g H)           b/(g H)                 b/H                   b/H
//   sum on a CPU   -                 -                       g b/A                 g b/A
//   push           worker max(b/B, b/S); server max(f b n / R, f b (m + s - 1) / B)
//   add            f b n / A
//   (all buckets)  -                 -                       wait for all          -
//   pull           worker max(b/B, b/R); server max(f b n / S, f b (m + s - 1) / B)
//   to the device  b/(g H)           b/H                     b/H                   b/H
//   in the node    2(g-1)/g b/I + c  -                       -                     -
//
// s - 1 stands for what the machine of a server sends and receives as a worker at the same time; it is
// 0 where servers have machines of their own, or where pushes and pulls do not meet (parameter_server).
// On one machine nothing is pushed, added or pulled. BytePS stays on the devices of a lone machine of
// workers, whatever servers there are (global.cc): a bucket is one all-reduce there.
//
// BytePS scatters sums of some parts in a node while it gathers others, in one group of NCCL calls
// (core_loops.cc), so that both share the ports: each has half of a ring's rate I. Copies to the host,
// c = b/(g H), pass the same ports, unless NVLink joins the ranks (c = 0). A ring has what
// binds it first: a port, the crossing between sockets, the host's memory where messages are staged,
// a switch's uplink (communication_cost.h).
//
// ps-lite sends to a server over one connection, in the order in which messages are handed over, and
// BytePS hands over all pushes that it has (its credit is 32 GB, scheduled_queue.cc). It asks for a part
// when the push of that part is acknowledged, so that the request waits behind the pushes that are
// queued by then (last_push_before_request). Where the network is slow, all is pushed first, and then
// all is pulled. P3 sends by priority, and so do its requests.
//
// TensorFlow asks for all variables at once when a step begins, and they come in no order of the layers
// (Hashemi et al. 2019, TicTac), so that the forward pass is taken to begin when all are there. Within
// a process it begins when its first variable is.
//
//   A  servers' additions, bytes that come in: BytePS and MXNet 12.5 GB/s (6 to 20), TensorFlow 15
//      (5 to 26)
//   R  what a process receives. gRPC 0.55 GB/s (0.1 to 0.9), from however many: TensorFlow up to 1.4
//      has one thread for all replies (grpc_worker_cache.cc); grpc+gdr 3.4 (2.5 to 10). ps-lite over ZMQ
//      2.25 (1 to 4), over RDMA 8.1 (6.25 to 11.25)
//   S  what a process sends. gRPC 2.6 GB/s (1.5 to 3), to 8 others that receive; ps-lite as R
//   H  the cluster's host link, or pinned memory over PCIe 3, 11 GB/s (10 to 12.3)
// Sources: key "servers" in docs/sources.md. None is fitted to a time of training.
//
// What is left out: that a phase may begin before the one before has ended, within a bucket; unequal
// loads by BytePS's hash of keys; that a forward pass may get along with the variables that chance
// brings first; whether TensorFlow's variables are on GPUs or on CPUs; what a message costs whatever
// its size, and what threads take from each other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
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
  bool after_all = false;     // begins when all buckets of the iteration are through the one before
  bool in_no_order = false;   // beside after_all: buckets get through it in no order of the layers
  bool is_requested = false;  // begins when its request has passed the pushes that are queued
  bool runs_as_kernels = false;  // of the devices, as NCCL does
};
using ServedPhases = std::vector<ServedPhase>;

struct ServedBucket {
  models::System system;
  const models::ServerUse& use;
  Bytes bytes;
  int ranks = 1;
  std::optional<BytesPerSecond> host_link = {};
};

// The phases of a bucket on more than one rank. At least one.
[[nodiscard]] ServedPhases served_phases(const ServedBucket& bucket, const CommunicationCost& cost,
                                         Bound bound);

// From the first phase to the last, with nothing else on its way.
[[nodiscard]] Seconds time_alone(const ServedPhases& phases);
// The longest that the bucket keeps any lane: buckets in a row follow each other at this distance.
[[nodiscard]] Seconds longest_on_a_lane(const ServedPhases& phases);
// The same where a phase that is after all, or requested, does not begin before all buckets are through
// those before it: the sum of the longest before and the longest from there on.
[[nodiscard]] Seconds longest_on_lanes_in_turn(const ServedPhases& phases);

// For each bucket, in the order in which they travel, the last whose push is queued when it is asked
// for: itself, or one behind it. `ready` is when each may enter its first phase.
// O(buckets x lanes).
[[nodiscard]] std::vector<std::size_t> last_push_before_request(
    std::span<const Seconds> ready, std::span<const ServedPhases* const> phases);
// The place among a bucket's phases of the push before the one that is requested; nothing if none is.
[[nodiscard]] std::optional<std::size_t> push_before_request(const ServedPhases& phases);

}  // namespace paceline::simulator
