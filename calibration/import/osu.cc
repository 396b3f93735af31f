// Tests: tests/calibration/import_osu_test.cc.
#include "calibration/import/osu.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "calibration/import/mpi_collectives.h"
#include "calibration/import/table_text.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Words = std::vector<std::string_view>;

enum class Benchmark { collective, latency, bandwidth };

// The title of a table, such as "# OSU MPI-CUDA Allreduce Latency Test v7.3".
struct Title {
  std::optional<Benchmark> benchmark;         // none that is read
  const MpiCollective* collective = nullptr;  // of Benchmark::collective
  std::string text;                           // without "#" and version
  std::string version;                        // "7.3"
  std::string library;                        // "mpi", or "nccl" of osu_xccl_allreduce
};

std::string joined(const Words& row, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += (text.empty() ? "" : " ") + printable(row[i]);
  return text;
}

bool is_title(const Words& row) {
  return row.size() >= 5 && row[0] == "#" && row[1] == "OSU" &&
         std::find(row.begin(), row.end(), "Test") != row.end();
}

Title title_of(const Words& row) {
  const auto test = to_size(std::find(row.begin(), row.end(), "Test") - row.begin());
  Title title{std::nullopt, nullptr, joined(row, 1, test), "", "mpi"};
  if (test + 1 < row.size() && row[test + 1].starts_with('v'))
    title.version = printable(row[test + 1].substr(1));
  if (row[2].starts_with("NCCL") || row[2].starts_with("RCCL")) title.library = "nccl";
  // The title after "OSU MPI", "OSU MPI-CUDA" and the like.
  const std::string name = joined(row, 3, test);
  constexpr std::string_view latency = " Latency";
  const auto* const collective = std::ranges::find(
      mpi_collectives, name.substr(0, name.size() - std::min(name.size(), latency.size())),
      &MpiCollective::osu);
  if (name.ends_with(latency) && collective != mpi_collectives.end()) {
    title.benchmark = Benchmark::collective;
    title.collective = collective;
  } else if (name == "Latency") {
    title.benchmark = Benchmark::latency;
  } else if (name == "Bandwidth") {
    title.benchmark = Benchmark::bandwidth;
  }
  return title;
}

// Columns of a header have one or two words. So a row is held against the number of columns of its
// table's first row, and against what the header names.
bool is_header(const Words& row) {
  return row.size() >= 3 && row[0] == "#" && row[1] == "Size";
}

std::optional<models::WireType> wire_of(std::string_view type) {
  if (type.ends_with('.')) type.remove_suffix(1);
  if (type == "MPI_FLOAT") return models::WireType::fp32;
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    const Words row = words(line.text);
    if (row.empty()) return;
    if (row[0].starts_with('#')) {
      read_comment(row, line);
    } else if (title_ && title_->benchmark && header_ && is_whole_number(row[0])) {
      read_row(row, line.number);
    }
  }

  Imported finish() {
    if (!any_title_)
      throw InputError({file_}, "there is no table of OSU micro-benchmarks",
                       "a title \"# OSU MPI Allreduce Latency Test v7.3\" comes before the rows");
    std::erase_if(imported_.curves,
                  [](const ImportedCurve& curve) { return curve.samples.empty(); });
    if (imported_.curves.empty() && left_out_) throw *left_out_;
    if (imported_.curves.empty())
      throw InputError({file_}, "a table without rows", "give the output of a finished run");
    if (second_table_ > 0)
      throw InputError(
          {file_, second_table_},
          "a second table of the same collective, and none says over how many ranks it ran",
          "give one table a file, each with its --ranks");
    imported_.tool = "OSU micro-benchmarks";
    return std::move(imported_);
  }

 private:
  void read_comment(const Words& row, const TextLine& line) {
    if (is_title(row)) {
      begin(title_of(row), line.number);
    } else if (title_ && !title_->benchmark) {
      return;
    } else if (is_header(row)) {
      header_ = true;
      const bool megabytes = std::find(row.begin(), row.end(), "(MB/s)") != row.end();
      if (title_ && megabytes != (*title_->benchmark == Benchmark::bandwidth))
        throw InputError({file_, line.number}, "a header that is not of " + in_quotes(title_->text),
                         "give the output as it is");
    } else if (title_ && row.size() > 2 && row[1] == "Datatype:") {
      read_type(row[2]);
    }
  }

  void begin(const Title& title, int line) {
    any_title_ = true;
    title_ = title;
    header_ = false;
    columns_ = 0;
    if (!title.benchmark) {
      imported_.remarks.push_back("a table is left out: " + title.text);
      if (!left_out_)
        left_out_.emplace(InputPlace{file_, line}, "this is the output of " + in_quotes(title.text),
                          "give that of a collective, osu_latency or osu_bw");
      return;
    }
    ImportedCurve curve;
    curve.what = title.text;
    switch (*title.benchmark) {
      case Benchmark::collective:
        curve.kind = models::curve_kind(title.collective->collective);
        curve.library = title.library;
        curve.has_sizes_of_parts = title.collective->has_sizes_of_parts;
        if (std::ranges::count(imported_.curves, curve.kind, &ImportedCurve::kind) > 0 &&
            second_table_ == 0)
          second_table_ = line;
        // Before 7.0 reductions added floats, and their output did not say so.
        if (reduces(title.collective->collective) && title.version >= "3" && title.version < "7")
          curve.wire = models::WireType::fp32;
        break;
      case Benchmark::bandwidth:
        curve.use = CurveUse::stream;
        [[fallthrough]];
      case Benchmark::latency:
        curve.kind = models::CurveKind::point_to_point;
        curve.ranks = Count::of(2);
        break;
    }
    imported_.version = title.version;
    imported_.curves.push_back(std::move(curve));
  }

  void read_type(std::string_view type) {
    ImportedCurve& curve = imported_.curves.back();
    if (!title_->collective || !reduces(title_->collective->collective)) return;
    curve.wire = wire_of(type);
    if (!curve.wire)
      imported_.remarks.push_back(
          fmt::format("the {} adds {}; its time is taken for that of --wire", name(curve.kind),
                      printable(type)));
  }

  void read_row(const Words& row, int line) {
    if (columns_ == 0) columns_ = row.size();
    if (row.size() < 2 || row.size() != columns_)
      throw InputError({file_, line},
                       fmt::format("{} column{}, where a row has {}", row.size(),
                                   row.size() == 1 ? "" : "s", std::max<std::size_t>(columns_, 2)),
                       "give the output as it is");
    count_row(rows_, {file_, line});
    ImportedCurve& curve = imported_.curves.back();
    const Bytes bytes = size_cell(row[0], file_, line);
    if (bytes == Bytes{0} && is_of_library(curve.kind)) return;
    if (curve.use == CurveUse::time) {
      curve.samples.push_back({bytes, time_cell(row[1], 1e-6, file_, line)});
    } else {
      curve.samples.push_back({bytes, stream_time(bytes, row[1], line)});
    }
    if (row.back() == "Fail")
      imported_.remarks.push_back(
          fmt::format("line {}: the result was wrong: do not trust its time", line));
  }

  Seconds stream_time(Bytes bytes, std::string_view cell, int line) const {
    constexpr double bytes_of_mb = 1e6;
    const std::optional<double> value = number(cell);
    if (!value || *value <= 0 || *value > 1e9 || bytes <= Bytes{0})
      throw InputError({file_, line}, in_quotes(cell) + " is no bandwidth",
                       "bandwidths are in MB/s, above 0 and up to 1e9");
    const Seconds time = bytes / BytesPerSecond{*value * bytes_of_mb};
    if (time > Seconds{1e3})
      throw InputError({file_, line}, in_quotes(cell) + " MB/s is too little for this size",
                       "a message takes up to 1000 s");
    return time;
  }

  const std::string& file_;
  Imported imported_;
  std::optional<Title> title_;
  std::optional<InputError> left_out_;  // of the first table of another benchmark
  bool any_title_ = false;
  int second_table_ = 0;  // of a collective: the line of its title
  bool header_ = false;
  std::size_t columns_ = 0;  // of the table's rows
  std::size_t rows_ = 0;
};

}  // namespace

bool looks_like_osu(std::string_view text) {
  return head_of(text).find("# OSU ") != std::string_view::npos;
}

Imported parse_osu(std::string_view text, const std::string& file) {
  return read_lines<Reader>(text, file);
}

}  // namespace paceline::calibration
