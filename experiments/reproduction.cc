// Tests: tests/experiments/jizhi_test.cc.
#include "experiments/reproduction.h"

#include <fmt/core.h>

#include <algorithm>

#include "experiments/jizhi/jizhi.h"
#include "experiments/published/source.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline::experiments {
namespace {

constexpr std::string_view jizhi = "jizhi";

std::vector<std::string> fields(std::string_view line) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

std::vector<Experiment> experiments() {
  std::vector<Experiment> all = {
      {std::string(jizhi), "ImageNet in four minutes on 1,024 and 2,048 P40 (Jia et al. 2018)"}};
  for (const std::string& name : shipped_source_names())
    all.push_back({name, shipped_source_title(name)});
  std::sort(all.begin(), all.end(),
            [](const Experiment& a, const Experiment& b) { return a.name < b.name; });
  return all;
}

Reproduction reproduce(std::string_view name, const PredictOptions& options) {
  if (name == jizhi) return reproduce_jizhi();
  std::vector<std::string> names = shipped_source_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return predict_source(read_source(shipped_source_files(name)), options);
  names.emplace_back(jizhi);
  throw unknown_name("experiment", name, names);
}

std::vector<Reproduction> reproduce_all(const PredictOptions& options,
                                        const SourceObserver& begin) {
  std::vector<Reproduction> results;
  const std::vector<Experiment> all = experiments();
  for (const Experiment& entry : all) {
    if (begin)
      begin(entry.name, static_cast<double>(results.size()) / static_cast<double>(all.size()));
    results.push_back(reproduce(entry.name, options));
  }
  return results;
}

std::vector<Reproduction> reproduce_leaving_one_out(const PredictOptions& options,
                                                    const SourceObserver& begin) {
  PredictOptions unfitted = options;
  unfitted.fitted = {};
  std::vector<Reproduction> results = reproduce_all(unfitted, begin);
  const std::vector<Reproduction> evidence = results;
  for (Reproduction& result : results) {
    std::vector<const Reproduction*> others;
    for (const Reproduction& other : evidence) {
      if (other.name != result.name) others.push_back(&other);
    }
    PredictOptions fitted = options;
    fitted.fitted = fitted_from(others);
    if (fitted.fitted == Fitted{}) continue;
    if (begin) begin(result.name, 1);
    result = reproduce(result.name, fitted);
  }
  return results;
}

std::vector<Row> parse_expected(std::string_view text, const std::string& file) {
  std::vector<Row> rows;
  int line_number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++line_number;
    if (line.empty() || line_number == 1) continue;
    const std::vector<std::string> parts = fields(line);
    const InputPlace place{file, line_number};
    if (parts.size() != 6)
      throw InputError(place, fmt::format("{} fields", parts.size()),
                       "write id,source,what,role,unit,published");
    try {
      const Provenance role = provenance_from_name(parts[3]);
      rows.push_back({.id = parts[0],
                      .source = parts[1],
                      .what = parts[2],
                      .provenance = role,
                      .unit = parts[4],
                      .published = parse_number(parts[5], 1e-12, 1e12),
                      .is_time = parts[4] == "min"});
    } catch (const InputError& error) {
      throw error.at(place);
    }
  }
  return rows;
}

}  // namespace paceline::experiments
