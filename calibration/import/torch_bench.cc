// Tests: tests/calibration/import_imb_test.cc.
#include "calibration/import/torch_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "calibration/import/nccl_tests_rows.h"
#include "calibration/import/table_text.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Cells = std::vector<std::string_view>;

// "361.90GBps" is 361.9 and "GBps".
std::pair<std::optional<double>, std::string_view> with_unit(std::string_view cell) {
  const std::size_t end = std::min(cell.find_first_not_of("0123456789."), cell.size());
  return {number(cell.substr(0, end)), cell.substr(end)};
}

std::optional<double> scale_of(std::string_view unit, double step) {
  constexpr std::string_view letters = "KMGT";
  if (unit.empty()) return std::nullopt;
  const std::size_t power = letters.find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  return std::pow(step, static_cast<double>(power + 1));
}

// "|payload|    busbw   |" without the bars and blanks. Empty for other lines.
Cells cells_of(std::string_view line) {
  Cells cells;
  if (!line.starts_with('|')) return cells;
  std::size_t begin = 1;
  while (begin < line.size()) {
    const std::size_t end = std::min(line.find('|', begin), line.size());
    const std::vector<std::string_view> inside = words(line.substr(begin, end - begin));
    cells.push_back(inside.size() == 1 ? inside[0] : std::string_view());
    begin = end + 1;
  }
  return cells;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    const std::size_t first = line.text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return;
    const Cells cells = cells_of(line.text.substr(first));
    if (cells.empty()) {
      read_title(words(line.text), line.number);
    } else if (cells[0] == "payload") {
      header_ = cells;
    } else if (!header_.empty() && !cells[0].starts_with('-') && !cells[0].starts_with(':')) {
      read_row(cells, line.number);
    }
  }

  Imported finish() {
    Imported imported = rows_.finish("", std::move(run_), file_);
    imported.tool = "all_reduce_bench.py";
    for (ImportedCurve& curve : imported.curves) curve.what = "all_reduce_bench.py, fp32";
    return imported;
  }

 private:
  // "The average bandwidth of all_reduce over 16 ranks (5 warmups / 20 trials):"
  void read_title(const std::vector<std::string_view>& row, int line) {
    const auto over = std::find(row.begin(), row.end(), "over");
    if (over == row.begin() || row.end() - over < 3 || !(*(over + 2)).starts_with("ranks")) return;
    const std::string_view collective = *(over - 1);
    if (collective != "all_reduce")
      throw InputError({file_, line}, "this is the bandwidth of " + in_quotes(collective),
                       "give that of all_reduce");
    run_.ranks = Count::of(count_cell(*(over + 1), "ranks", file_, line));
  }

  double bandwidth(const Cells& cells, std::string_view title, int line) const {
    const auto column = to_size(std::find(header_.begin(), header_.end(), title) - header_.begin());
    const std::string_view cell = column < cells.size() ? cells[column] : std::string_view();
    const auto [value, unit] = with_unit(cell);
    const std::optional<double> scale = scale_of(unit, 1e3);
    if (!value || !scale || !unit.ends_with("Bps") || *value <= 0 || *value * *scale > 1e15)
      throw InputError({file_, line}, in_quotes(cell) + " is no " + std::string(title),
                       "bandwidths are above 0, as in 361.90GBps");
    constexpr double giga = 1e9;
    return *value * *scale / giga;
  }

  void read_row(const Cells& cells, int line) {
    const auto [payload, unit] = with_unit(cells[0]);
    const std::optional<double> scale = unit == "B" ? std::optional(1.0) : scale_of(unit, 1024);
    if (!payload || !scale || !unit.ends_with('B') || *payload <= 0 || *payload * *scale > 1e15)
      throw InputError({file_, line}, in_quotes(cells[0]) + " is no payload",
                       "payloads are above 0, as in 4GB");
    const Bytes bytes{*payload * *scale};
    const double algbw = bandwidth(cells, "algbw", line);
    constexpr double giga = 1e9;
    const Seconds time = bytes / BytesPerSecond{algbw * giga};
    if (time > Seconds{1e3})
      throw InputError({file_, line}, "an algbw of more than 1000 s for this payload",
                       "give the output as it is");
    rows_.add({.bytes = bytes,
               .time = time,
               .type = "float",
               .operation = "sum",
               .algbw = algbw,
               .busbw = bandwidth(cells, "busbw", line)},
              {file_, line});
  }

  const std::string& file_;
  Cells header_;
  NcclTestsRun run_;
  NcclTestsRows rows_;
};

}  // namespace

bool looks_like_torch_bench(std::string_view text) {
  text = head_of(text);
  for (std::size_t at = text.find("payload"); at != std::string_view::npos;
       at = text.find("payload", at + 1)) {
    const std::size_t bar = text.substr(0, at).find_last_not_of(" \t");
    if (bar != std::string_view::npos && text[bar] == '|') return true;
  }
  return false;
}

Imported parse_torch_bench(std::string_view text, const std::string& file) {
  return read_lines<Reader>(text, file);
}

}  // namespace paceline::calibration
