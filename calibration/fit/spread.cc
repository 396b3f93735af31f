// Tests: tests/calibration/spread_test.cc.
#include "calibration/fit/spread.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/fit/statistics.h"

namespace paceline::calibration {
namespace {

std::map<Bytes, std::vector<Seconds>> times_by_size(std::span<const Sample> samples) {
  std::map<Bytes, std::vector<Seconds>> times;
  for (const Sample& sample : samples) times[sample.bytes].push_back(sample.time);
  return times;
}

}  // namespace

std::vector<SizeSpread> spread_by_size(std::span<const Sample> samples) {
  std::vector<SizeSpread> spreads;
  for (const auto& [bytes, times] : times_by_size(samples)) {
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    spreads.push_back({bytes, *least, median(times), *most, static_cast<int>(times.size())});
  }
  return spreads;
}

double relative_spread(std::span<const Sample> samples) {
  double squares = 0;
  std::size_t degrees = 0;
  for (const auto& [bytes, times] : times_by_size(samples)) {
    const Seconds middle = median(times);
    for (const Seconds time : times) squares += std::pow(std::log(time / middle), 2);
    degrees += times.size() - 1;
  }
  return degrees == 0 ? 0 : std::sqrt(squares / static_cast<double>(degrees));
}

}  // namespace paceline::calibration
