// What other systems spend on a bucket beside its all-reduce (models/plan/dispatch.h).
//
// Values and intervals are priors, none of them fitted to a time of training: sources in the comments
// of each, keys in docs/sources.md.
#pragma once

#include "models/network/work.h"
#include "models/plan/dispatch.h"
#include "models/plan/plan.h"
#include "models/plan/strategy.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

// The time that Horovod's ranks take to agree on a bucket of this many gradients. One rank agrees at
// once. With N ranks, of which g are on a node, and L the latency of 2 log2 N messages that go up a
// tree and down again, log2 g of its levels inside a node and the others between nodes:
//   messages  2 us x N (1 to 10): rank 0 reads a message of each rank and answers each (assumed)
//   gather    2 L, and 1 us (0.3 to 3) x gradients x N, which rank 0 reads (assumed)
//   bits      1.5 L (1 to 2): one or two all-reduces of a few words a cycle (response_cache.cc)
// It keeps a bucket's stream waiting, unless the plan has a credit: what is handed over ahead is agreed
// on while others travel. It leaves out that a plan's cycle may hold several buckets, which agree once: then each of them is
// of about theta bytes, and its all-reduce takes a hundred times as long.
[[nodiscard]] Seconds negotiation_time(models::Negotiation negotiation, int ranks, int gradients,
                                       const CommunicationCost& cost, Bound bound);

// What a system spends to hand over one bucket, while its stream waits: P3 0.05 ms (0.02 to 0.1) for
// ZMQ and the handling of a key (assumed), others nothing beside their negotiation.
[[nodiscard]] Seconds hand_over_time(models::System system, Bound bound);

// Computation with what a system's own threads take from it on each rank, for each bucket: ByteScheduler
// 0.26 ms (0.085 to 0.8), others nothing. Its hook stops the forward pass of a layer until a Python
// thread has polled, updated and unlocked each of the layer's parameters, and that thread shares the
// interpreter with the pass (bytescheduler/pytorch/horovod.py). With parts and credit, 161 tensors of
// ResNet-50 at batch 32 on eight GPUs: 180 to 200 images/s each in place of 254, 34 to 52 ms an
// iteration (byteps#339). The least is that of two GPUs without parts and credit, 13.7 ms (byteps#370);
// the most that of VGG-16 on three, 110 images/s in place of 130, 45 ms for some 60 parts (byteps#339).
[[nodiscard]] ComputeTimes with_tasks(ComputeTimes compute, const models::NetworkWork& network,
                                      const models::Plan& plan, Bound bound);

// The copies of a bucket to the host and back, and its sum there, one after the other (Horovod without
// NCCL, nccl_operations.cc: the host's buffer is not pinned).
//   each copy  bytes / 5 GB/s (3 to 6.8): pageable memory over PCIe 3
//   sum        bytes x (N - 1) / N / 3 GB/s (1.5 to 7): one core of a CPU for each rank, FP32, several
//              ranks at once
// MPI's messages take 3 times (1 to 10) as long beside a framework's threads as in a benchmark: 10 times
// in one report (horovod#2379), 1.6 and 2.2 times on two and four nodes of B-Caffe against its own
// machines' OSU curves.
struct HostWay {
  Seconds copy;  // one way
  Seconds sum;
  double messages = 1;  // times as long as the all-reduce takes alone
};
[[nodiscard]] HostWay host_way(Bytes bytes, int ranks, Bound bound);

}  // namespace paceline::simulator
