// How long the parts of an iteration take that K-FAC adds (models/plan/k_fac.h has the layers' blocks
// and their owners).
//
// With b samples of a rank, s positions of a layer's output for each, a and g rows of A and G (of each
// of its groups), w bytes of a number on the wire, P what matrix products reach of the device's FP32
// rate (datasheet x compute efficiency; factors and inverses are FP32 whatever the precision of the
// layers: convolution_2d.py and linear.py cast, and TF32 is not taken), M the memory's effective
// bandwidth, e bytes of an activation:
//
//   stage            FLOPs                        bytes of memory
//   factor A         2 b s a^2                    e b s a, twice for a convolution (im2col), + 4 a^2
//   factor G         2 b s g^2                    e b s g + 4 g^2
//   F of batch norm  2 b (2c)^2                   e (input and gradient) + 4 (2c)^2
//   inverse          7/3 n^3 each                 4 x 5 n^2: the factor is read and written, read once
//                                                 more, and the inverse read and written
//   precondition     2 g^2 a + 2 g a^2, or 2 n^2  4 (a^2 + g^2 + 3 g a), or 4 n^2
//   reduce-scatter   sum of triangles and gradients, w bytes each
//   all-gather       gradients, w bytes each
//   pack, unpack     each element is read in one type and written in the other; the owner writes whole
//                    squares
//
// A stage takes max(FLOPs / P, bytes / M) for each layer. Stages of owners take as long as they do on
// the owner that takes longest, because the all-gather waits for it. A collective takes the time of a ring
// with equal parts in which each rank sends what the busiest sends here (most_sent): the parts of
// large layers go around in pieces, so that no link waits for one. The authors' code has an all-reduce
// of the packed buffer in the place of both collectives (pure_nccl_communicator.py), which takes twice
// as long as each; the paper has the reduce-scatter and the all-gather.
//
// With a refresh every N iterations, times are means of N iterations: 1/N of factors, inverses and
// what factors add to the collectives. Where A takes longer on its way than the backward pass beside
// it, the mean hides more of that than the iterations with a refresh do.
//
// Each of K accumulated batches has its factors. Those of all batches but the last are counted with A,
// before the backward pass of the last batch, as the passes of these batches are.
//
// What is left out: the launches of small kernels; that a Cholesky decomposition of few rows does not
// reach P; damping, running means and the norms of weights (memory traffic of a few elements a
// parameter); that factors may be computed by tensor cores.
#pragma once

#include <functional>
#include <vector>

#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

struct KfacRequest {
  const models::NetworkWork& network;
  const models::Plan& plan;  // of K-FAC
  const models::Device& device;
  models::Precision precision = models::Precision::fp32;
  int batch_per_rank = 1;
  int accumulate = 1;   // batches of an iteration, each with its own factors
  double waiting = 1;   // the compute time of the slowest rank over that of a rank alone
  Seconds launch = {};  // of each collective
};

// The time of a collective of this many bytes over the plan's ranks, cut into equal parts.
struct RingTimes {
  std::function<Seconds(Bytes)> reduce_scatter;
  std::function<Seconds(Bytes)> all_gather;
};

// The work of the slowest owner for one of its layers.
struct OwnedLayer {
  int layer = 0;
  Seconds invert;
  Seconds precondition;
};

// A collective with what packs it and what unpacks it.
struct PackedCollective {
  Bytes bytes{0};      // of the whole vector, on the wire
  Bytes most_sent{0};  // by any rank
  Seconds pack;
  Seconds transfer;
  Seconds unpack;

  [[nodiscard]] Seconds total() const { return pack + transfer + unpack; }
};

struct KfacTimes {
  // The time of the factors of each layer: `forward` has A, and all factors of batches before the
  // last; `backward` has G or F.
  std::vector<LayerTime> factors;
  // The share of each `forward` that is factors G or F of those earlier batches.
  std::vector<double> earlier_g;
  std::vector<OwnedLayer> owned;  // in forward order
  int owners = 0;                 // ranks that own a layer
  // Beside the backward pass: A of all layers. Nothing where the plan has no overlap.
  PackedCollective inputs;
  PackedCollective reduced;   // G, F and gradients, and A where there is no overlap
  PackedCollective gathered;  // preconditioned gradients

  // The time that the slowest owner takes for its layers, and that each rank takes for all factors.
  [[nodiscard]] Seconds owned_total() const;
  [[nodiscard]] Seconds factors_total() const;
  // The compute times with all of this in them: A in the forward pass of its layer, G in the backward
  // pass, and the owners' work in the update.
  [[nodiscard]] ComputeTimes folded_into(ComputeTimes compute) const;
  // While nothing but communication can go on, if this much of a backward pass goes beside `inputs`.
  [[nodiscard]] Seconds communication(Seconds backward) const;
};

// The plan must be one of K-FAC for the network. `rings` is not asked on one rank. O(layers log layers)
// and two to four calls of `rings`.
[[nodiscard]] KfacTimes k_fac_times(const KfacRequest& request, const RingTimes& rings,
                                    Bound bound);

}  // namespace paceline::simulator
