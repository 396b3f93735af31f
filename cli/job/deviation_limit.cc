// Tests: tests/cli/against_test.py, tests/cli/compare_gate_test.py (end to end).
#include "cli/job/deviation_limit.h"

#include "cli/job/option_values.h"

namespace paceline::job {

std::optional<DeviationLimit> parse_deviation_limit(const char* option, const std::string& text,
                                                    double least, double most) {
  if (text.empty()) return std::nullopt;
  if (text == "interval") return DeviationLimit{};
  return DeviationLimit{parsing_option(option, [&] { return parse_share(text, least, most); })};
}

}  // namespace paceline::job
