// Finds the layer of a network that each operator and kernel of a trace belongs to, and so how long
// the forward and backward of each layer took.
#pragma once

#include "calibration/import/imported.h"
#include "calibration/import/kineto_trace.h"
#include "models/network/network.h"

namespace paceline::calibration {

// Adds the layers that are found to `imported`, with the number of iterations that their medians are
// over, and remarks on what is not found. Layers are told by the names that record_function gave
// them. In an iteration without such names they are told by kind and order, where the network and
// the iteration have as many layers of a kind.
void attribute_to_layers(const KinetoTrace& trace, const models::Network& network,
                         Imported& imported);

}  // namespace paceline::calibration
