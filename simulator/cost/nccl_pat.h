// What NCCL expects of PAT (parallel aggregated trees; NCCL 2.23), which it has for all-gathers and
// reduce-scatters where each node has one rank (src/graph/tuning.cc, ncclTopoTuneModel; key "NCCL tuning" in
// docs/sources.md). Beside nccl_model.h, as plain numbers.
//
//   time      = latency + n / bandwidth, with protocol Simple alone
//   latency   = 8 us + floor(log2 p) 14 us / 3.5 + 2.8 us p
//   bandwidth = 0.75 C b of the graph of trees
#pragma once

#include <optional>

#include "models/base/units.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::simulator {

struct NcclPat {
  Seconds latency;
  BytesPerSecond bandwidth;

  // The time that NCCL expects for n bytes of the whole bucket.
  [[nodiscard]] Seconds time(Bytes bytes) const { return latency + bytes / bandwidth; }
  // Whether NCCL expects less of it than of the best ring, and so chooses it.
  [[nodiscard]] bool is_chosen(const NcclModel& model, Bytes bytes) const {
    const std::optional<NcclChoice> ring = model.choice(bytes);
    return ring && time(bytes) < ring->time;
  }
};

// Nothing where NCCL has none: for other collectives, for nodes of several ranks, for one rank, and in
// versions before 2.23.
[[nodiscard]] std::optional<NcclPat> nccl_pat(const NcclModel& model);

}  // namespace paceline::simulator
