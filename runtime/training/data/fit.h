// Whether a dataset is one for the network: the same questions, in the same words, for all kinds.
#pragma once

#include <cstdint>
#include <string>

#include "models/network/shape.h"
#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// Throws InputError unless the network takes images of `shape`, or vectors of as many features.
void check_shape(const DatasetRequest& request, const models::Shape& shape);

// Throws InputError if the dataset has more classes than the network tells apart.
void check_classes(const DatasetRequest& request, std::int64_t classes);

}  // namespace paceline::runtime
