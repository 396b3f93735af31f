// The text of the InputError that an action throws; "no error" if it throws none.
#pragma once

#include <string>

#include "models/base/error.h"

namespace paceline::test {

template <class F>
std::string error_of(F action) {
  try {
    static_cast<void>(action());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace paceline::test
