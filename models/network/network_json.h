// The work of a network as JSON, for tools (docs/formats.md).
#pragma once

#include "models/base/document.h"
#include "models/network/work.h"

namespace paceline::models {

[[nodiscard]] const Document<NetworkWork>& network_document();

}  // namespace paceline::models
