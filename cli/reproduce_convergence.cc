// paceline reproduce convergence: the papers' claims about convergence, trained at our scale.
#include "cli/reproduce_convergence.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/job.h"
#include "cli/table.h"
#include "experiments/convergence/convergence.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

using experiments::ClaimOutcome;
using experiments::ConvergenceRun;
using Json = nlohmann::ordered_json;

std::string percent(const experiments::Spread& s) {
  return fmt::format("{:.2f} ± {:.2f} %", 100 * s.mean, 100 * s.deviation);
}

const char* verdict(const ClaimOutcome& outcome) {
  if (outcome.arm.runs < 2 || outcome.against.runs < 2) return "one run says nothing";
  if (std::abs(outcome.difference) <= outcome.noise) return "within the noise";
  return outcome.difference > 0 ? "better" : "worse";
}

void append(const std::string& path, const std::string& line) {
  std::FILE* file = std::fopen(path.c_str(), "a");
  const bool whole =
      file != nullptr && std::fwrite(line.data(), 1, line.size(), file) == line.size();
  if (file == nullptr || std::fclose(file) != 0 || !whole)
    throw RunError("write " + path, std::strerror(errno));
}

std::string to_text(const std::vector<ConvergenceRun>& runs,
                    const std::vector<experiments::Arm>& arms) {
  std::string text =
      "resnet-small on Fashion-MNIST, 2 ranks; test accuracy in % as mean ± deviation over seeds; "
      "all measured\n\n";
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
  text += table.text() + "\n";
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
                verdict(o)});
  }
  return text + claims.text();
}

Json to_json(const std::vector<ConvergenceRun>& runs) {
  Json claims = Json::array();
  for (const ClaimOutcome& o : experiments::outcomes(runs)) {
    claims.push_back({{"source", o.claim->source},
                      {"statement", o.claim->statement},
                      {"arm", o.claim->arm},
                      {"against", o.claim->against},
                      {"arm_mean", o.arm.mean},
                      {"arm_deviation", o.arm.deviation},
                      {"arm_runs", o.arm.runs},
                      {"against_mean", o.against.mean},
                      {"against_deviation", o.against.deviation},
                      {"against_runs", o.against.runs},
                      {"difference", o.difference},
                      {"two_standard_errors", o.noise},
                      {"verdict", verdict(o)},
                      {"provenance", "measured"}});
  }
  Json all = Json::array();
  for (const ConvergenceRun& run : runs) all.push_back(Json::parse(experiments::to_json_line(run)));
  return {{"schema", "paceline.convergence/1"}, {"claims", claims}, {"runs", all}};
}

}  // namespace

void add_convergence_options(Command& command, ConvergenceOptions& options) {
  command.add_option("--seeds", options.seeds, "Of convergence: runs of each arm").value("N (3)");
  command.add_option("--epochs", options.epochs, "Of convergence: passes over the training set")
      .value("N (2)");
  command.add_option("--arms", options.arms, "Of convergence: arms by commas, or all (the default)")
      .value("NAME,...");
  command
      .add_option("--results", options.results,
                  "Of convergence: runs as JSON lines; those that it holds are not made again")
      .value("FILE");
}

void reproduce_convergence(const ConvergenceOptions& options, bool json) {
  experiments::ConvergenceSetting setting;
  setting.epochs =
      parsing_option("--epochs", [&] { return parse_number(options.epochs, 1e-3, 1e4); });
  const auto seeds = parsing_option("--seeds", [&] { return parse_count(options.seeds, 0, 1000); });
  const std::vector<experiments::Arm> arms = experiments::convergence_arms(setting);
  std::vector<std::string> chosen;
  for (const experiments::Arm& arm : arms) chosen.push_back(arm.name);
  if (options.arms != "all") {
    const std::vector<std::string> names =
        parsing_option("--arms", [&] { return comma_list(options.arms); });
    for (const std::string& name : names) {
      if (std::ranges::find(chosen, name) == chosen.end())
        throw unknown_name("arm", name, chosen).at({"--arms"});
    }
    chosen = names;
  }
  if (!options.results.empty()) check_output_path("--results", options.results);
  std::vector<ConvergenceRun> runs;
  if (!options.results.empty() && std::filesystem::exists(options.results)) {
    for (ConvergenceRun& run :
         experiments::parse_runs(read_input_file(options.results), options.results)) {
      if (run.epochs == setting.epochs) runs.push_back(std::move(run));
    }
  }
  // Seed by seed, so that a run that is cut short has as much of each arm.
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(seeds); ++seed) {
    for (const experiments::Arm& arm : arms) {
      const bool wanted = std::ranges::find(chosen, arm.name) != chosen.end();
      const bool done = std::ranges::any_of(
          runs, [&](const ConvergenceRun& run) { return run.arm == arm.name && run.seed == seed; });
      if (!wanted || done) continue;
      fmt::print(stderr, "{}, seed {} of {}: ", arm.name, seed, seeds);
      std::fflush(stderr);
      runs.push_back(experiments::run_arm(arm, seed, setting));
      const ConvergenceRun& run = runs.back();
      fmt::print(stderr, "{:.2f} %, {:.0f} images/s\n", 100 * run.test_accuracy, run.images_per_s);
      if (!options.results.empty()) append(options.results, experiments::to_json_line(run));
    }
  }
  fmt::print("{}", json ? to_json(runs).dump(2) + "\n" : to_text(runs, arms));
}

}  // namespace paceline::cli
