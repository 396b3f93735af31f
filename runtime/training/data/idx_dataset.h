// Fashion-MNIST, MNIST and the like: four IDX files in a folder, plain or .gz, all kept in memory.
#pragma once

#include <memory>
#include <string>

#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// The folder of Debian's package dataset-fashion-mnist.
inline constexpr const char* fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

// Whether the folder holds the images of a training set, train-images-idx3-ubyte.
[[nodiscard]] bool is_idx_folder(const std::string& folder);

// {train,t10k}-{images-idx3,labels-idx1}-ubyte of `folder`, each plain or with .gz. Pixels are
// normalised by the mean and the deviation of all pixels of the training set. The network's input
// is the image, or a vector of as many features. Throws InputError if a file is missing, damaged,
// does not fit the others, does not fit the network's input, or has a label that the network does
// not tell apart.
[[nodiscard]] std::unique_ptr<Dataset> open_idx_folder(const DatasetRequest& request,
                                                       const std::string& folder);

}  // namespace paceline::runtime
