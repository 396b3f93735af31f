#include "runtime/training/data/fit.h"

#include <fmt/core.h>

#include "models/base/error.h"

namespace paceline::runtime {

void check_shape(const DatasetRequest& request, const models::Shape& shape) {
  const models::Shape& wanted = request.sample;
  if (wanted == shape || (!wanted.is_image && wanted.elements() == shape.elements())) return;
  throw InputError(InputPlace{.file = request.source},
                   fmt::format("has images of {}, but the network takes {}", models::to_text(shape),
                               models::to_text(wanted)),
                   "choose a network for these images, or images for the network");
}

void check_classes(const DatasetRequest& request, std::int64_t classes) {
  if (classes <= request.classes) return;
  throw InputError(
      InputPlace{.file = request.source},
      fmt::format("has {} classes, but the network tells only {} apart", classes, request.classes),
      "choose a network with more outputs");
}

}  // namespace paceline::runtime
