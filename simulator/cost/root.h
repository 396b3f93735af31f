// Where a rising function of one variable is 0.
#pragma once

#include <functional>

namespace paceline::simulator {

// The value between `low` and `high` at which `rising` is less than `close` from 0. The function must
// be at most 0 at `low` and at least 0 at `high`. Regula falsi, where the end that stays counts half
// (Illinois), and halving where that is slow. Where the function jumps over 0, the place of the jump.
[[nodiscard]] double root(const std::function<double(double)>& rising, double low, double high,
                          double close);

}  // namespace paceline::simulator
