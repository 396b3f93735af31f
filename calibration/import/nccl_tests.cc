// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "calibration/import/nccl_tests_json.h"
#include "calibration/import/nccl_tests_rows.h"
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

// "#  Rank  0 Group  0 Pid 1887 on worker-1 device  0 [0x8d] NVIDIA H100"; before 2.13 no group.
void read_rank(const Words& row, NcclTestsDevices& table) {
  if (row.size() < 4 || row[1] != "Rank" || !is_whole_number(row[2]) || row[2].size() > 7) return;
  table.ranks.insert(static_cast<int>(*number(row[2])));
  const auto on = std::find(row.begin(), row.end(), "on");
  if (on != row.end() && on + 1 != row.end()) table.nodes.emplace(*(on + 1));
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
    return rows_.finish(version_, static_cast<int>(devices_.ranks.size()),
                        devices_.nodes.size() > 1, file_);
  }

 private:
  void read_comment(const Words& row, const TextLine& line) {
    if (is_header(row)) {
      columns_ = columns_of(row, file_, line.number);
    } else if (row.size() > 2 && row[1] == "Rank") {
      read_rank(row, devices_);
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
    const int place = columns.time[1] != none ? 1 : 0;
    NcclTestsRow cells{.bytes = size_cell(row[columns.size], file_, line),
                       .time = Seconds{0},
                       .type = std::string(row[columns.type]),
                       .operation = std::string(row[columns.operation]),
                       .in_place = place == 1};
    if (cells.bytes > Bytes{0}) cells.time = time_cell(row[columns.time[place]], file_, line);
    const auto cell = [&](const std::size_t(&pair)[2]) {
      return pair[place] == none ? 0 : number(row[pair[place]]).value_or(0);
    };
    // A count of wrong elements; in older versions a relative error, or a verdict.
    cells.wrong = cell(columns.wrong);
    cells.algbw = cell(columns.algbw);
    cells.busbw = cell(columns.busbw);
    rows_.add(cells, {file_, line});
  }

  const std::string& file_;
  std::string version_;
  std::optional<Columns> columns_;
  NcclTestsDevices devices_;
  NcclTestsRows rows_;
};

}  // namespace

bool looks_like_nccl_tests(std::string_view text) {
  if (looks_like_nccl_tests_json(text)) return true;
  constexpr std::size_t head = 1 << 16;
  text = text.substr(0, head);
  return text.find("algbw") != std::string_view::npos &&
         text.find("busbw") != std::string_view::npos;
}

Imported parse_nccl_tests(std::string_view text, const std::string& file) {
  if (looks_like_nccl_tests_json(text)) return parse_nccl_tests_json(text, file);
  Reader reader(file);
  for (const TextLine& line : text_lines(text, file)) reader.read(line);
  return reader.finish();
}

}  // namespace paceline::calibration
