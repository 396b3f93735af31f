// Tests: tests/models/stragglers_test.cc.
#include "models/straggler/stragglers.h"

#include <fmt/core.h>

#include <numeric>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline::models {
namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

std::vector<double> parse_spread_samples(std::string_view text, const std::string& file) {
  constexpr double least = 1e-12;
  constexpr double most = 1e12;
  std::vector<double> samples;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view entry = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    entry = without_blanks(entry.substr(0, entry.find('#')));
    if (entry.empty()) continue;
    try {
      samples.push_back(parse_number(entry, least, most));
    } catch (const InputError& error) {
      throw error.at({file, line});
    }
  }
  if (samples.empty())
    throw InputError({file}, "no sample", "write one time or factor greater than 0 a line");
  const double mean =
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  for (double& sample : samples) sample /= mean;
  return samples;
}

ComputeSpread spread_from_text(std::string_view text,
                               const std::function<std::string(const std::string&)>& read_file) {
  constexpr double widest_normal = 1;
  constexpr double widest_log_normal = 3;
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool has_parameter = colon != std::string_view::npos && colon + 1 < text.size();
  const std::string_view parameter = has_parameter ? text.substr(colon + 1) : std::string_view{};
  const auto needs = [&](std::string_view what, std::string_view example) {
    if (!has_parameter)
      throw InputError(fmt::format("{} has no {}", in_quotes(text), what),
                       fmt::format("write it behind a colon, as in {}", example));
  };
  ComputeSpread spread;
  spread.text = text;
  if (name == "constant") {
    if (colon != std::string_view::npos)
      throw InputError(fmt::format("{} has a parameter", in_quotes(text)), "write constant");
  } else if (name == "normal") {
    needs("standard deviation", "normal:0.05");
    spread.kind = SpreadKind::normal;
    spread.parameter = parse_share(parameter, 0, widest_normal);
  } else if (name == "log-normal") {
    needs("sigma", "log-normal:0.1");
    spread.kind = SpreadKind::log_normal;
    spread.parameter = parse_share(parameter, 0, widest_log_normal);
  } else if (name == "file") {
    needs("path", "file:times.txt");
    spread.kind = SpreadKind::empirical;
    const std::string path(parameter);
    spread.samples = parse_spread_samples(read_file(path), path);
  } else {
    throw unknown_name("spread", name, {"constant", "normal", "log-normal", "file"});
  }
  return spread;
}

}  // namespace paceline::models
