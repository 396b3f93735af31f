// Tests: tests/calibration/import_deepspeed_test.cc.
#include "calibration/import/deepspeed.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "calibration/import/table_text.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"

namespace paceline::calibration {
namespace {

using models::Collective;
using Words = std::vector<std::string_view>;

struct Call {
  std::string_view name;
  Collective collective;
};
constexpr std::array calls = {
    Call{"all_reduce", Collective::all_reduce},
    Call{"inference_all_reduce", Collective::all_reduce},
    Call{"reduce_scatter", Collective::reduce_scatter},
    Call{"reduce_scatter_tensor", Collective::reduce_scatter},
    Call{"all_gather", Collective::all_gather},
    Call{"all_gather_into_tensor", Collective::all_gather},
    Call{"all_to_all_single", Collective::all_to_all},
    Call{"broadcast", Collective::broadcast},
    Call{"reduce", Collective::reduce},
};

std::optional<Collective> collective_of(std::string_view call) {
  const auto* const known = std::ranges::find(calls, call, &Call::name);
  return known == calls.end() ? std::nullopt : std::optional(known->collective);
}

constexpr double milli = 1e-3;
constexpr double giga = 1e9;
constexpr double bits = 8;

// A call of one size. Throughputs are in Gbit/s; 0 where the table has none.
struct Row {
  Collective collective = Collective::all_reduce;
  Bytes bytes;
  Seconds time;
  double tput = 0;
  double busbw = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    if (line.text.find("comm op: ") != std::string_view::npos) return read_call(line);
    const Words row = words(line.text);
    if (row.size() > 2 && row[0] == "Comm." && row[1] == "Op") return read_header(line.text);
    if (row.empty() || !average_column_ || row[0] == "0B") return;
    if (number(row[0])) return read_row(row, line.number);
    if (row.size() == 1 || row[1] == "[Caller") return begin(row[0]);
    average_column_.reset();  // the text goes on behind the table
  }

  Imported finish() {
    std::vector<Row> rows = table_.empty() ? of_calls() : table_;
    Imported imported{.tool = "DeepSpeed", .version = ""};
    const std::vector<Row>& told = without_stragglers_.empty() ? rows : without_stragglers_;
    const int all_ranks = ranks_of_job(told);
    const bool has_results = has_sizes_of_results(told, all_ranks);
    const Count ranks{.least = 2, .most = all_ranks > 0 ? all_ranks : Count{}.most};
    std::erase_if(rows, [](const Row& row) { return row.time <= Seconds{0}; });
    const auto results = std::erase_if(rows, [&](const Row& row) {
      return has_results && row.collective == Collective::all_gather;
    });
    if (results > 0)
      imported.remarks.push_back(fmt::format(
          "all-gathers are left out, because this version of DeepSpeed logs the sizes of their "
          "results: {}",
          results));
    if (rows.empty())
      throw InputError({file_}, "no call of a collective was logged that takes 0.01 ms or more",
                       "give the output of deepspeed.comm.log_summary()");
    std::map<Collective, ImportedCurve> curves;
    for (const Row& row : rows) {
      const auto [at, is_new] = curves.try_emplace(row.collective);
      if (is_new)
        at->second = {.kind = models::curve_kind(row.collective),
                      .what = fmt::format("DeepSpeed's {}", name(row.collective)),
                      .library = "nccl",
                      .ranks = ranks,
                      .has_sizes_of_parts = row.collective == Collective::all_gather};
      at->second.samples.push_back({row.bytes, row.time});
    }
    for (auto& [collective, curve] : curves) imported.curves.push_back(std::move(curve));
    for (const std::string& call : left_out_)
      imported.remarks.push_back("calls that are no collective of ours are left out: " + call);
    return imported;
  }

 private:
  // The table begins anew: what was counted before is part of it.
  void read_header(std::string_view line) {
    const bool has_stragglers = line.find("Avg straggler(ms)") != std::string_view::npos;
    average_column_ = has_stragglers ? 5 : 4;
    has_throughputs_ = !has_stragglers;
    without_stragglers_ = has_stragglers ? std::exchange(table_, {}) : std::vector<Row>();
    table_.clear();
    collective_.reset();
  }

  void begin(std::string_view call) {
    collective_ = collective_of(call);
    if (!collective_) left_out_.insert(printable(call));
  }

  // "98.25 MB            1                   8317.12             8317.12             0.20    0.19"
  void read_row(const Words& row, int line) {
    constexpr std::size_t columns = 7;
    if (row.size() != columns) throw wrong_columns(row.size(), columns, {file_, line});
    count_row(rows_, {file_, line});
    if (!collective_) return;
    table_.push_back({.collective = *collective_,
                      .bytes = size_of(row[0], row[1], line),
                      .time = time_of(row[*average_column_], line),
                      .tput = has_throughputs_ ? throughput_of(row[5], line) : 0,
                      .busbw = has_throughputs_ ? throughput_of(row[6], line) : 0});
  }

  // "comm op: broadcast | time (ms): 9.46 | msg size: 2.0 KB | algbw (Gbps): 0.43 | busbw (Gbps): .."
  void read_call(const TextLine& line) {
    count_row(rows_, {file_, line.number});
    const auto field = [&](std::string_view key) {
      const std::size_t at = line.text.find(key);
      const std::string_view rest =
          at == std::string_view::npos ? "" : line.text.substr(at + key.size());
      Words cells = words(rest.substr(0, rest.find('|')));
      if (cells.empty())
        throw InputError({file_, line.number}, "a call without " + in_quotes(key),
                         "give the output as it is");
      return cells;
    };
    const std::string_view call = field("comm op: ")[0];
    const std::optional<Collective> collective = collective_of(call);
    if (!collective) {
      left_out_.insert(printable(call));
      return;
    }
    const Words size = field("msg size: ");
    if (size[0] == "0B") return;
    calls_.push_back({.collective = *collective,
                      .bytes = size_of(size[0], size.size() > 1 ? size[1] : "", line.number),
                      .time = time_of(field("time (ms): ")[0], line.number),
                      .tput = throughput_of(field("algbw (Gbps): ")[0], line.number),
                      .busbw = throughput_of(field("busbw (Gbps): ")[0], line.number)});
  }

  [[nodiscard]] Bytes size_of(std::string_view size, std::string_view unit, int line) const {
    constexpr std::string_view letters = "BKMGT";
    const std::optional<double> value = number(size);
    const std::size_t power = unit.empty() ? std::string_view::npos : letters.find(unit[0]);
    if (!value || *value < 0 || *value > 1e15 || power == std::string_view::npos)
      throw InputError({file_, line}, in_quotes(fmt::format("{} {}", size, unit)) + " is no size",
                       "sizes are as in 98.25 MB");
    return Bytes{*value * std::pow(1024.0, static_cast<double>(power))};
  }
  [[nodiscard]] Seconds time_of(std::string_view cell, int line) const {
    const std::optional<double> value = number(cell);
    if (!value || *value < 0 || *value > 1e6)
      throw InputError({file_, line}, in_quotes(cell) + " is no time in milliseconds",
                       "give the output as it is");
    return Seconds{*value * milli};
  }
  [[nodiscard]] double throughput_of(std::string_view cell, int line) const {
    const std::optional<double> value = number(cell);
    if (!value || *value < 0)
      throw InputError({file_, line}, in_quotes(cell) + " is no throughput in Gbps",
                       "give the output as it is");
    return *value;
  }

  // One row for each size: the median.
  [[nodiscard]] std::vector<Row> of_calls() const {
    std::map<std::pair<Collective, double>, std::vector<Row>> by_size;
    for (const Row& row : calls_) by_size[{row.collective, row.bytes.value()}].push_back(row);
    std::vector<Row> medians;
    for (auto& [key, rows] : by_size) {
      std::ranges::sort(rows, {}, &Row::time);
      medians.push_back(rows[rows.size() / 2]);
    }
    return medians;
  }

  // busbw over tput is (n - 1) / n of all ranks; 0 where no row tells.
  [[nodiscard]] static int ranks_of_job(const std::vector<Row>& rows) {
    double most = 0;
    for (const Row& row : rows) {
      const double told = row.busbw < row.tput ? row.tput / (row.tput - row.busbw) : 0;
      // Both have two decimals.
      if (row.tput - row.busbw >= 0.5 && told <= Count{}.most) most = std::max(most, told);
    }
    return static_cast<int>(std::lround(most));
  }

  // The throughput of an all-gather is that of n times its size where that is a rank's part.
  [[nodiscard]] static bool has_sizes_of_results(const std::vector<Row>& rows, int all_ranks) {
    constexpr Seconds last_decimal{0.01 * milli};
    return std::ranges::any_of(rows, [&](const Row& row) {
      if (row.collective != Collective::all_gather || row.time < 5 * last_decimal) return false;
      const double times = row.tput * giga / bits * row.time.value() / row.bytes.value();
      return times > 0 && times < std::sqrt(2.0 * all_ranks);
    });
  }

  const std::string& file_;
  std::optional<std::size_t> average_column_;  // of the table that is being read
  bool has_throughputs_ = false;
  std::optional<Collective> collective_;  // of the rows that follow, if it is one
  std::vector<Row> table_;
  std::vector<Row> without_stragglers_;  // the table before the one that has them
  std::vector<Row> calls_;
  std::set<std::string> left_out_;
  std::size_t rows_ = 0;
};

}  // namespace

bool looks_like_deepspeed(std::string_view text) {
  text = head_of(text);
  return text.find("busbw_avg (Gbps)") != std::string_view::npos ||
         (text.find("comm op: ") != std::string_view::npos &&
          text.find("| msg size: ") != std::string_view::npos);
}

Imported parse_deepspeed(std::string_view text, const std::string& file) {
  // text_lines() would take the name in "broadcast | [Caller Func: ...]" for a prefix of Docker Compose.
  constexpr std::string_view bar = " | [Caller";
  std::string plain(text);
  for (std::size_t at = plain.find(bar); at != std::string::npos; at = plain.find(bar, at))
    plain.erase(at, 2);
  return read_lines<Reader>(plain, file);
}

}  // namespace paceline::calibration
