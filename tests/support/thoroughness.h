// How much a test looks at. What takes minutes is looked at in part by default, and in whole where PACELINE_SLOW is
// set, which `ctest --test-dir build/release -C slow -L slow` does.
#pragma once

#include <cstdlib>

namespace paceline::test {

inline bool is_thorough() {
  return std::getenv("PACELINE_SLOW") != nullptr;
}

// How many cases are looked at, or which.
template <typename Cases>
Cases cases(Cases few, Cases all) {
  return is_thorough() ? all : few;
}

}  // namespace paceline::test
