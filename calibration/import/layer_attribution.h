// Which layer of a network each operator and kernel of a trace belongs to, and so how long each
// layer's forward and backward took.
#pragma once

#include "calibration/import/imported.h"
#include "calibration/import/kineto_trace.h"
#include "models/network/network.h"

namespace paceline::calibration {

// Adds the layers that are found to `imported`, with the iterations that they are the medians of,
// and remarks on what is not found. Layers are told by the names that record_function gave them; in
// an iteration without, by their kind and order, where the network and the iteration have as many
// of a kind.
void attribute_to_layers(const KinetoTrace& trace, const models::Network& network,
                         Imported& imported);

}  // namespace paceline::calibration
