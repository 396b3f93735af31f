// The all-reduce times of NCCL's own model as JSON, for tools (docs/formats.md).
#pragma once

#include <span>

#include "models/base/document.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::simulator {

// The model of the cluster's ranks, with the sizes whose times and choice are asked for.
struct NcclExpectation {
  const NcclModel& model;
  const models::Cluster& cluster;
  std::span<const Bytes> sizes;
};
[[nodiscard]] const Document<NcclExpectation>& nccl_document();

}  // namespace paceline::simulator
