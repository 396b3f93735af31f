// paceline reproduce convergence: the papers' claims about convergence, trained at our scale.
#include "cli/reproduce_convergence.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/table.h"
#include "experiments/convergence/convergence.h"
#include "experiments/convergence/convergence_json.h"
#include "models/base/json_records.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

using experiments::ClaimOutcome;
using experiments::ConvergenceRun;

std::string percent(const experiments::Spread& s) {
  return fmt::format("{:.2f} ± {:.2f} %", 100 * s.mean, 100 * s.deviation);
}

void append(const std::string& path, const std::string& line) {
  std::FILE* file = std::fopen(path.c_str(), "a");
  const bool whole =
      file != nullptr && std::fwrite(line.data(), 1, line.size(), file) == line.size();
  if (file == nullptr || std::fclose(file) != 0 || !whole)
    throw RunError("write " + path, std::strerror(errno));
}

Table arms_table(const std::vector<ConvergenceRun>& runs,
                 const std::vector<experiments::Arm>& arms) {
  Table table(
      {{"arm", Align::left}, {"runs"}, {"test accuracy"}, {"skipped"}, {"what", Align::left}});
  for (const experiments::Arm& arm : arms) {
    const experiments::Spread s = experiments::spread(runs, arm.name);
    if (s.runs == 0) continue;
    std::int64_t skipped = 0;
    for (const ConvergenceRun& run : runs) skipped += run.arm == arm.name ? run.skipped : 0;
    table.add(
        {arm.name, fmt::format("{}", s.runs), percent(s), fmt::format("{}", skipped), arm.what});
  }
  return table;
}

Table claims_table(const std::vector<ConvergenceRun>& runs) {
  Table claims({{"published", Align::left},
                {"", Align::left},
                {"arm", Align::left},
                {"against", Align::left},
                {"difference"},
                {"2 s.e."},
                {"", Align::left}});
  for (const ClaimOutcome& o : experiments::outcomes(runs)) {
    claims.add({std::string(o.claim->source), std::string(o.claim->statement),
                std::string(o.claim->arm), std::string(o.claim->against),
                fmt::format("{:+.2f}", 100 * o.difference), fmt::format("{:.2f}", 100 * o.noise),
                std::string(experiments::verdict(o))});
  }
  return claims;
}

std::string to_text(const std::vector<ConvergenceRun>& runs,
                    const std::vector<experiments::Arm>& arms) {
  return "resnet-small on Fashion-MNIST, 2 ranks; test accuracy in % as mean ± deviation over "
         "seeds; all measured\n\n" +
         arms_table(runs, arms).text() + "\n" + claims_table(runs).text();
}

}  // namespace

void add_convergence_options(Command& command, ConvergenceOptions& options) {
  command
      .add_option("--seeds", options.seeds,
                  "For convergence: runs of each arm, each with a seed of its own")
      .value("N (3)");
  command.add_option("--epochs", options.epochs, "For convergence: passes over the training set")
      .value("N (2)");
  command
      .add_option("--arms", options.arms, "For convergence: arms by commas, or all (the default)")
      .value("NAME,...");
  command
      .add_option(
          "--results", options.results,
          "For convergence: a file of runs as JSON lines; those that it holds are not made again")
      .value("FILE");
}

void reproduce_convergence(const ConvergenceOptions& options, const OutputFormat& format) {
  experiments::ConvergenceSetting setting;
  setting.epochs =
      job::parsing_option("--epochs", [&] { return parse_number(options.epochs, 1e-3, 1e4); });
  const auto seeds =
      job::parsing_option("--seeds", [&] { return parse_count(options.seeds, 0, 1000); });
  const std::vector<experiments::Arm> arms = experiments::convergence_arms(setting);
  std::vector<std::string> chosen;
  for (const experiments::Arm& arm : arms) chosen.push_back(arm.name);
  if (options.arms != "all") {
    const std::vector<std::string> names =
        job::parsing_option("--arms", [&] { return job::comma_list(options.arms); });
    for (const std::string& name : names) {
      if (std::ranges::find(chosen, name) == chosen.end())
        throw unknown_name("arm", name, chosen).at({"--arms"});
    }
    chosen = names;
  }
  std::vector<ConvergenceRun> runs;
  if (!options.results.empty() && std::filesystem::exists(options.results)) {
    for (ConvergenceRun& run :
         experiments::parse_runs(job::read_input_file(options.results), options.results)) {
      if (run.epochs == setting.epochs) runs.push_back(std::move(run));
    }
  }
  // All arms of a seed come before the next seed: what is cut short has as many runs of each arm.
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(seeds); ++seed) {
    for (const experiments::Arm& arm : arms) {
      const bool wanted = std::ranges::find(chosen, arm.name) != chosen.end();
      const bool done = std::ranges::any_of(
          runs, [&](const ConvergenceRun& run) { return run.arm == arm.name && run.seed == seed; });
      if (!wanted || done) continue;
      notice("{}, seed {} of {}: ", arm.name, seed, seeds);
      runs.push_back(experiments::run_arm(arm, seed, setting));
      const ConvergenceRun& run = runs.back();
      notice("{:.2f} %, {:.0f} images/s\n", 100 * run.test_accuracy, run.images_per_s);
      if (!options.results.empty()) append(options.results, experiments::to_json_line(run));
    }
  }
  print_answer(format,
               {.document = [&] { return experiments::convergence_document().json(runs); },
                .records = {{"runs"}},
                .markdown =
                    [&] {
                      return to_markdown(std::vector{arms_table(runs, arms), claims_table(runs)});
                    },
                .text = [&](int) { return to_text(runs, arms); }});
}

}  // namespace paceline::cli
