// The least time that the links between nodes need for a collective by NCCL. NCCL knows the rates of its
// NICs, but no switches (NVIDIA/nccl#1340, #1545). It puts the nodes of a job into the order of their first
// ranks, even where neighbours are then on different leaves of a fabric.
//
//   ring   of n ranks on N nodes: each node sends 2 (n-1)/n of each byte to the next one in an
//          all-reduce, (n-1)/n in an all-gather and a reduce-scatter, and all of it in a broadcast and a
//          reduce
//   tree   double binary, over nodes: half of each byte goes up each of the two trees, and comes down
//          again; NVLSTree has the same between nodes
//   exchange  all-to-all: each rank sends 1/n of its buffer to each other rank; exchange with
//          neighbours: all of it to the next rank
//
// A channel leaves a node by one of its GPUs and enters the next one by the GPU in the same place, so
// that it stays on its rail; channels are spread over the GPUs evenly. What each link carries is added
// up on the routes of our engines (routes.h), and the busiest link is the bound: fat trees with fewer
// uplinks, a torus, NICs of slow nodes, and any placement.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "models/base/units.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/library_curve.h"

namespace paceline::simulator {

struct NcclRoutes {
  SecondsPerByte ring = {};
  SecondsPerByte tree = {};      // of all-reduces alone
  SecondsPerByte exchange = {};  // of sends and receives alone

  // The time by the algorithm that needs the least.
  [[nodiscard]] SecondsPerByte least() const {
    return exchange > SecondsPerByte{0} ? exchange
           : tree > SecondsPerByte{0}   ? std::min(ring, tree)
                                        : ring;
  }
};

// The least time that each byte takes, of a rank's buffer in sends and receives, and else of the whole bucket. 0
// on one node, and on a platform, whose hosts are no nodes of NCCL. O(ranks x links of a route), for an
// all-to-all times nodes.
[[nodiscard]] NcclRoutes nccl_routes(
    const CommunicationCost& cost, int ranks,
    models::Collective collective = models::Collective::all_reduce);

// The library's curve for the job, as LibraryCurve::find() chooses it. Where the job has its own routes, a
// curve of NCCL takes at least what the busiest of them needs.
[[nodiscard]] std::optional<LibraryCurve> curve_on_routes(const models::Profile* profile,
                                                          models::Library library, LibraryJob job,
                                                          Bound bound,
                                                          const CommunicationCost& cost);

}  // namespace paceline::simulator
