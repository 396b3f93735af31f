// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "calibration/fit/spread.h"
#include "calibration/import/nccl_tests_json.h"
#include "calibration/import/nccl_tests_rows.h"
#include "calibration/import/table_text.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::size_t none = to_size(-1);

// The places of the cells of a row, as the words of the header tell them.
struct Columns {
  std::size_t size = none;
  std::size_t type = none;
  std::size_t operation = none;
  std::size_t root = none;
  std::size_t time[2] = {none, none};  // out of place, in place
  std::size_t algbw[2] = {none, none};
  std::size_t busbw[2] = {none, none};
  std::size_t wrong[2] = {none, none};
  std::size_t count = 0;
  bool timestamp = false;     // one or two words more in each row
  bool milliseconds = false;  // what times are in
};

// The row without the "#" before it, which is lost where a text went through Markdown.
Words without_mark(const Words& row) {
  return row[0] == "#" ? Words(row.begin() + 1, row.end()) : row;
}

bool is_header(const Words& row) {
  return row.size() > 3 && (row[0] == "size" || row[0] == "bytes") &&
         std::find(row.begin(), row.end(), "algbw") != row.end();
}

Columns columns_of(const Words& header, const std::string& file, int line) {
  Columns columns;
  columns.count = header.size();
  // Up to 2018 sizes were called bytes, and times were printed in milliseconds.
  columns.milliseconds = header[0] == "bytes";
  const auto note = [](std::size_t(&pair)[2], std::size_t column) {
    pair[pair[0] == none ? 0 : 1] = column;
  };
  for (std::size_t column = 0; column < header.size(); ++column) {
    const std::string_view word = header[column];
    if (word == "size" || word == "bytes") columns.size = column;
    if (word == "type") columns.type = column;
    if (word == "redop" || word == "op") columns.operation = column;
    if (word == "root") columns.root = column;
    if (word == "time" || word == "cputime") note(columns.time, column);
    if (word == "algbw") note(columns.algbw, column);
    if (word == "busbw") note(columns.busbw, column);
    if (word == "#wrong" || word == "error" || word == "res") note(columns.wrong, column);
    if (word == "timestamp") columns.timestamp = true;
  }
  if (columns.timestamp) --columns.count;
  if (columns.operation == none)
    throw InputError({file, line}, "a header without redop",
                     "give the output of nccl-tests as it is");
  if (columns.size == none || columns.type == none || columns.time[0] == none ||
      columns.busbw[0] == none)
    throw InputError({file, line}, "a header without size, type, time or busbw",
                     "give the output of nccl-tests as it is");
  return columns;
}

// "Rank  0 Group  0 Pid 1887 on worker-1 device  0 [0x8d] NVIDIA H100"; before 2.13 no group. The
// tests of NCCL 1 print "Device  0 ->  0 [0x0a] GeForce GTX TITAN X".
void read_rank(const Words& row, NcclTestsDevices& table) {
  if (row.size() < 4 || !is_whole_number(row[1]) || row[1].size() > 7) return;
  const bool rank = row[0] == "Rank" && std::find(row.begin(), row.end(), "device") != row.end();
  if (!rank && !(row[0] == "Device" && row[2] == "->")) return;
  // The words behind a word: "on HOST", "device  0 [0x8d]".
  const auto after = [&](std::string_view word, std::ptrdiff_t count) {
    auto at = std::find(row.begin(), row.end(), word);
    std::string text;
    for (; count > 0 && at != row.end() && ++at != row.end(); --count)
      text += (text.empty() ? "" : " ") + std::string(*at);
    return text;
  };
  // The tests of NCCL 1 are one process, and so on one host.
  table.add(static_cast<int>(*number(row[1])), rank ? after("on", 1) : "this process",
            after("device", 2));
}

// How far apart several runs are, at the size where they differ most.
std::string spread_text(const ImportedCurve& curve) {
  const std::vector<SizeSpread> spreads = spread_by_size(curve.samples);
  const SizeSpread& widest =
      *std::max_element(spreads.begin(), spreads.end(),
                        [](const auto& a, const auto& b) { return a.ratio() < b.ratio(); });
  return fmt::format(
      "{} runs of {}, taken together by their medians; they differ most at {}: {} to {} "
      "({:.3g} times)",
      curve.runs, curve.what, to_text_binary(widest.bytes), to_text(widest.least),
      to_text(widest.most), widest.ratio());
}

// The output of one run of a program.
struct Run {
  bool headed = false;  // by a row of names
  std::optional<Columns> columns;
  NcclTestsDevices devices;
  NcclTestsRows rows;
  std::optional<models::Collective> stated;
  std::optional<InputError> refused;  // why it is not read
};

class Reader {
 public:
  Reader(const std::string& file, std::optional<models::Collective> stated)
      : file_(file), stated_(stated) {}

  void read(const TextLine& line) {
    const Words row = words(line.text);
    if (row.empty()) return;
    if (is_whole_number(row[0])) {
      if (run_.columns && !run_.refused) read_row(row, line.number);
    } else {
      read_comment(without_mark(row), line.number);
    }
  }

  Imported finish() {
    finish_run();
    if (imported_.curves.empty() && refused_) throw *refused_;
    if (imported_.curves.empty())
      throw InputError({file_}, "there is no table of nccl-tests",
                       "a header \"# size count type redop ...\" comes before the rows");
    for (const ImportedCurve& curve : imported_.curves) {
      if (curve.runs > 1) imported_.remarks.push_back(spread_text(curve));
    }
    imported_.tool = tool_;
    imported_.version = version_;
    return std::move(imported_);
  }

 private:
  void read_comment(const Words& row, int line) {
    if (row.empty()) return;
    const bool collective =
        row.size() > 3 && row[0] == "Collective" && row[1] == "test" && row[2] == "starting:";
    const bool begins = collective || row[0] == "nThread" ||
                        (row.size() > 1 && row[0] == "Using" && row[1] == "devices");
    if (begins && run_.headed) finish_run();
    try {
      if (is_header(row)) {
        run_.headed = true;
        run_.columns = columns_of(row, file_, line);
      } else if (row[0] == "Rank" || row[0] == "Device") {
        read_rank(row, run_.devices);
      } else if (row.size() > 2 && row[0].ends_with("ccl-tests") && row[1] == "version") {
        note_version(row[0], row[2]);
      } else if (row.size() > 2 && row[0] == "rccl-tests:" && row[1] == "Version") {
        note_version("rccl-tests", row[2]);
      } else if (collective) {
        run_.stated = collective_of_program(printable(row[3]), {file_, line});
      }
    } catch (const InputError& error) {
      refuse(error);
    }
  }

  void note_version(std::string_view tool, std::string_view version) {
    if (!version_.empty()) return;
    tool_ = printable(tool);
    version_ = printable(version);
  }

  void refuse(const InputError& error) {
    if (!run_.refused) run_.refused = error;
  }

  // Tables of other benchmarks are left out where the file has one of a collective.
  void finish_run() {
    Run run = std::exchange(run_, Run{});
    if (!run.columns && !run.refused) return;
    Imported one;
    try {
      if (run.refused) throw InputError(*run.refused);
      if (run.devices.repeated())
        throw InputError({file_}, "ranks are listed twice: several jobs ran beside each other",
                         "build nccl-tests with MPI=1, so that mpirun makes one job of them");
      one = run.rows.finish("", run.devices.told(), file_, run.stated ? run.stated : stated_);
    } catch (const InputError& error) {
      if (!refused_) refused_ = error;
      imported_.remarks.push_back("a table is left out: " + error.problem());
      return;
    }
    for (ImportedCurve& curve : one.curves) add_curve(std::move(curve));
    for (std::string& remark : one.remarks) imported_.remarks.push_back(std::move(remark));
  }

  // Adds the samples to those of a run alike.
  void add_curve(ImportedCurve&& curve) {
    for (ImportedCurve& known : imported_.curves) {
      if (known.kind != curve.kind || known.wire != curve.wire || known.ranks != curve.ranks ||
          known.nodes != curve.nodes)
        continue;
      known.samples.insert(known.samples.end(), curve.samples.begin(), curve.samples.end());
      ++known.runs;
      return;
    }
    imported_.curves.push_back(std::move(curve));
  }

  void read_row(const Words& row, int line) {
    const Columns& columns = *run_.columns;
    const std::size_t extra = columns.timestamp ? 2 : 0;
    if (row.size() < columns.count || row.size() > columns.count + extra)
      throw wrong_columns(row.size(), columns.count, {file_, line});
    const std::string_view root = columns.root == none ? "-1" : row[columns.root];
    const NcclTestsChecked checked = checked_of(row);
    const int place = columns.time[1] != none && checked != NcclTestsChecked::out_of_place ? 1 : 0;
    NcclTestsRow cells{.bytes = size_cell(row[columns.size], file_, line),
                       .time = Seconds{0},
                       .type = std::string(row[columns.type]),
                       .operation = std::string(row[columns.operation]),
                       .has_root = root != "-1",
                       .checked = checked,
                       .in_place = place == 1};
    if (cells.bytes > Bytes{0})
      cells.time =
          time_cell(row[columns.time[place]], columns.milliseconds ? 1e-3 : 1e-6, file_, line);
    const auto cell = [&](const std::size_t(&pair)[2]) {
      return pair[place] == none ? 0 : number(row[pair[place]]).value_or(0);
    };
    // A count of wrong elements; in older versions a relative error, or a verdict.
    cells.wrong = cell(columns.wrong);
    cells.algbw = cell(columns.algbw);
    cells.busbw = cell(columns.busbw);
    run_.rows.add(cells, {file_, line});
  }

  [[nodiscard]] NcclTestsChecked checked_of(const Words& row) const {
    const Columns& columns = *run_.columns;
    const auto has_number = [&](int place) {
      return columns.wrong[place] != none && number(row[columns.wrong[place]]).has_value();
    };
    return !has_number(0)  ? NcclTestsChecked::unknown
           : has_number(1) ? NcclTestsChecked::both
                           : NcclTestsChecked::out_of_place;
  }

  const std::string& file_;
  std::optional<models::Collective> stated_;  // by the user
  std::string tool_ = "nccl-tests";
  std::string version_;
  Run run_;
  std::optional<InputError> refused_;  // of the first run that is not read
  Imported imported_;
};

}  // namespace

bool looks_like_nccl_tests(std::string_view text) {
  if (looks_like_nccl_tests_json(text)) return true;
  text = head_of(text);
  return text.find("algbw") != std::string_view::npos &&
         text.find("busbw") != std::string_view::npos;
}

Imported parse_nccl_tests(std::string_view text, const std::string& file,
                          std::optional<models::Collective> stated) {
  if (looks_like_nccl_tests_json(text)) return parse_nccl_tests_json(text, file, stated);
  return read_lines<Reader>(text, file, stated);
}

}  // namespace paceline::calibration
