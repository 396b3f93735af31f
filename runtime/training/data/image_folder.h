// Photographs in folders, as ImageNet comes: train/CLASS/*.jpg and val/CLASS/*.jpg.
#pragma once

#include <memory>
#include <string>

#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// Whether the folder holds a folder "train".
[[nodiscard]] bool is_image_folder(const std::string& folder);

// Classes are the folders of train in the order of their names, from 0; samples are the files
// .jpg, .jpeg, .JPEG (any case) in the order of classes and names. Other files, and names that
// begin with a dot, are left out. Lists the folders, and opens no file. Throws InputError if a
// folder is missing or empty, a class of val is none of train, the network takes no images of 3
// channels, or it tells fewer classes apart.
[[nodiscard]] std::unique_ptr<Dataset> open_image_folder(const DatasetRequest& request);

}  // namespace paceline::runtime
