// Where a measured time lies beside the 90 % interval of its prediction.
#pragma once

#include <string_view>

#include "models/base/units.h"

namespace paceline::calibration {

enum class Verdict { inside, slower, faster };

// "inside", "slower", "faster".
[[nodiscard]] constexpr std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::inside:
      return "inside";
    case Verdict::slower:
      return "slower";
    case Verdict::faster:
      break;
  }
  return "faster";
}

// The ends of the interval are inside.
[[nodiscard]] constexpr Verdict verdict(Seconds measured, Seconds low, Seconds high) {
  return measured > high ? Verdict::slower : measured < low ? Verdict::faster : Verdict::inside;
}

}  // namespace paceline::calibration
