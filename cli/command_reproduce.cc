// paceline reproduce: a published result, ours beside theirs.
#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/reproduce_convergence.h"
#include "cli/reproduction_text.h"
#include "cli/table.h"
#include "experiments/published/plot.h"
#include "experiments/published/source.h"
#include "experiments/reproduction.h"
#include "experiments/reproduction_json.h"
#include "models/base/error.h"
#include "models/base/json_records.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

// The name of the reproduction that trains. It takes half an hour, and is no entry of
// experiments().
constexpr std::string_view convergence_name = "convergence";

// The name that stands for all published results but convergence.
constexpr std::string_view all_name = "all";

struct Options {
  std::string name;
  std::string profile_out;
  ConvergenceOptions convergence;
  std::string plot;
  std::string html;
  std::string points;
  bool leave_one_out = false;
  bool mechanisms = false;
  bool commands = false;
  OutputFormat format;
};

// Every name that may be given.
std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const experiments::Experiment& entry : experiments::experiments())
    names.push_back(entry.name);
  names.emplace_back(all_name);
  names.emplace_back(convergence_name);
  return names;
}

int threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

experiments::CalibrationPoints points_of(const Options& options) {
  if (options.points.empty() || options.points == "2") return experiments::CalibrationPoints::two;
  if (options.points == "0") return experiments::CalibrationPoints::none;
  if (options.points == "1") return experiments::CalibrationPoints::one;
  throw InputError({"--points"},
                   fmt::format("{} is no number of points", in_quotes(options.points)),
                   "write 0, 1 or 2");
}

experiments::PredictOptions predict_options(const Options& options, experiments::Faults faults) {
  return {.faults = faults, .threads = threads(), .points = points_of(options)};
}

// One source: that of a folder of the user, whose faults are errors, or of the program.
experiments::Reproduction reproduced(const Options& options) {
  const std::string& name = options.name;
  Progress progress(fmt::format("predicting the rows of {}", name));
  if (job::names_a_file(name)) {
    const experiments::Source source =
        experiments::read_source(experiments::source_files(name, job::read_input_file));
    return experiments::predict_source(source,
                                       predict_options(options, experiments::Faults::are_errors));
  }
  return experiments::reproduce(name, predict_options(options, experiments::Faults::are_listed));
}

experiments::LeftOneOut all_reproduced(const Options& chosen) {
  Progress progress;
  const auto show = [&](const std::string& name, double share) {
    progress.show(fmt::format("predicting the rows of {}", name), share);
  };
  const experiments::PredictOptions options =
      predict_options(chosen, experiments::Faults::are_listed);
  if (chosen.leave_one_out) return experiments::reproduce_leaving_one_out(options, show);
  return {.sources = experiments::reproduce_all(options, show), .of_all = {}};
}

// What the options ask for: all sources, or one. Leaving one out needs the others.
experiments::LeftOneOut results_of(const Options& options) {
  if (options.name != all_name && !options.leave_one_out)
    return {.sources = {reproduced(options)}, .of_all = {}};
  if (job::names_a_file(options.name))
    throw InputError({"--leave-one-out"}, "a folder of yours is no source that priors come from",
                     "leave it out");
  experiments::LeftOneOut results = all_reproduced(options);
  if (options.name != all_name)
    std::erase_if(results.sources, [&](const auto& result) { return result.name != options.name; });
  return results;
}

std::string all_text(const experiments::LeftOneOut& results, const Options& options) {
  std::string text = summary_text(results.sources, table_width());
  if (options.leave_one_out)
    text +=
        fmt::format("what nothing explains is fitted to the other sources; to all of them: {}\n",
                    experiments::to_text(results.of_all));
  return wrapped(text, table_width());
}

void print_results(const experiments::LeftOneOut& results, const Options& options) {
  if (options.commands) {
    print("{}", commands_text(results.sources));
  } else if (options.name == all_name) {
    print_answer(
        options.format,
        {.document = [&] { return experiments::reproductions_document().json(results.sources); },
         .records = {{"sources", "rows"}, {"name"}},
         .markdown = [&] { return summary_table(results.sources).markdown(); },
         .text = [&](int) { return all_text(results, options); }});
  } else {
    const experiments::Reproduction& only = results.sources.front();
    print_answer(
        options.format,
        {.document = [&] { return experiments::reproduction_document().json(only); },
         .records = {{"rows"}, {"name"}},
         .markdown = [&] { return rows_table(only).markdown(); },
         .text = [&](int) { return wrapped(to_text(only, table_width()), table_width()); }});
  }
}

// All sources, and all of them without each mechanism.
void print_mechanisms(const Options& options) {
  if (options.name != all_name)
    throw InputError({"--mechanisms"}, "mechanisms are shown by what they change for all sources",
                     "write paceline reproduce all --mechanisms");
  Progress progress;
  const experiments::PredictOptions predict =
      predict_options(options, experiments::Faults::are_listed);
  const std::vector<experiments::Reproduction> with =
      experiments::reproduce_all(predict, [&](const std::string& name, double) {
        progress.show(fmt::format("with every mechanism: predicting the rows of {}", name), 0);
      });
  const std::vector<experiments::Without> without = experiments::reproduce_without_each(
      predict, [&](const std::string& name, double share) { progress.show(name, share); });
  progress.end();
  print_answer(options.format,
               {.document =
                    [&] {
                      return experiments::mechanisms_document().json({with, without});
                    },
                .csv =
                    [&] {
                      return experiments::to_csv({with, without});
                    },
                .markdown =
                    [&] {
                      return to_markdown(std::vector{mechanisms_table(with, without),
                                                     mechanisms_of_sources(with, without)});
                    },
                .text =
                    [&](int) {
                      return wrapped(mechanisms_text(with, without, table_width()), table_width());
                    }});
}

void run(const Options& options, const Words& words) {
  check_output_format(
      options.format,
      {job::output_path("--profile-out", options.profile_out, job::FileKind::profile),
       job::output_path("--plot", options.plot, job::FileKind::picture),
       job::output_path("--html", options.html, job::FileKind::report),
       job::output_path("--results", options.convergence.results, job::FileKind::unchecked)});
  if (options.commands)
    refuse_output_format(options.format, "--commands prints command lines in place of a table");
  if (!options.html.empty() && (options.name == convergence_name || options.mechanisms))
    throw InputError({"--html"}, "a report shows published rows and their predictions",
                     options.mechanisms ? "leave out --mechanisms" : "name a source, or all");
  if (options.name == convergence_name)
    return reproduce_convergence(options.convergence, options.format);
  if (!job::names_a_file(options.name)) {
    const std::vector<std::string> names = known_names();
    if (std::find(names.begin(), names.end(), options.name) == names.end())
      throw unknown_name("experiment", options.name, names);
  }
  if (options.mechanisms) return print_mechanisms(options);
  const experiments::LeftOneOut results = results_of(options);
  if (!options.profile_out.empty()) {
    const std::optional<models::Profile> profile = experiments::fitted_profile(options.name);
    if (!profile)
      throw InputError({"--profile-out"}, fmt::format("no profile is fitted to {}", options.name),
                       "that of jizhi ships");
    job::write_output_file(options.profile_out, models::to_json(*profile));
  }
  if (!options.plot.empty())
    job::write_output_file(options.plot, experiments::published_svg(results.sources));
  if (!options.html.empty()) {
    const experiments::Reproduction& first = results.sources.front();
    const bool is_all = options.name == all_name;
    write_report(options.html, words, is_all ? "All published results" : first.title,
                 {{"result", is_all ? experiments::reproductions_document().text(results.sources)
                                    : experiments::reproduction_document().text(first)}});
  }
  print_results(results, options);
}

}  // namespace

void add_reproduce(Command& app) {
  Command& command = app.add_command("reproduce", "A published result: ours beside theirs");
  const auto options = std::make_shared<Options>();
  std::string list;
  for (const experiments::Experiment& entry : experiments::experiments())
    list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", entry.name, entry.summary);
  list +=
      "; all: a line for each of these; FOLDER: a folder of yours with expected.csv; convergence: "
      "what the papers say of mixed precision, LARS, weight decay and double buffering, trained at "
      "our scale (half an hour on two cores)";
  command.add_option("name", options->name, list).required().value("NAME|all|FOLDER");
  command
      .add_option(
          "--points", options->points,
          "How many scales of a series calibrate it: none, the smallest, or the two smallest "
          "where its table names a row of the second")
      .value("0|1|2 (2)");
  command.add_flag("--leave-one-out", options->leave_one_out,
                   "Fit what nothing explains to other sources than the one that is predicted, in "
                   "place of the shipped fit to all of them");
  command.add_flag("--mechanisms", options->mechanisms,
                   "Of all sources: what becomes of them without each mechanism of the model");
  command
      .add_option("--plot", options->plot, "Write predicted over published values as a plot (SVG)")
      .value("FILE");
  command.add_flag("--commands", options->commands,
                   "Print the paceline command of each row in place of its prediction");
  command
      .add_option("--profile-out", options->profile_out,
                  "Write the profile that ships and is fitted to rows of jizhi (JSON)")
      .value("FILE");
  add_convergence_options(command, options->convergence);
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
