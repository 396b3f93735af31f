#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace paceline::calibration {

// Of an even number of values, the mean of the two in the middle. Needs at least one. O(n).
template <class T>
[[nodiscard]] T median(std::vector<T> values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace paceline::calibration
