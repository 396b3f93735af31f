// What the effects of a cluster (models/cluster/effects.h) do to the times of a rank.
//
//  - Ranks wait for the slowest: of p ranks whose compute times are normal with standard deviation
//    sigma (spread between ranks and jitter together), the slowest takes 1 + sigma E[max of p
//    standard normals] of the mean.
//  - Where `crowded_ranks` or more of a node compute, they slow each other down: `crowding`.
//  - Computation beside a collective: a collective that moves B bytes of bus bandwidth a second keeps
//    a thread block for each of its channels, and moves 2.5 B bytes of memory a second
//    (NVIDIA/nccl#1428). Compute-bound kernels lose the share s of multiprocessors, memory-bound ones
//    the share h of the memory bandwidth. Where w of the compute time is memory-bound, that is
//    w / (1 - h + w h) of the time that it takes then, so that computation loses the share
//    max(s, w h / (1 - h0 (1 - w))) of its speed: h0 = 0.36 stands for h there, as of NVLink, beside
//    which slowdowns were measured, so that each byte takes the same whatever its rate. A channel
//    carries 11 GB/s, and there are at least two (NVIDIA/nccl#689: 2 for one NIC or PCIe, 16 for
//    190 GB/s; nccl#1225: 24 for 230 GB/s). B is what really moves: the bytes of the collective over its time. So a collective of n bytes that
//    is on its way for T takes max(least T, a_byte n) of computation, and a faster link, which makes T
//    shorter, never makes that more (Interference).
//  - Each collective takes time to start.
#pragma once

#include "models/cluster/effects.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

// The effects as plain numbers.
struct Losses {
  double rank_spread = 0;
  double jitter = 0;
  double crowding = 1;
  double slowdown = 0;
  double memory_bound = 0;
  Seconds collective_launch = {};
};

[[nodiscard]] Losses stated_losses(const models::Effects& effects);

// E[max of n independent standard normals], to 1e-6; n >= 1.
[[nodiscard]] double expected_maximum(int n);

// How many ranks wait for each other, as the factor below needs it.
struct WaitingRanks {
  WaitingRanks(int ranks, int ranks_per_node);

  double maximum;    // expected_maximum(ranks)
  bool are_crowded;  // there are models::crowded_ranks or more on a node
};

// The compute time of the slowest rank over that of a rank alone.
[[nodiscard]] double waiting_factor(const Losses& losses, const WaitingRanks& ranks);

// How much a collective of kernels slows the computation beside it. The result is the compute time that is
// lost while the collective runs. `bytes` is its bus bandwidth times its time (bus_bytes()), `time` is how
// long it runs:
//   lost(bytes, time) = min(most time, max(least time, a_byte bytes))
// That never falls as the time grows, so that a collective which a faster link ends sooner takes no more.
struct Interference {
  double least = 0;          // share of its speed that computation loses to any collective
  SecondsPerByte a_byte{0};  // what each byte takes
  double most = 0;           // share that a collective takes at most; at least `least`, below 1

  [[nodiscard]] Seconds lost(Bytes bus_bytes, Seconds time) const;
  // The share of its speed that computation loses beside a collective of the bus bandwidth.
  [[nodiscard]] double share(BytesPerSecond bus_bandwidth) const;
  // The time of computation beside such a collective over its time alone.
  [[nodiscard]] double beside(BytesPerSecond bus_bandwidth) const;
};

// The estimate for a device with this many multiprocessors and this memory bandwidth. It is zero for a
// device without multiprocessors.
[[nodiscard]] Interference estimated_interference(const Losses& losses, int multiprocessors,
                                                  BytesPerSecond memory);

// As calibrated: computation takes `beside` of its time beside a collective of the bus bandwidth, and
// beside others as much less or more as the estimate says. Where nothing is estimated there, the same
// share is lost to each.
[[nodiscard]] Interference calibrated_interference(const Interference& estimate, double beside,
                                                   BytesPerSecond bus_bandwidth);

// The bus bandwidth of an all-reduce of this many bytes times its time: what a rank sends of it in a ring.
[[nodiscard]] Bytes bus_bytes(Bytes bytes, int ranks);

// Compute times of the slowest of this many ranks: everything takes `waiting` of its time, and
// collectives of kernels take from it what `interference` says, unless layers were calibrated beside
// traffic.
[[nodiscard]] ComputeTimes slowed(ComputeTimes compute, double waiting,
                                  const Interference& interference, int ranks);

// The bus bandwidth of a large all-reduce: that of the intra-node link, or of a node's NICs where these are slower and the ranks are on several nodes.
[[nodiscard]] BytesPerSecond bus_bandwidth(const CommunicationCost& cost, int ranks);

}  // namespace paceline::simulator
