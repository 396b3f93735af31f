// A cluster and a SimGrid platform as JSON, for tools (docs/formats.md).
#pragma once

#include <string>

#include "models/base/document.h"
#include "models/cluster/cluster.h"
#include "models/cluster/platform.h"

namespace paceline::models {

// Each figure has its interval, provenance and source.
[[nodiscard]] const Document<Cluster>& cluster_document();
[[nodiscard]] const Document<Platform>& platform_document();

// 16 hexadecimal digits by which a description is recognised: FNV-1a of its document. Two clusters
// with one digest have the same figures, from the same sources.
[[nodiscard]] std::string digest(const Cluster& cluster);

}  // namespace paceline::models
