// Tests: tests/simulator/root_test.cc.
#include "simulator/cost/root.h"

#include <algorithm>
#include <cmath>

namespace paceline::simulator {

double root(const std::function<double(double)>& rising, double low, double high, double close) {
  constexpr double narrow = 1e-12;  // of an interval, over its larger end
  double at_low = rising(low);
  double at_high = rising(high);
  int last_moved = 0;
  for (int step = 0; step < 100 && high - low > narrow * std::max(std::abs(low), std::abs(high));
       ++step) {
    if (at_low == 0) return low;
    if (at_high == 0) return high;
    double middle = (low * at_high - high * at_low) / (at_high - at_low);
    if (!(middle > low && middle < high) || step % 4 == 3) middle = 0.5 * (low + high);
    const double value = rising(middle);
    if (std::abs(value) < close) return middle;
    if (value < 0) {
      low = middle;
      at_low = value;
      if (last_moved < 0) at_high *= 0.5;
      last_moved = -1;
    } else {
      high = middle;
      at_high = value;
      if (last_moved > 0) at_low *= 0.5;
      last_moved = 1;
    }
  }
  return 0.5 * (low + high);
}

}  // namespace paceline::simulator
