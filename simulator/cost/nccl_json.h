// What NCCL's own model expects of all-reduces as JSON, for tools (schema paceline.nccl/1,
// docs/formats.md).
#pragma once

#include <span>
#include <string>

#include "simulator/cost/nccl_model.h"

namespace paceline::simulator {

// The whole document: the model of the cluster's ranks, its tables with their sources, and the times
// and the choice for each size.
[[nodiscard]] std::string to_json(const NcclModel& model, const models::Cluster& cluster,
                                  std::span<const Bytes> sizes);

}  // namespace paceline::simulator
