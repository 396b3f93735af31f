// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "calibration/import/table_text.h"

namespace paceline::calibration {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::size_t none = static_cast<std::size_t>(-1);

// The places of the cells of a row, as the words of the header tell them.
struct Columns {
  std::size_t size = none;
  std::size_t type = none;
  std::size_t operation = none;
  std::size_t time[2] = {none, none};  // out of place, in place
  std::size_t algbw[2] = {none, none};
  std::size_t busbw[2] = {none, none};
  std::size_t wrong[2] = {none, none};
  std::size_t count = 0;
  bool timestamp = false;  // one or two words more in each row
};

bool is_header(const Words& row) {
  return row.size() > 4 && row[0] == "#" && (row[1] == "size" || row[1] == "bytes") &&
         std::find(row.begin(), row.end(), "algbw") != row.end();
}

Columns columns_of(const Words& header, const std::string& file, int line) {
  Columns columns;
  columns.count = header.size() - 1;
  const auto note = [](std::size_t(&pair)[2], std::size_t column) {
    pair[pair[0] == none ? 0 : 1] = column;
  };
  for (std::size_t i = 1; i < header.size(); ++i) {
    const std::string_view word = header[i];
    const std::size_t column = i - 1;
    if (word == "size" || word == "bytes") columns.size = column;
    if (word == "type") columns.type = column;
    if (word == "redop" || word == "op") columns.operation = column;
    if (word == "time" || word == "cputime") note(columns.time, column);
    if (word == "algbw") note(columns.algbw, column);
    if (word == "busbw") note(columns.busbw, column);
    if (word == "#wrong" || word == "error" || word == "res") note(columns.wrong, column);
    if (word == "timestamp") columns.timestamp = true;
  }
  if (columns.timestamp) --columns.count;
  if (columns.operation == none)
    throw InputError({file, line}, "this table has no reduction",
                     "give the output of all_reduce_perf");
  if (columns.size == none || columns.type == none || columns.time[0] == none ||
      columns.busbw[0] == none)
    throw InputError({file, line}, "a header without size, type, time or busbw",
                     "give the output of all_reduce_perf as it is");
  return columns;
}

struct Table {
  std::set<int> ranks;
  std::set<std::string, std::less<>> nodes;
};

// "#  Rank  0 Group  0 Pid 1887 on worker-1 device  0 [0x8d] NVIDIA H100"; before 2.13 no group.
void read_rank(const Words& row, Table& table) {
  if (row.size() < 4 || row[1] != "Rank" || !is_whole_number(row[2]) || row[2].size() > 7) return;
  table.ranks.insert(static_cast<int>(*number(row[2])));
  const auto on = std::find(row.begin(), row.end(), "on");
  if (on != row.end() && on + 1 != row.end()) table.nodes.emplace(*(on + 1));
}

std::optional<models::WireType> wire_of(std::string_view type) {
  if (type == "float") return models::WireType::fp32;
  if (type == "half") return models::WireType::fp16;
  if (type == "bfloat16") return models::WireType::bf16;
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
    } else if (columns_ && is_whole_number(row[0])) {
      read_row(row, line.number);
    }
  }

  Imported finish() {
    if (!columns_)
      throw InputError({file_}, "there is no table of nccl-tests",
                       "a header \"# size count type redop ...\" comes before the rows");
    if (curves_.empty())
      throw InputError({file_}, "a table without rows", "give the output of a finished run");
    const int ranks = static_cast<int>(table_.ranks.size());
    Imported imported{.tool = "nccl-tests", .version = version_};
    for (auto& [type, curve] : curves_) {
      curve.ranks = ranks;
      if (ranks > 0) curve.between_nodes = table_.nodes.size() > 1;
      curve.wire = wire_of(type);
      if (!curve.wire) {
        imported.remarks.push_back(fmt::format(
            "{} rows of type {} are left out: gradients travel as float, half or bfloat16",
            curve.samples.size(), type));
        continue;
      }
      imported.curves.push_back(std::move(curve));
    }
    if (imported.curves.empty())
      throw InputError({file_}, "no row is of type float, half or bfloat16",
                       "run all_reduce_perf -d float, half or bfloat16");
    if (ranks > 0) check_bus_bandwidth(ranks);
    if (empty_ > 0)
      imported.remarks.push_back(fmt::format("rows of 0 bytes are left out: {}", empty_));
    if (wrong_ > 0)
      imported.remarks.push_back(
          fmt::format("rows with wrong results, whose times are not to be trusted: {}", wrong_));
    return imported;
  }

 private:
  void read_comment(const Words& row, const TextLine& line) {
    if (is_header(row)) {
      columns_ = columns_of(row, file_, line.number);
    } else if (row.size() > 2 && row[1] == "Rank") {
      read_rank(row, table_);
    } else if (row.size() > 3 && row[1] == "nccl-tests" && row[2] == "version") {
      version_ = printable(row[3]);
    } else if (row.size() > 4 && row[1] == "Collective" && row[2] == "test" &&
               row[3] == "starting:" && !row[4].starts_with("all_reduce")) {
      throw InputError({file_, line.number}, "this is the output of " + in_quotes(row[4]),
                       "give that of all_reduce_perf");
    }
  }

  void read_row(const Words& row, int line) {
    const Columns& columns = *columns_;
    const std::size_t extra = columns.timestamp ? 2 : 0;
    if (row.size() < columns.count || row.size() > columns.count + extra)
      throw InputError(
          {file_, line},
          fmt::format("{} columns, where the header has {}", row.size(), columns.count),
          "give the output as it is");
    if (++rows_ > most_table_rows)
      throw InputError({file_, line}, "there are more than 100000 rows", "give fewer");
    const Bytes bytes = size_cell(row[columns.size], file_, line);
    if (bytes == Bytes{0}) {
      ++empty_;
      return;
    }
    const int place = columns.time[1] != none ? 1 : 0;
    const Seconds time = time_cell(row[columns.time[place]], file_, line);
    ImportedCurve& curve = curves_[printable(row[columns.type])];
    if (curve.samples.empty()) {
      curve.library = "nccl";
      curve.what =
          fmt::format("all_reduce_perf, {}, {} {}", place == 1 ? "in place" : "out of place",
                      printable(row[columns.type]), printable(row[columns.operation]));
    }
    curve.samples.push_back({bytes, time});
    // A count of wrong elements; in older versions a relative error, or a verdict.
    if (columns.wrong[place] != none) {
      const std::optional<double> wrong = number(row[columns.wrong[place]]);
      if (wrong && *wrong > most_error) ++wrong_;
    }
    note_bandwidth(row, place, line);
  }

  // The ratio at the largest size, where two decimals say most.
  void note_bandwidth(const Words& row, int place, int line) {
    const std::size_t at = columns_->algbw[place];
    if (at == none || columns_->busbw[place] == none) return;
    const std::optional<double> algbw = number(row[at]);
    const std::optional<double> busbw = number(row[columns_->busbw[place]]);
    if (!algbw || !busbw || *algbw < algbw_) return;
    algbw_ = *algbw;
    busbw_ = *busbw;
    bandwidth_line_ = line;
  }

  // busbw is algbw 2(p-1)/p for an all-reduce, and less for every other collective (nccl-tests,
  // doc/PERFORMANCE.md).
  void check_bus_bandwidth(int ranks) const {
    constexpr double two_decimals = 0.005;
    if (algbw_ < 100 * two_decimals) return;
    const double expected = 2.0 * (ranks - 1) / ranks;
    const double found = busbw_ / algbw_;
    const double tolerance = 0.01 + 2 * two_decimals / algbw_;
    if (std::abs(found - expected) <= tolerance) return;
    throw InputError(
        {file_, bandwidth_line_},
        fmt::format("busbw is {:.3f} algbw, and {:.3f} in an all-reduce over {} rank{}", found,
                    expected, ranks, ranks == 1 ? "" : "s"),
        "give the output of one run of all_reduce_perf");
  }

  static constexpr double most_error = 1e-2;

  const std::string& file_;
  std::string version_;
  std::optional<Columns> columns_;
  Table table_;
  std::map<std::string, ImportedCurve, std::less<>> curves_;
  std::size_t rows_ = 0;
  std::size_t empty_ = 0;
  std::size_t wrong_ = 0;
  double algbw_ = 0;
  double busbw_ = 0;
  int bandwidth_line_ = 0;
};

}  // namespace

bool looks_like_nccl_tests(std::string_view text) {
  constexpr std::size_t head = 1 << 16;
  text = text.substr(0, head);
  return text.find("algbw") != std::string_view::npos &&
         text.find("busbw") != std::string_view::npos;
}

Imported parse_nccl_tests(std::string_view text, const std::string& file) {
  Reader reader(file);
  for (const TextLine& line : text_lines(text, file)) reader.read(line);
  return reader.finish();
}

}  // namespace paceline::calibration
