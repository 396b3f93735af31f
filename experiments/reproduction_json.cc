// Tests: tests/cli/command_test.py, tests/cli/reproduce_test.py.
#include "experiments/reproduction_json.h"

#include <utility>
#include <vector>

#include "experiments/published/summary.h"
#include "models/base/json.h"
#include "models/base/json_records.h"

namespace paceline::experiments {
namespace {

Json row_json(const Row& row) {
  Json json = {{"id", row.id},
               {"source", row.source},
               {"what", row.what},
               {"provenance", name(row.provenance)},
               {"unit", row.unit},
               {"published", row.published},
               {"ours", row.ours},
               {"low", row.low},
               {"high", row.high},
               {"inside", row.is_inside()},
               {"relative_error", row.relative_error()},
               {"speed_error", row.speed_error()},
               {"kind", name(row.kind)},
               {"series", row.series},
               {"strategy", row.strategy},
               {"configuration", row.configuration},
               {"command", row.command},
               {"note", row.note}};
  if (row.kind == RowKind::all_reduce) json["bytes"] = row.bytes;
  return json;
}

Json without_json(const std::vector<RowWithout>& rows) {
  Json list = Json::array();
  for (const RowWithout& row : rows)
    list.push_back({{"id", row.id}, {"what", row.what}, {"why", row.why}});
  return list;
}

Json summary_json(const Summary& s) {
  Json json = {{"rows", s.rows}, {"calibrated", s.calibrated}};
  if (s.rows > 0) {
    json["median_error"] = s.median;
    json["p90_error"] = s.p90;
    json["worst_error"] = s.worst;
    json["bias"] = s.bias;
    json["inside"] = s.inside;
    json["pairs"] = s.pairs;
    json["ordered"] = s.ordered;
  }
  return json;
}

Json summaries_json(std::span<const Row> rows) {
  return {{"training", summary_json(summary_of(rows, is_training))},
          {"small_all_reduces", summary_json(summary_of(rows, is_small_all_reduce))},
          {"large_all_reduces", summary_json(summary_of(rows, is_large_all_reduce))}};
}

Json reproduction_json(const Reproduction& result) {
  Json rows = Json::array();
  for (const Row& row : result.rows) rows.push_back(row_json(row));
  return {{"schema", "paceline.reproduction/2"},
          {"name", result.name},
          {"title", result.title},
          {"rows", std::move(rows)},
          {"left_out", without_json(result.left_out)},
          {"failed", without_json(result.failed)},
          {"summary", summaries_json(result.rows)}};
}

std::string text_of(const Json& json) {
  return json.indented();
}

}  // namespace

std::string to_json(const Reproduction& result) {
  return text_of(reproduction_json(result));
}

std::string to_json(std::span<const Reproduction> results) {
  Json sources = Json::array();
  for (const Reproduction& result : results) sources.push_back(reproduction_json(result));
  return text_of({{"schema", "paceline.reproductions/1"},
                  {"sources", std::move(sources)},
                  {"summary", summaries_json(rows_of(results))}});
}

std::string to_json(std::span<const Reproduction> with, std::span<const Without> without) {
  Json list = Json::array();
  for (const Without& one : without) {
    Json sources = Json::object();
    for (std::size_t i = 0; i < with.size(); ++i) {
      const int moved = rows_moved(with.subspan(i, 1), std::span(one.sources).subspan(i, 1));
      if (moved == 0) continue;
      sources[with[i].name] = {{"rows_moved", moved},
                               {"summary", summaries_json(one.sources[i].rows)}};
    }
    list.push_back({{"name", one.mechanism->name},
                    {"what", one.mechanism->what},
                    {"rows_moved", rows_moved(with, one.sources)},
                    {"summary", summaries_json(rows_of(one.sources))},
                    {"sources", std::move(sources)}});
  }
  return text_of({{"schema", "paceline.mechanisms/1"},
                  {"summary", summaries_json(rows_of(with))},
                  {"without", std::move(list)}});
}

std::string to_csv(std::span<const Reproduction> with, std::span<const Without> without) {
  Json records = Json::array();
  const auto add = [&](std::string_view name, std::string_view source, int moved,
                       std::span<const Row> rows) {
    records.push_back({{"without", name},
                       {"source", source},
                       {"rows_moved", moved},
                       {"summary", summaries_json(rows)}});
  };
  for (const Without& one : without) {
    add(one.mechanism->name, "all", rows_moved(with, one.sources), rows_of(one.sources));
    for (std::size_t i = 0; i < with.size(); ++i) {
      const int moved = rows_moved(with.subspan(i, 1), std::span(one.sources).subspan(i, 1));
      if (moved > 0) add(one.mechanism->name, with[i].name, moved, one.sources[i].rows);
    }
  }
  return csv_records(text_of({{"records", std::move(records)}}), {"records"});
}

}  // namespace paceline::experiments
