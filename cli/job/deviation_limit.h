// How far a measurement may fall behind its prediction before a command says so by its exit code:
// --fail-below of time, --fail-slower of compare.
#pragma once

#include <optional>
#include <string>

namespace paceline::job {

// A share, or the bad end of the prediction's 90 % interval where there is none.
struct DeviationLimit {
  std::optional<double> share;
};

// "90%", "0.9" or "interval"; nothing for an empty text. Shares are from `least` to `most`. Throws
// InputError that names the option.
[[nodiscard]] std::optional<DeviationLimit> parse_deviation_limit(const char* option,
                                                                  const std::string& text,
                                                                  double least, double most);

}  // namespace paceline::job
