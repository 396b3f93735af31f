// A strategy lacks what is asked of it, and others may have it: a table leaves the strategy out.
#pragma once

#include "models/base/error.h"

namespace paceline::models {

class NotOfStrategy : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace paceline::models
