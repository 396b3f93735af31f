// Tests: tests/cli/time_test.py, tests/cli/against_test.py.
#include "cli/time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/base/parse_units.h"
#include "models/cluster/placement.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::cli {
namespace {

using calibration::Verdict;
using job::BesideMeasured;
using job::TimedAs;

constexpr double micro = 1e-6;

// Like nccl-tests: two digits after the point, fewer for long times.
std::string microseconds(Seconds time) {
  const double us = time.value() / micro;
  return us < 1000    ? fmt::format("{:.2f}", us)
         : us < 10000 ? fmt::format("{:.1f}", us)
                      : fmt::format("{:.0f}", us);
}

std::string gigabytes(BytesPerSecond bandwidth) {
  return fmt::format("{:.2f}", bandwidth.value() / 1e9);
}

std::vector<std::string> size_cells(const job::TimeTable& table, Bytes size) {
  return {to_text_binary(size), fmt::format("{:.15g}", size / models::element_size(table.type)),
          std::string(name(table.type))};
}

// One algorithm with all that is known of its times; what stands beside it as times.
Table one_algorithm(const job::TimeTable& table) {
  std::vector<Table::Column> columns = {{"size"},       {"count", Align::right, 2},
                                        {"type"},       {"time us"},
                                        {"algbw GB/s"}, {"busbw GB/s"},
                                        {"interval us"}};
  const job::TimedColumn& asked = table.columns.front();
  const bool are_chosen = !job::chosen_options(asked, 0).empty();
  if (are_chosen) columns.push_back({"chosen", Align::left});
  for (std::size_t i = 1; i < table.columns.size(); ++i)
    columns.push_back({fmt::format("{} us", table.columns[i].name)});
  columns.push_back({"timed by", Align::left, 1, true});
  Table rows(std::move(columns));
  const bool by_nccl = simulator::nccl_collective(table.columns.front().name).has_value();
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    const Bytes size = table.sizes[i];
    const simulator::AllReduceTime& at = asked.times[i];
    std::vector<std::string> cells = size_cells(table, size);
    cells.insert(
        cells.end(),
        {microseconds(at.time.value), gigabytes(job::algorithm_bandwidth(size, at.time.value)),
         gigabytes(simulator::bus_bandwidth(table.collective, table.ranks, size, at.time.value)),
         fmt::format("{} - {}", microseconds(at.time.low), microseconds(at.time.high))});
    if (are_chosen) cells.push_back(job::chosen_options(asked, i));
    for (std::size_t j = 1; j < table.columns.size(); ++j)
      cells.push_back(microseconds(table.columns[j].times[i].time.value));
    cells.push_back(by_nccl ? "NCCL " + table.nccl_version : at.timed_by);
    rows.add(std::move(cells));
  }
  return rows;
}

Table all_algorithms(const job::TimeTable& table) {
  std::vector<Table::Column> columns = {{"size"}};
  for (const job::TimedColumn& column : table.columns) columns.push_back({column.name});
  Table rows(std::move(columns));
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    std::vector<std::string> cells = {to_text_binary(table.sizes[i])};
    const std::size_t best = table.best(i);
    for (std::size_t j = 0; j < table.columns.size(); ++j)
      cells.push_back(fmt::format("{}{}", j == best ? "* " : "",
                                  microseconds(table.columns[j].times[i].time.value)));
    rows.add(std::move(cells));
  }
  return rows;
}

// The fastest of ours for each size, the fastest first; then what stands beside them.
Table fastest_algorithms(const job::TimeTable& table, std::size_t top) {
  const std::size_t asked = table.asked();
  const std::size_t shown = std::min(top, asked);
  std::vector<Table::Column> columns = {{"size"}};
  for (std::size_t k = 0; k < shown; ++k) {
    columns.push_back({fmt::format("{}. us", k + 1)});
    columns.push_back({.title = "algorithm", .align = Align::left});
  }
  for (std::size_t j = asked; j < table.columns.size(); ++j)
    columns.push_back({table.columns[j].name + " us"});
  Table rows(std::move(columns));
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    std::vector<Seconds> times;
    for (std::size_t j = 0; j < asked; ++j) times.push_back(table.columns[j].times[i].time.value);
    std::vector<std::size_t> order = top_of(shown, times, table.best(i));
    std::ranges::stable_sort(order, {}, [&](std::size_t j) { return times[j]; });
    std::vector<std::string> cells = {to_text_binary(table.sizes[i])};
    for (std::size_t k = 0; k < shown; ++k) {
      const job::TimedColumn& column = table.columns[order[k]];
      const std::string& all_reduce = column.times[i].all_reduce;
      cells.push_back(microseconds(times[order[k]]));
      cells.push_back(all_reduce.empty() ? column.name : all_reduce);
    }
    for (std::size_t j = asked; j < table.columns.size(); ++j)
      cells.push_back(microseconds(table.columns[j].times[i].time.value));
    rows.add(std::move(cells));
  }
  return rows;
}

// Says which option is chosen from which size on: "; k=8 from 1 KiB, k=2 from 64 MiB". Empty where the name says it.
std::string choices(const job::TimeTable& table, const job::TimedColumn& column) {
  std::string text;
  std::string last;
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    std::string options = job::chosen_options(column, i);
    if (options == last) continue;
    text += fmt::format("{} {} from {}", text.empty() ? ";" : ",", options,
                        to_text_binary(table.sizes[i]));
    last = std::move(options);
  }
  return text;
}

bool is_of_all(const job::TimeOptions& options) {
  return options.algorithm == "all";
}

std::string open_options_note(const job::TimeTable& table) {
  return table.open_options.empty()
             ? ""
             : fmt::format("{}: the fastest for each size, as none is given\n",
                           fmt::join(table.open_options, ", "));
}

std::string notes(const job::TimeTable& table, const job::TimeOptions& options, std::size_t top) {
  const bool is_all = is_of_all(options);
  std::string text;
  if (is_all && top == 0) text += "times in us; * the least of ours\n";
  if (is_all && top > 0 && top < table.asked())
    text += fmt::format("not shown: {} algorithms that take longer (without --top all are shown)\n",
                        table.asked() - top);
  for (const job::TimedColumn& column : table.columns) {
    const std::string& first = column.times.front().timed_by;
    const std::string& last = column.times.back().timed_by;
    if (is_all || column.as != TimedAs::asked)
      text += fmt::format(
          "{}: {}{}{}\n", column.name, first == last ? first : "timed by " + last,
          column.is_bounded ? ", because the flow engine would take long (name it alone)" : "",
          choices(table, column));
  }
  for (const job::UntimedAlgorithm& algorithm : table.left_out)
    text += fmt::format("left out: {}: {}\n", algorithm.name, algorithm.why);
  text += open_options_note(table);
  if (!table.nccl_version.empty()) text += "NCCL's own model as it is: paceline show nccl\n";
  return text;
}

// The sizes that are calibrated, as a line; empty where there is none.
std::string calibrated_note(const job::TimeTable& table) {
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    if (table.is_calibrated(i)) sizes.push_back(to_text_binary(table.sizes[i]));
  }
  return sizes.empty() ? ""
                       : fmt::format("calibrated on --measured, not predicted: {} of {}\n",
                                     fmt::join(sizes, ", "), table.columns.front().name);
}

Table measured_beside(const job::TimeTable& table) {
  const std::vector<BesideMeasured> all = job::beside_measured(table);
  const bool has_runs =
      std::ranges::any_of(all, [](const BesideMeasured& row) { return row.measured.samples > 1; });
  std::vector<Table::Column> columns = {
      {"size"}, {"count", Align::right, 3}, {"type", Align::right, 2}, {"measured us"}};
  if (has_runs) columns.push_back({"slowest us"});
  columns.insert(columns.end(), {{"predicted us"},
                                 {"interval us", Align::right, 1},
                                 {"measured GB/s"},
                                 {"predicted GB/s"},
                                 {"share"},
                                 {"verdict", Align::left}});
  Table rows(columns);
  for (const BesideMeasured& row : all) {
    const auto bus_bandwidth = [&](Seconds time) {
      return gigabytes(
          simulator::bus_bandwidth(table.collective, table.ranks, row.measured.bytes, time));
    };
    std::vector<std::string> cells = size_cells(table, row.measured.bytes);
    cells.push_back(microseconds(row.measured.median));
    if (has_runs) cells.push_back(microseconds(row.measured.most));
    if (!row.verdict)
      cells.insert(cells.end(), {"-", "-", bus_bandwidth(row.measured.median), "-", "-"});
    else
      cells.insert(cells.end(),
                   {microseconds(row.predicted.value),
                    fmt::format("{} - {}", microseconds(row.predicted.low),
                                microseconds(row.predicted.high)),
                    bus_bandwidth(row.measured.median), bus_bandwidth(row.predicted.value),
                    fmt::format("{:.1f} %", 100 * row.share())});
    cells.emplace_back(row.verdict_text());
    rows.add(std::move(cells));
  }
  return rows;
}

// How many sizes lie where, and both mean bus bandwidths.
std::string measured_summary(const job::TimeTable& table) {
  std::vector<BesideMeasured> rows = job::beside_measured(table);
  std::erase_if(rows, [](const BesideMeasured& row) { return !row.verdict; });
  if (rows.empty()) return "every size that was measured is one that --measured calibrates on\n";
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(rows, verdict, &BesideMeasured::verdict);
  };
  const auto mean = [&](const auto& time_of) {
    double sum = 0;
    for (const BesideMeasured& row : rows)
      sum +=
          simulator::bus_bandwidth(table.collective, table.ranks, row.measured.bytes, time_of(row))
              .value();
    return gigabytes(BytesPerSecond{sum / static_cast<double>(rows.size())});
  };
  const BesideMeasured& least = *std::ranges::min_element(rows, {}, &BesideMeasured::share);
  return fmt::format(
      "{} of {} measured times inside the 90 % interval of their prediction, {} slower, {} "
      "faster\nmean bus bandwidth: {} GB/s measured, {} GB/s predicted; the least share of a "
      "predicted one: {:.1f} %, at {}\n",
      count(Verdict::inside), rows.size(), count(Verdict::slower), count(Verdict::faster),
      mean([](const BesideMeasured& row) { return row.measured.median; }),
      mean([](const BesideMeasured& row) { return row.predicted.value; }), 100 * least.share(),
      to_text_binary(least.measured.bytes));
}

// "all-reduce ring", "all-gather bruck-all-gather", "broadcast".
std::string titled(const job::TimeTable& table) {
  const std::string_view collective = name(table.collective);
  const std::string& algorithm = table.columns.front().name;
  return algorithm.starts_with(collective) ? algorithm
                                           : fmt::format("{} {}", collective, algorithm);
}

// The lines below the table that say what all of its times are.
std::string closing_text(const job::TimeTable& table, const std::string& calibrated) {
  if (table.against)
    return calibrated +
           fmt::format(
               "Predictions are of one {} with nothing else in flight; GB/s are bus bandwidths "
               "as nccl-tests defines them.\n",
               name(table.collective));
  return fmt::format(
      "{}All {}times are predicted, of one {} with nothing else in flight; {}algbw and busbw as "
      "nccl-tests defines them.\n",
      calibrated, calibrated.empty() ? "" : "other ", name(table.collective),
      simulator::is_sends_and_receives(table.collective) ? "sizes are of a rank's buffer; " : "");
}

}  // namespace

Table table_of(const job::TimeTable& table, const job::TimeOptions& options, std::size_t top) {
  if (table.against) return measured_beside(table);
  if (!is_of_all(options)) return one_algorithm(table);
  return top == 0 ? all_algorithms(table) : fastest_algorithms(table, top);
}

std::string to_text(const job::TimeTable& table, const job::TimeOptions& options, int width,
                    std::size_t top) {
  const bool is_all = is_of_all(options);
  const int nodes = models::used_nodes(table.cluster, table.ranks);
  std::string text =
      fmt::format("{} on {}: {} ranks ({} node{} of {} {}){}\n",
                  is_all ? fmt::format("every {}", name(table.collective)) : titled(table),
                  table.cluster.name, table.ranks, nodes, nodes == 1 ? "" : "s",
                  table.cluster.ranks_per_node, table.cluster.device.name,
                  table.profile ? ", profile " + table.profile->name : std::string());
  if (table.against)
    text += fmt::format("measured: {} ({}: {})\n", table.against->file, table.against->tool,
                        table.against->what);
  text += "\n";
  const Table rows = table_of(table, options, top);
  if (is_all && top == 0) {
    text += rows.blocks(width);
  } else {
    const Table::Fitted fitted = rows.fitted(width);
    text += fitted.text + fitted.not_shown();
  }
  text += "\n";
  if (table.against) {
    text += measured_summary(table);
    for (const std::string& remark : table.against->remarks)
      text += fmt::format("{}: {}\n", table.against->file, remark);
  }
  if (!is_all) text += fmt::format("timed by: {}\n", table.columns.front().times.back().timed_by);
  text += table.against ? open_options_note(table) : notes(table, options, top);
  return text + closing_text(table, calibrated_note(table));
}

}  // namespace paceline::cli
