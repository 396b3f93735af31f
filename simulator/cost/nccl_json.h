// The times of NCCL's own model as JSON, for tools (docs/formats.md).
#pragma once

#include <optional>
#include <span>

#include "models/base/document.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/cost/nccl_nvls.h"
#include "simulator/cost/nccl_pat.h"

namespace paceline::simulator {

// The model of the cluster's ranks, what its NVSwitches may sum, what PAT takes, and the sizes whose times and
// choice are asked for.
struct NcclExpectation {
  const NcclModel& model;
  const models::Cluster& cluster;
  std::optional<NcclNvls> nvls;
  std::optional<NcclPat> pat;
  std::span<const Bytes> sizes;
};
[[nodiscard]] const Document<NcclExpectation>& nccl_document();

}  // namespace paceline::simulator
