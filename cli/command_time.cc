// paceline time: how long one all-reduce takes, size by size, as nccl-tests prints it.
#include <fmt/core.h>
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/time_table.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::cli {
namespace {

struct Options {
  job::TimeOptions time;
  std::string html;
  bool wide = false;
  OutputFormat format;
};

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
  const bool by_nccl = simulator::nccl_all_reduce(table.columns.front().name).has_value();
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    const Bytes size = table.sizes[i];
    const simulator::AllReduceTime& at = asked.times[i];
    std::vector<std::string> cells = size_cells(table, size);
    cells.insert(
        cells.end(),
        {microseconds(at.time.value), gigabytes(job::algorithm_bandwidth(size, at.time.value)),
         gigabytes(simulator::bus_bandwidth(table.ranks, size, at.time.value)),
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

// What is chosen for which sizes: "; k=8 from 1 KiB, k=2 from 64 MiB". Empty where the name says it.
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

std::string notes(const job::TimeTable& table, const Options& options) {
  const bool is_all = options.time.algorithm == "all";
  std::string text;
  if (is_all) text += "times in us; * the least of ours\n";
  for (const job::TimedColumn& column : table.columns) {
    const std::string& first = column.times.front().timed_by;
    const std::string& last = column.times.back().timed_by;
    if (is_all || column.as != job::TimedAs::asked)
      text += fmt::format(
          "{}: {}{}{}\n", column.name, first == last ? first : "timed by " + last,
          column.is_hasty ? ", for the flow engine would take long (name it alone)" : "",
          choices(table, column));
  }
  for (const job::UntimedAlgorithm& algorithm : table.left_out)
    text += fmt::format("left out: {}: {}\n", algorithm.name, algorithm.why);
  if (!table.open_options.empty())
    text += fmt::format("{}: the fastest for each size, as none is given\n",
                        fmt::join(table.open_options, ", "));
  if (!table.nccl_version.empty()) text += "NCCL's own model as it is: paceline show nccl\n";
  return text +
         "All times are predicted, of one all-reduce with nothing else in flight; algbw and busbw "
         "as nccl-tests defines them.\n";
}

std::string to_text(const job::TimeTable& table, const Options& options, int width) {
  const bool is_all = options.time.algorithm == "all";
  const int nodes = (table.ranks - 1) / table.cluster.ranks_per_node + 1;
  std::string text =
      fmt::format("{} on {}: {} ranks ({} node{} of {} {}){}\n\n",
                  is_all ? "every all-reduce" : "all-reduce " + table.columns.front().name,
                  table.cluster.name, table.ranks, nodes, nodes == 1 ? "" : "s",
                  table.cluster.ranks_per_node, table.cluster.device.name,
                  table.profile ? ", profile " + table.profile->name : std::string());
  if (is_all) {
    text += all_algorithms(table).blocks(width);
  } else {
    const Table::Fitted rows = one_algorithm(table).fitted(width);
    text += rows.text;
    text += rows.not_shown();
    text += fmt::format("\ntimed by: {}\n", table.columns.front().times.back().timed_by);
  }
  return text + (is_all ? "\n" : "") + notes(table, options);
}

void run(const Options& options, const Words& words) {
  check_output_format(options.format);
  job::check_paths({{"--html", options.html, job::PathUse::output},
                    {"--cluster", options.time.cluster, job::PathUse::name_or_input},
                    {"--profile", options.time.profile, job::PathUse::name_or_input}});
  Progress progress;
  const job::TimeTable table =
      job::time_table(options.time, [&](std::string_view algorithm, double share) {
        progress.show(fmt::format("timing {}", algorithm), share);
      });
  progress.end();
  if (!options.html.empty())
    write_report(options.html, words,
                 fmt::format("all-reduces on {}, {} ranks", table.cluster.name, table.ranks),
                 {{"result", to_json(table)}});
  print_answer(
      options.format,
      {.json = [&] { return to_json(table); },
       .csv = [&] { return to_csv(table); },
       .markdown =
           [&] {
             return (options.time.algorithm == "all" ? all_algorithms(table) : one_algorithm(table))
                 .markdown();
           },
       .text =
           [&] {
             const int width = options.wide ? unlimited_width : table_width();
             return wrapped(to_text(table, options, width),
                            output_is_terminal() ? width : unlimited_width);
           }});
}

}  // namespace

void add_time(Command& app) {
  Command& command = app.add_command(
      "time", "How long one all-reduce takes, size by size: a table like that of nccl-tests");
  const auto options = std::make_shared<Options>();
  add_time_options(command, options->time);
  add_wide_option(command, options->wide);
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
