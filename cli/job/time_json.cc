// Tests: tests/cli/time_test.py.
#include <fmt/core.h>

#include <cmath>
#include <functional>

#include "cli/job/document_values.h"
#include "cli/job/time_table.h"
#include "models/base/document.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::job {

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

namespace {

std::int64_t elements(const TimeTable& table, Bytes size) {
  return std::llround(size / models::element_size(table.type));
}

// The provenance of a column's time at a size.
std::string_view provenance_of(const TimeTable& table, const TimedColumn& column,
                               std::size_t size) {
  return column.as == TimedAs::asked && table.is_calibrated(size) ? "calibrated" : "predicted";
}

// A size as it was measured.
struct BesideLine {
  const TimeTable& table;
  BesideMeasured row;

  [[nodiscard]] BytesPerSecond bus_bandwidth(Seconds time) const {
    return simulator::bus_bandwidth(table.collective, table.ranks, row.measured.bytes, time);
  }
};

const Document<BesideLine>& beside_document() {
  using Line = BesideLine;
  // A size has either a prediction, or a time that --measured calibrated. The other is left out.
  const auto where = [](bool is_predicted, auto get) {
    return [is_predicted, get](const Line& line) {
      return line.row.verdict.has_value() == is_predicted
                 ? std::optional(std::invoke(get, line.row.predicted))
                 : std::nullopt;
    };
  };
  using Time = Figure<Seconds>;
  static const auto document = [&] {
    Document<Line> lines;
    lines.add("bytes", [](const Line& line) { return line.row.measured.bytes; })
        .add(
            "samples", [](const Line& line) { return line.row.measured.samples; }, at_least(1))
        .add(
            "measured_s", [](const Line& line) { return line.row.measured.median; }, positive())
        .add(
            "measured_least_s", [](const Line& line) { return line.row.measured.least; },
            positive())
        .add(
            "measured_most_s", [](const Line& line) { return line.row.measured.most; }, positive())
        .add("measured_busbw_bytes_per_s",
             [](const Line& line) { return line.bus_bandwidth(line.row.measured.median); });
    for (const bool is_predicted : {true, false}) {
      const std::string beside = is_predicted ? "predicted" : "calibrated";
      lines.add_if_any(beside + "_s", where(is_predicted, &Time::value), positive())
          .add_if_any(beside + "_low_s", where(is_predicted, &Time::low), positive())
          .add_if_any(beside + "_high_s", where(is_predicted, &Time::high), positive())
          .add_if_any(beside + "_busbw_bytes_per_s", [is_predicted](const Line& line) {
            return line.row.verdict.has_value() == is_predicted
                       ? std::optional(line.bus_bandwidth(line.row.predicted.value))
                       : std::nullopt;
          });
    }
    return lines
        .add("busbw_share",
             [](const Line& line) {
               return line.row.verdict ? std::optional(line.row.share()) : std::nullopt;
             })
        .add(
            "verdict", [](const Line& line) { return line.row.verdict_text(); },
            one_of({"inside", "slower", "faster", "calibrated"}));
  }();
  return document;
}

const Document<TimeTable>& against_document() {
  using Table = TimeTable;
  static const auto document =
      Document<Table>()
          .add("file", [](const Table& table) { return table.against->file; })
          .add("tool", [](const Table& table) { return table.against->tool; })
          .add("what", [](const Table& table) { return table.against->what; })
          .add_constant("provenance", "measured")
          .add("remarks", [](const Table& table) { return table.against->remarks; })
          .add(
              "rows",
              [](const Table& table) {
                std::vector<BesideLine> lines;
                for (BesideMeasured& row : beside_measured(table))
                  lines.push_back({table, std::move(row)});
                return lines;
              },
              beside_document(), 1);
  return document;
}

const Document<TimedColumn>& column_document() {
  static const auto document = Document<TimedColumn>()
                                   .add("name", &TimedColumn::name)
                                   .add("as", &TimedColumn::as)
                                   .add("in_haste", &TimedColumn::is_bounded);
  return document;
}

const Document<UntimedAlgorithm>& left_out_document() {
  static const auto document = Document<UntimedAlgorithm>()
                                   .add("name", &UntimedAlgorithm::name)
                                   .add("why", &UntimedAlgorithm::why);
  return document;
}

// A column at one size.
struct TimeLine {
  const TimeTable& table;
  const TimedColumn& column;
  std::size_t size;

  [[nodiscard]] const simulator::AllReduceTime& at() const { return column.times[size]; }
};

const Document<TimeLine>& time_line_document() {
  using Line = TimeLine;
  static const auto document =
      Document<Line>()
          .add("name", [](const Line& line) { return line.column.name; })
          .add("all_reduce",
               [](const Line& line) {
                 return line.at().all_reduce.empty() ? line.column.name : line.at().all_reduce;
               })
          .add_interval("time", "s", [](const Line& line) { return line.at().time; })
          .add("latency_s", [](const Line& line) { return line.at().latency; })
          .add("algbw_bytes_per_s",
               [](const Line& line) {
                 return algorithm_bandwidth(line.table.sizes[line.size], line.at().time.value);
               })
          .add("busbw_bytes_per_s",
               [](const Line& line) {
                 return simulator::bus_bandwidth(line.table.collective, line.table.ranks,
                                                 line.table.sizes[line.size], line.at().time.value);
               })
          .add("timed_by", [](const Line& line) { return line.at().timed_by; })
          .add(
              "provenance",
              [](const Line& line) { return provenance_of(line.table, line.column, line.size); },
              one_of({"predicted", "calibrated"}));
  return document;
}

struct SizeLine {
  const TimeTable& table;
  std::size_t size;

  [[nodiscard]] std::vector<TimeLine> times() const {
    std::vector<TimeLine> lines;
    for (const TimedColumn& column : table.columns) lines.push_back({table, column, size});
    return lines;
  }
};

const Document<SizeLine>& size_document() {
  using Line = SizeLine;
  static const auto document =
      Document<Line>()
          .add("bytes", [](const Line& line) { return line.table.sizes[line.size]; })
          .add(
              "count",
              [](const Line& line) { return elements(line.table, line.table.sizes[line.size]); },
              at_least(1))
          .add("best",
               [](const Line& line) { return line.table.columns[line.table.best(line.size)].name; })
          .add("times", &Line::times, time_line_document(), 1);
  return document;
}

const Document<simulator::MeasuredAllReduce>& measured_document() {
  using Measured = simulator::MeasuredAllReduce;
  static const auto document = Document<Measured>()
                                   .add("ranks", &Measured::ranks, at_least(1))
                                   .add("bytes", &Measured::bytes)
                                   .add("time_s", &Measured::time, positive());
  return document;
}

constexpr double micro = 1e-6;
constexpr double giga = 1e9;

std::string against_csv(const TimeTable& table) {
  std::string text =
      "size_bytes,count,type,algorithm,measured_us,measured_least_us,measured_most_us,"
      "measured_busbw_gb_per_s,predicted_us,predicted_low_us,predicted_high_us,predicted_busbw_gb_"
      "per_s,busbw_share,verdict\n";
  const TimedColumn& asked = table.columns.front();
  const std::vector<BesideMeasured> rows = beside_measured(table);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [measured, predicted, verdict] = rows[i];
    const auto bus_bandwidth = [&, size = measured.bytes](Seconds time) {
      return simulator::bus_bandwidth(table.collective, table.ranks, size, time).value() / giga;
    };
    const std::string& all_reduce = asked.times[i].all_reduce;
    text += fmt::format("{:.15g},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},", measured.bytes.value(),
                        elements(table, measured.bytes), name(table.type),
                        in_csv(all_reduce.empty() ? asked.name : all_reduce),
                        measured.median.value() / micro, measured.least.value() / micro,
                        measured.most.value() / micro, bus_bandwidth(measured.median));
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

const Document<TimeTable>& time_document() {
  using Table = TimeTable;
  static const auto document =
      Document<Table>("paceline.time/1",
                      "paceline time --json: single collectives by size and algorithm.")
          .add("cluster", [](const Table& table) { return table.cluster.name; })
          .add("ranks", &Table::ranks, at_least(1))
          .add("collective", [](const Table& table) { return name(table.collective); })
          .add("type", &Table::type)
          .add("engine", &Table::engine)
          .add("profile",
               [](const Table& table) {
                 return table.profile ? std::optional(table.profile->name) : std::nullopt;
               })
          .add("measured", &Table::measured, measured_document())
          .add(
              "against", [](const Table& table) { return table.against ? &table : nullptr; },
              against_document())
          .add("nccl_version", [](const Table& table) { return non_empty(table.nccl_version); })
          .add_constant("provenance", "predicted")
          .add("columns", &Table::columns, column_document(), 1)
          .add("left_out", &Table::left_out, left_out_document())
          .add(
              "sizes",
              [](const Table& table) {
                std::vector<SizeLine> lines;
                for (std::size_t i = 0; i < table.sizes.size(); ++i) lines.push_back({table, i});
                return lines;
              },
              size_document(), 1);
  return document;
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
      text += fmt::format(
          "{:.15g},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{},{}\n", size.value(),
          elements(table, size), name(table.type),
          in_csv(at.all_reduce.empty() ? column.name : at.all_reduce), name(column.as),
          at.time.value.value() / micro, at.time.low.value() / micro, at.time.high.value() / micro,
          algorithm_bandwidth(size, at.time.value).value() / giga,
          simulator::bus_bandwidth(table.collective, table.ranks, size, at.time.value).value() /
              giga,
          in_csv(at.timed_by), provenance_of(table, column, i));
    }
  }
  return text;
}

}  // namespace paceline::job
