#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "runtime/training/data/dataset.h"
#include "runtime/training/data/idx_dataset.h"
#include "runtime/training/data/image_folder.h"
#include "runtime/training/data/synthetic.h"
#include "runtime/training/data/text.h"
#include "runtime/training/data/tfrecord_dataset.h"

namespace paceline::runtime {
namespace {

const std::vector<std::string>& known_sources() {
  static const std::vector<std::string> names{"fashion-mnist", "synthetic"};
  return names;
}

constexpr std::string_view synthetic_of = "synthetic:";

DatasetRequest with_samples(DatasetRequest request, const std::string& count) {
  constexpr std::int64_t most_samples = 100'000'000;
  request.synthetic_samples = parse_count(count, 1, most_samples);
  return request;
}

InputError unknown_source(const std::string& source) {
  const std::string problem = in_quotes(source) + " is neither a known dataset nor a folder";
  if (const auto nearest = nearest_name(source, known_sources()))
    return InputError(problem, "did you mean '" + *nearest + "'?");
  return InputError(problem,
                    "give 'fashion-mnist', 'synthetic', a folder of images, or 'text:FILE'");
}

std::unique_ptr<Dataset> open_folder(const DatasetRequest& request) {
  const std::string& folder = request.source;
  if (is_idx_folder(folder)) return open_idx_folder(request, folder);
  if (is_image_folder(folder)) return open_image_folder(request);
  if (is_tfrecord_folder(folder)) return open_tfrecord_folder(request);
  throw InputError(InputPlace{.file = folder}, "holds no dataset",
                   "a folder holds train/CLASS/*.jpg and val/CLASS/*.jpg, or TFRecord files "
                   "train-* and validation-*, or the IDX files of Fashion-MNIST");
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const DatasetRequest& request) {
  std::error_code error;
  if (request.source == "synthetic") return make_synthetic_dataset(request);
  if (request.source.starts_with(synthetic_of))
    return make_synthetic_dataset(
        with_samples(request, request.source.substr(synthetic_of.size())));
  if (request.source.starts_with(text_prefix))
    return open_text(request, request.source.substr(std::string_view(text_prefix).size()));
  if (request.source == "fashion-mnist") {
    if (!std::filesystem::is_directory(fashion_mnist_folder, error))
      throw InputError(
          "fashion-mnist is not installed: there is no " + std::string(fashion_mnist_folder),
          "apt install dataset-fashion-mnist, or give a folder with its files");
    return open_idx_folder(request, fashion_mnist_folder);
  }
  if (std::filesystem::is_directory(request.source, error)) return open_folder(request);
  throw unknown_source(request.source);
}

}  // namespace paceline::runtime
