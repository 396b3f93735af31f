// Tests: tests/cli/time_test.py.
#include <fmt/core.h>

#include <cmath>

#include "cli/job/document_values.h"
#include "cli/job/time_table.h"
#include "models/base/json.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::job {
namespace {

std::string_view name(TimedAs as) {
  switch (as) {
    case TimedAs::asked:
      return "asked";
    case TimedAs::nccl:
      return "nccl";
    case TimedAs::library:
      return "curve";
  }
  return "unknown";
}

std::int64_t elements(const TimeTable& table, Bytes size) {
  return std::llround(size / models::element_size(table.type));
}

// The provenance of a column's time at a size.
std::string_view provenance_of(const TimeTable& table, const TimedColumn& column,
                               std::size_t size) {
  return column.as == TimedAs::asked && table.is_calibrated(size) ? "calibrated" : "predicted";
}

Json against_json(const TimeTable& table) {
  if (!table.against) return nullptr;
  const MeasuredTimes& against = *table.against;
  Json rows = Json::array();
  for (const BesideMeasured& row : beside_measured(table)) {
    const auto bus_bandwidth = [&](Seconds time) {
      return simulator::bus_bandwidth(table.ranks, row.measured.size, time).value();
    };
    Json json = {{"bytes", row.measured.size.value()},
                 {"samples", row.measured.samples},
                 {"measured_s", row.measured.time.value()},
                 {"measured_busbw_bytes_per_s", bus_bandwidth(row.measured.time)}};
    const char* beside = row.verdict ? "predicted" : "calibrated";
    add_interval(json, beside, "s", row.predicted);
    json[std::string(beside) + "_busbw_bytes_per_s"] = bus_bandwidth(row.predicted.value);
    json["busbw_share"] = row.verdict ? Json(row.share()) : Json(nullptr);
    json["verdict"] = row.verdict_text();
    rows.push_back(std::move(json));
  }
  return {{"file", against.file},     {"tool", against.tool},       {"what", against.what},
          {"provenance", "measured"}, {"remarks", against.remarks}, {"rows", std::move(rows)}};
}

constexpr double micro = 1e-6;
constexpr double giga = 1e9;

std::string against_csv(const TimeTable& table) {
  std::string text =
      "size_bytes,count,type,algorithm,measured_us,measured_busbw_gb_per_s,predicted_us,"
      "predicted_low_us,predicted_high_us,predicted_busbw_gb_per_s,busbw_share,verdict\n";
  const TimedColumn& asked = table.columns.front();
  const std::vector<BesideMeasured> rows = beside_measured(table);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [measured, predicted, verdict] = rows[i];
    const auto bus_bandwidth = [&, size = measured.size](Seconds time) {
      return simulator::bus_bandwidth(table.ranks, size, time).value() / giga;
    };
    const std::string& all_reduce = asked.times[i].all_reduce;
    text += fmt::format("{:.15g},{},{},{},{:.6g},{:.6g},", measured.size.value(),
                        elements(table, measured.size), name(table.type),
                        in_csv(all_reduce.empty() ? asked.name : all_reduce),
                        measured.time.value() / micro, bus_bandwidth(measured.time));
    // A size that calibrates has no prediction.
    text += verdict ? fmt::format("{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},",
                                  predicted.value.value() / micro, predicted.low.value() / micro,
                                  predicted.high.value() / micro, bus_bandwidth(predicted.value),
                                  rows[i].share())
                    : std::string(",,,,,");
    text += fmt::format("{}\n", rows[i].verdict_text());
  }
  return text;
}

}  // namespace

std::string to_json(const TimeTable& table) {
  Json columns = Json::array();
  for (const TimedColumn& column : table.columns)
    columns.push_back(
        {{"name", column.name}, {"as", name(column.as)}, {"in_haste", column.is_bounded}});
  Json left_out = Json::array();
  for (const UntimedAlgorithm& algorithm : table.left_out)
    left_out.push_back({{"name", algorithm.name}, {"why", algorithm.why}});
  Json sizes = Json::array();
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    const Bytes size = table.sizes[i];
    Json times = Json::array();
    for (const TimedColumn& column : table.columns) {
      const simulator::AllReduceTime& at = column.times[i];
      times.push_back({{"name", column.name},
                       {"all_reduce", at.all_reduce.empty() ? column.name : at.all_reduce},
                       {"time_s", at.time.value.value()},
                       {"time_low_s", at.time.low.value()},
                       {"time_high_s", at.time.high.value()},
                       {"latency_s", at.latency.value()},
                       {"algbw_bytes_per_s", algorithm_bandwidth(size, at.time.value).value()},
                       {"busbw_bytes_per_s",
                        simulator::bus_bandwidth(table.ranks, size, at.time.value).value()},
                       {"timed_by", at.timed_by},
                       {"provenance", provenance_of(table, column, i)}});
    }
    sizes.push_back({{"bytes", size.value()},
                     {"count", elements(table, size)},
                     {"best", table.columns[table.best(i)].name},
                     {"times", std::move(times)}});
  }
  Json measured = Json::array();
  for (const simulator::MeasuredAllReduce& one : table.measured)
    measured.push_back(
        {{"ranks", one.ranks}, {"bytes", one.bytes.value()}, {"time_s", one.time.value()}});
  const Json document = {
      {"schema", "paceline.time/1"},
      {"cluster", table.cluster.name},
      {"ranks", table.ranks},
      {"type", name(table.type)},
      {"engine", name(table.engine)},
      {"profile", table.profile ? Json(table.profile->name) : Json(nullptr)},
      {"measured", std::move(measured)},
      {"against", against_json(table)},
      {"nccl_version", table.nccl_version.empty() ? Json(nullptr) : Json(table.nccl_version)},
      {"provenance", "predicted"},
      {"columns", std::move(columns)},
      {"left_out", std::move(left_out)},
      {"sizes", std::move(sizes)}};
  return document.indented();
}

std::string to_csv(const TimeTable& table) {
  if (table.against) return against_csv(table);
  std::string text =
      "size_bytes,count,type,algorithm,as,time_us,time_low_us,time_high_us,algbw_gb_per_s,"
      "busbw_gb_per_s,timed_by,provenance\n";
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    const Bytes size = table.sizes[i];
    for (const TimedColumn& column : table.columns) {
      const simulator::AllReduceTime& at = column.times[i];
      text += fmt::format("{:.15g},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{},{}\n",
                          size.value(), elements(table, size), name(table.type),
                          in_csv(at.all_reduce.empty() ? column.name : at.all_reduce),
                          name(column.as), at.time.value.value() / micro,
                          at.time.low.value() / micro, at.time.high.value() / micro,
                          algorithm_bandwidth(size, at.time.value).value() / giga,
                          simulator::bus_bandwidth(table.ranks, size, at.time.value).value() / giga,
                          in_csv(at.timed_by), provenance_of(table, column, i));
    }
  }
  return text;
}

}  // namespace paceline::job
