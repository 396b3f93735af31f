// paceline time: how long one all-reduce takes, size by size, as nccl-tests prints it.
#include <fmt/core.h>

#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/time_table.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/time_text.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::cli {
namespace {

struct Options {
  job::TimeOptions time;
  std::string html;
  std::string fail_below;
  bool wide = false;
  std::string top;
  OutputFormat format;
};

// Shares of the predicted bandwidth that --fail-below takes.
constexpr double least_share = 1e-3;
constexpr double most_share = 1;

// Throws RunError where what was measured falls behind the limit.
void judge(const job::TimeTable& table, const job::DeviationLimit& limit) {
  const std::optional<job::BesideMeasured> row = farthest_behind(table, limit);
  if (!row) return;
  const auto gigabytes = [&](Seconds time) {
    return simulator::bus_bandwidth(table.collective, table.ranks, row->measured.bytes, time)
               .value() /
           1e9;
  };
  const std::string found =
      fmt::format("{} of {} has {:.4g} GB/s", table.against->file,
                  to_text_binary(row->measured.bytes), gigabytes(row->measured.most));
  if (!limit.share)
    throw RunError("reach the interval of the predicted bus bandwidth",
                   fmt::format("{}, less than {:.4g} to {:.4g} GB/s", found,
                               gigabytes(row->predicted.high), gigabytes(row->predicted.low)));
  throw RunError(fmt::format("reach {:.4g} % of the predicted bus bandwidth", 100 * *limit.share),
                 fmt::format("{}, {:.1f} % of {:.4g} GB/s", found, 100 * row->share(),
                             gigabytes(row->predicted.value)));
}

void run(const Options& options, const Words& words) {
  check_output_format(options.format,
                      {job::output_path("--html", options.html, job::FileKind::report),
                       {"--cluster", options.time.cluster, job::PathUse::name_or_input},
                       {"--placement", options.time.placement, job::PathUse::name_or_input},
                       {"--profile", options.time.profile, job::PathUse::name_or_input},
                       {"--against", options.time.against, job::PathUse::input}});
  const std::size_t top = parse_top(options.top);
  if (top > 0 && options.time.algorithm != "all")
    throw InputError({"--top"}, "one algorithm is timed", "time all, or leave it out");
  const std::optional<job::DeviationLimit> limit =
      job::parse_deviation_limit("--fail-below", options.fail_below, least_share, most_share);
  if (limit && options.time.against.empty())
    throw InputError({"--fail-below"}, "nothing that was measured is given to judge",
                     "add --against FILE");
  Progress progress;
  const job::TimeTable table =
      job::time_table(options.time, [&](std::string_view algorithm, double share) {
        progress.show(fmt::format("timing {}", algorithm), share);
      });
  progress.end();
  if (!options.html.empty())
    write_report(
        options.html, words,
        fmt::format("{} on {}, {} ranks", name(table.collective), table.cluster.name, table.ranks),
        {{"result", job::time_document().text(table)}});
  print_answer(options.format,
               {.document = [&] { return job::time_document().json(table); },
                .csv = [&] { return to_csv(table); },
                .markdown = [&] { return table_of(table, options.time, top).markdown(); },
                .text = [&](int width) { return to_text(table, options.time, width, top); },
                .wide = options.wide});
  if (!limit) return;
  flush_output();
  judge(table, *limit);
}

}  // namespace

void add_time(Command& app) {
  Command& command = app.add_command(
      "time", "How long one collective takes, size by size: a table like that of nccl-tests");
  command.example("paceline time nccl --cluster h200-ndr --ranks 64");
  command.example("paceline time nccl --collective all-gather --cluster h200-ndr --ranks 64");
  const auto options = std::make_shared<Options>();
  add_time_options(command, options->time);
  command
      .add_option(
          "--fail-below", options->fail_below,
          "With --against: exit with 1 where a measured bus bandwidth is below this share of "
          "the predicted one, or slower than the interval of the prediction")
      .value("SHARE|interval");
  add_wide_option(command, options->wide);
  add_top_option(command, options->top,
                 "With all: print the N fastest algorithms of each size, the fastest first; --json "
                 "and --csv have all");
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
