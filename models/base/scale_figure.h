// A figure times a number: what a link or a device would have if it were faster.
#pragma once

#include <optional>

#include "models/base/figure.h"

namespace paceline {

// Multiplies the value and both ends of the interval. Provenance and source stay: the figure is still
// said to be what it was, of a thing that was changed. `factor` is not negative.
template <class Q>
void scale(Figure<Q>& figure, double factor) {
  figure.value *= factor;
  figure.low *= factor;
  figure.high *= factor;
}

template <class Q>
void scale(std::optional<Figure<Q>>& figure, double factor) {
  if (figure) scale(*figure, factor);
}

}  // namespace paceline
