// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/cast_table.h"

#include <algorithm>
#include <utility>

#include "models/base/error.h"

namespace paceline::runtime {

CastTable::CastTable(std::vector<Cast> casts)
    : identity_(std::make_shared<char>()), casts_(std::move(casts)) {
  for (const Cast& cast : casts_) {
    PACELINE_ASSERT(cast.source.elements == cast.target.elements, "both arrays are of one length");
    PACELINE_ASSERT(cast.source.type == source_type() && cast.target.type == target_type(),
                    "all casts of a table are between the same types");
  }
}

NumberType CastTable::source_type() const {
  return casts_.empty() ? NumberType::fp32 : casts_.front().source.type;
}

NumberType CastTable::target_type() const {
  return casts_.empty() ? NumberType::fp32 : casts_.front().target.type;
}

}  // namespace paceline::runtime
