// Where something stops to hold, by bisection: the number of nodes from which on efficiency is below
// 90 %, or the bandwidth from which on it is not.
//
// Bisection needs no monotone function: it ends at two neighbours, one on either side, whatever lies
// farther away. Where the function crosses once, that is the crossing.
#pragma once

#include <cmath>
#include <functional>

#include "models/base/error.h"

namespace paceline::simulator {

// Two neighbours, on either side of a crossing.
template <class Number>
struct Crossing {
  Number below{};  // the smaller number
  Number above{};
};

// The neighbours n and n + 1 in [low, high] of which `holds` is true of one and false of the other, as
// it is true of one of the ends and false of the other; the ends themselves are not asked. Needs
// low < high. Asks ceil(log2(high - low)) times.
[[nodiscard]] inline Crossing<int> crossing(int low, int high, bool holds_at_low,
                                            const std::function<bool(int)>& holds) {
  PACELINE_ASSERT(low < high, "there is something between the ends");
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (holds(middle) == holds_at_low ? low : high) = middle;
  }
  return {low, high};
}

// The same for positive numbers that are at most the factor 1 + `tolerance` apart.
[[nodiscard]] inline Crossing<double> crossing(double low, double high, double tolerance,
                                               bool holds_at_low,
                                               const std::function<bool(double)>& holds) {
  PACELINE_ASSERT(0 < low && low < high && tolerance > 0, "the ends are positive and in order");
  while (high > low * (1 + tolerance)) {
    const double middle = std::sqrt(low * high);
    (holds(middle) == holds_at_low ? low : high) = middle;
  }
  return {low, high};
}

}  // namespace paceline::simulator
