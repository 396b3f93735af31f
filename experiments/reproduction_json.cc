// Tests: tests/cli/command_test.py.
#include "experiments/reproduction_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace paceline::experiments {

using Json = nlohmann::ordered_json;

std::string to_json(const Reproduction& result) {
  Json rows = Json::array();
  for (const Row& row : result.rows) {
    rows.push_back({{"id", row.id},
                    {"source", row.source},
                    {"what", row.what},
                    {"provenance", name(row.provenance)},
                    {"unit", row.unit},
                    {"published", row.published},
                    {"ours", row.ours},
                    {"relative_error", row.relative_error()},
                    {"configuration", row.configuration},
                    {"note", row.note}});
  }
  const Json document = {{"schema", "paceline.reproduction/1"},
                         {"name", result.name},
                         {"title", result.title},
                         {"rows", std::move(rows)}};
  return document.dump(2);
}

}  // namespace paceline::experiments
