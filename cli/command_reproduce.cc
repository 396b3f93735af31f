// paceline reproduce: a published result, ours beside theirs.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "calibration/fit/statistics.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/reproduce_convergence.h"
#include "cli/table.h"
#include "experiments/reproduction.h"
#include "experiments/reproduction_json.h"
#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

// The name of the reproduction that trains. It takes half an hour, and is no entry of
// experiments().
constexpr std::string_view convergence_name = "convergence";

struct Options {
  std::string name;
  std::string profile_out;
  ConvergenceOptions convergence;
  bool json = false;
};

std::string with_unit(double value, const std::string& unit) {
  return fmt::format("{:.4g} {}", value, unit);
}

std::string to_text(const experiments::Reproduction& result, int width) {
  std::string text = result.title + "\n\n";
  Table table({{.title = "source", .align = Align::left},
               {.title = "what", .align = Align::left, .wraps = true},
               {.title = "", .align = Align::left},
               {.title = "published"},
               {.title = "ours"},
               {.title = "error"}});
  std::vector<double> errors;  // of the predicted rows
  for (const experiments::Row& row : result.rows) {
    const double error = row.relative_error();
    table.add({row.source, row.what, std::string(name(row.provenance)),
               with_unit(row.published, row.unit), with_unit(row.ours, row.unit),
               signed_percent(error)});
    if (row.provenance == Provenance::predicted) errors.push_back(std::abs(error));
  }
  text += table.fitted(width).text;
  if (!errors.empty()) {
    const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
    text += fmt::format(
        "\n{} predicted rows: absolute error median {:.1f} %, mean {:.1f} %, worst {:.1f} %\n",
        errors.size(), 100 * calibration::median(errors),
        100 * sum / static_cast<double>(errors.size()), 100 * *std::ranges::max_element(errors));
  }
  text += "\nHow ours was made:\n";
  for (const experiments::Row& row : result.rows)
    text += fmt::format("  {}: {}\n", row.what, row.configuration);
  bool any = false;
  for (const experiments::Row& row : result.rows) {
    if (row.note.empty()) continue;
    if (!any) text += "\nWhy some are off:\n";
    any = true;
    text +=
        fmt::format("  {} ({}): {}\n", row.what, signed_percent(row.relative_error()), row.note);
  }
  for (const std::string& note : result.notes) text += "\n" + note + "\n";
  return text;
}

// The experiment of that name. Throws InputError that suggests the nearest name, of the
// reproduction that trains, too.
const experiments::Experiment& experiment_named(const std::string& name) {
  std::vector<std::string> names;
  for (const experiments::Experiment& entry : experiments::experiments()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  names.emplace_back(convergence_name);
  throw unknown_name("experiment", name, names);
}

void run(const Options& options) {
  if (options.name == convergence_name)
    return reproduce_convergence(options.convergence, options.json);
  const experiments::Experiment& experiment = experiment_named(options.name);
  Progress progress(fmt::format("predicting the rows of {}", experiment.name));
  const experiments::Reproduction result = experiment.reproduce();
  progress.end();
  if (!options.profile_out.empty()) {
    if (!result.profile)
      throw InputError({"--profile-out"}, fmt::format("{} calibrates nothing", options.name), "");
    job::write_output_file(options.profile_out, models::to_json(*result.profile));
  }
  print("{}", options.json ? experiments::to_json(result) + "\n"
                           : wrapped(to_text(result, table_width()), table_width()));
}

}  // namespace

void add_reproduce(Command& app) {
  Command& command = app.add_command("reproduce", "A published result: ours beside theirs");
  const auto options = std::make_shared<Options>();
  std::string list;
  for (const experiments::Experiment& entry : experiments::experiments())
    list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", entry.name, entry.summary);
  list +=
      "; convergence: what the papers say of mixed precision, LARS, weight decay and double "
      "buffering, trained at our scale (half an hour on two cores)";
  command.add_option("name", options->name, list).required().value("NAME");
  command
      .add_option("--profile-out", options->profile_out,
                  "Write what was calibrated as a profile (JSON)")
      .value("FILE");
  add_convergence_options(command, options->convergence);
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
