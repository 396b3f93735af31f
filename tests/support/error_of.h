// The text of the error that an action throws.
#pragma once

#include <string>
#include <utility>

#include "models/base/error.h"

namespace paceline::test {

// "no error" if the action throws none of this type.
template <class Error, class F>
std::string error_of_type(F action) {
  try {
    static_cast<void>(action());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

template <class F>
std::string error_of(F action) {
  return error_of_type<InputError>(std::move(action));
}
template <class F>
std::string run_error_of(F action) {
  return error_of_type<RunError>(std::move(action));
}

}  // namespace paceline::test
