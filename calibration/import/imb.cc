// Tests: tests/calibration/import_imb_test.cc.
#include "calibration/import/imb.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "calibration/import/mpi_collectives.h"
#include "calibration/import/table_text.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Words = std::vector<std::string_view>;

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    const Words row = words(line.text);
    if (row.empty()) return;
    if (row[0].starts_with('#')) {
      read_comment(row, line.number);
    } else if (curve_ && time_column_ > 0 && is_whole_number(row[0])) {
      read_row(row, line.number);
    }
  }

  Imported finish() {
    finish_table();
    if (imported_.curves.empty() && !left_out_.empty())
      throw InputError({file_}, "this is the output of " + in_quotes(left_out_.front()),
                       "give that of a collective or of PingPong");
    if (imported_.curves.empty())
      throw InputError({file_}, "there is no table of a collective or of PingPong with rows",
                       "give the output of a finished run of IMB-MPI1 Allreduce");
    for (const std::string& benchmark : left_out_)
      imported_.remarks.push_back("a table is left out: " + benchmark);
    imported_.tool = "Intel MPI Benchmarks";
    return std::move(imported_);
  }

 private:
  void read_comment(const Words& row, int line) {
    if (row.size() > 3 && row[1] == "Intel(R)" && row[2] == "MPI" && row[3] == "Benchmarks") {
      if (row.size() > 4) imported_.version = printable(row[4]);
      if (imported_.version.ends_with(',')) imported_.version.pop_back();
    } else if (row.size() > 4 && row[1] == "MPI_Datatype" && row[3] == "reductions") {
      wire_ = row.back() == "MPI_FLOAT" ? std::optional(models::WireType::fp32) : std::nullopt;
    } else if (row.size() > 2 && row[1] == "Benchmarking") {
      begin(printable(row[2]));
    } else if (row.size() > 3 && row[1] == "#processes" && row[2] == "=" && curve_) {
      curve_->ranks = Count::of(count_cell(row[3], "processes", file_, line));
    } else if (row[0] == "#bytes") {
      columns_ = row.size();
      time_column_ = 0;
      for (const char* title : {"t[usec]", "t_avg[usec]"}) {
        const auto at = std::find(row.begin(), row.end(), title);
        if (at != row.end()) time_column_ = to_size(at - row.begin());
      }
    }
  }

  void begin(const std::string& benchmark) {
    finish_table();
    const auto* const of = std::ranges::find(mpi_collectives, benchmark, &MpiCollective::imb);
    if (benchmark == "PingPong") {
      curve_ = ImportedCurve{.kind = models::CurveKind::point_to_point,
                             .what = "IMB-MPI1 " + benchmark,
                             .library = ""};
    } else if (of != mpi_collectives.end()) {
      curve_ = ImportedCurve{.kind = models::curve_kind(of->collective),
                             .what = "IMB-MPI1 " + benchmark,
                             .library = "mpi",
                             .wire = reduces(of->collective) ? wire_ : std::nullopt,
                             .has_sizes_of_parts = of->has_sizes_of_parts};
    } else {
      left_out_.push_back(benchmark);
    }
  }

  void finish_table() {
    time_column_ = 0;
    if (curve_ && !curve_->samples.empty()) imported_.curves.push_back(std::move(*curve_));
    curve_.reset();
  }

  void read_row(const Words& row, int line) {
    if (row.size() != columns_) throw wrong_columns(row.size(), columns_, {file_, line});
    count_row(rows_, {file_, line});
    const Bytes bytes = size_cell(row[0], file_, line);
    if (bytes == Bytes{0} && is_of_library(curve_->kind)) return;
    curve_->samples.push_back({bytes, time_cell(row[time_column_], 1e-6, file_, line)});
  }

  const std::string& file_;
  Imported imported_;
  std::optional<models::WireType> wire_;
  std::optional<ImportedCurve> curve_;  // of the table that is being read
  std::vector<std::string> left_out_;   // benchmarks
  std::size_t columns_ = 0;
  std::size_t time_column_ = 0;  // 0: no header yet
  std::size_t rows_ = 0;
};

}  // namespace

bool looks_like_imb(std::string_view text) {
  text = head_of(text);
  return text.find("t_avg[usec]") != std::string_view::npos ||
         (text.find("Intel(R) MPI Benchmarks") != std::string_view::npos &&
          text.find("#processes") != std::string_view::npos);
}

Imported parse_imb(std::string_view text, const std::string& file) {
  return read_lines<Reader>(text, file);
}

}  // namespace paceline::calibration
