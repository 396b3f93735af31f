// What the effects of a cluster (models/cluster/effects.h) do to the times of a rank.
//
//  - Ranks wait for the slowest: of p ranks whose compute times are normal with standard deviation
//    sigma (spread between ranks and jitter together), the slowest takes 1 + sigma E[max of p
//    standard normals] of the mean.
//  - Where `crowded_ranks` or more of a node compute, they slow each other down: `crowding`.
//  - Computation beside a collective: a collective of bus bandwidth B takes a thread block for each
//    of its channels, and moves 2.5 B bytes of memory a second (NVIDIA/nccl#1428). Compute-bound
//    kernels lose the share s of multiprocessors, memory-bound ones the share h of the memory
//    bandwidth, so that computation takes 1 + max(s / (1 - s), w h / (1 - h)) of its time for the
//    share w of memory-bound time. A channel carries 11 GB/s, and there are at least two
//    (NVIDIA/nccl#689: 2 for one NIC or PCIe, 16 for 190 GB/s; nccl#1225: 24 for 230 GB/s).
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

// The time of computation beside a collective of the bus bandwidth, over its time alone, on a device
// of so many multiprocessors and so much memory bandwidth.
[[nodiscard]] double beside_collective(const Losses& losses, int multiprocessors,
                                       BytesPerSecond memory, BytesPerSecond bus_bandwidth);

// Computation beside a collective as it was calibrated in one job, in another job: `there` and `here`
// are beside_collective of both. A collective of less bus bandwidth takes as much less as the estimate
// says, and one of more bandwidth takes what was calibrated.
[[nodiscard]] Figure<double> beside_another(const Figure<double>& calibrated, double there,
                                            double here);

// Compute times of the slowest rank: everything takes `waiting` of its time, and computation beside
// a collective of kernels takes `beside` times as long, unless that was calibrated.
[[nodiscard]] ComputeTimes slowed(ComputeTimes compute, double waiting, double beside);

// The bandwidth of a rank in a large all-reduce: that of the intra-node link, or of its node's NICs
// where these are slower and the ranks are on several nodes.
[[nodiscard]] BytesPerSecond bus_bandwidth(const CommunicationCost& cost, int ranks);

}  // namespace paceline::simulator
