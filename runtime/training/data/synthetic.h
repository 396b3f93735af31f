// Images without files: a pattern for each class, plus noise; or sequences of tokens, each of which has one successor
// three times of four.
//
// The pattern of a class is about 7 x 7 random patches in each channel (one value for each feature
// of a vector), the noise as strong as the pattern and independent by pixel, so that any network
// learns the label in a few steps and none does at once. Mean 0 and variance 1 over the classes.
// Sample i of a part has label i mod classes; the parts share the patterns.
#pragma once

#include <memory>

#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// Throws InputError if the request asks for fewer than 1 sample or class.
[[nodiscard]] std::unique_ptr<Dataset> make_synthetic_dataset(const DatasetRequest& request);

}  // namespace paceline::runtime
