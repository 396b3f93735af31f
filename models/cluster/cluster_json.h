// A cluster and a SimGrid platform as JSON, for tools (schemas paceline.cluster/1 and
// paceline.platform/1, docs/formats.md).
#pragma once

#include <string>

#include "models/cluster/cluster.h"
#include "models/cluster/platform.h"

namespace paceline::models {

// The whole document. Each figure has its interval, provenance and source.
[[nodiscard]] std::string to_json(const Cluster& cluster);
[[nodiscard]] std::string to_json(const Platform& platform);

// 16 hexadecimal digits by which a description is recognised: FNV-1a of its document. Two clusters
// with one digest have the same figures, from the same sources.
[[nodiscard]] std::string digest(const Cluster& cluster);

}  // namespace paceline::models
