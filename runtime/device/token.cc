// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/token.h"

#include <fmt/core.h>

#include "models/base/error.h"

namespace paceline::runtime {

void wait_for(const Token& token, Seconds patience, std::string_view operation) {
  if (token.wait(patience)) return;
  throw RunError(std::string(operation),
                 fmt::format("the device was not done in {:g} s", patience.value()));
}

}  // namespace paceline::runtime
