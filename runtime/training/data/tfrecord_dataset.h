// ImageNet and the like in TFRecord files: train-* and validation-* in a folder.
#pragma once

#include <memory>
#include <string>

#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// Whether the folder holds a file train-*.
[[nodiscard]] bool is_tfrecord_folder(const std::string& folder);

// Samples are the records of the files in the order of their names; records are tf.Example
// (example.h). Reads the head of every record and the first record of every file. Keeps no file
// open. Throws InputError if files of a part are missing or hold no record, a head or a first
// record is damaged, the network takes no images of 3 channels, or a label is none of its classes.
// How many classes there are is not in the files: they are as many as the network tells apart.
[[nodiscard]] std::unique_ptr<Dataset> open_tfrecord_folder(const DatasetRequest& request);

}  // namespace paceline::runtime
