// Tests: tests/cli/cost_test.py (end to end).
#include "cli/job/training_run.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "models/base/limits.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog_parts.h"
#include "models/phases/yaml.h"

namespace paceline::job {
namespace {

constexpr std::int64_t most_evaluated = 1'000'000'000'000;

struct GivenLength {
  const char* option;
  const std::string& text;
  models::Measure measure;
};

// What follows a value behind an @: how often it happens.
std::pair<std::string, models::Length> split_every(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {text, {1, models::Measure::epochs}};
  return {text.substr(0, at), models::parse_length(text.substr(at + 1))};
}

void require_dataset(const models::TrainingRun& run, const char* option,
                     const models::Length& length) {
  if (run.dataset || length.measure != models::Measure::epochs) return;
  throw InputError(
      "--dataset is missing",
      fmt::format("{} counts epochs: give --dataset imagenet, or the samples of an epoch", option));
}

models::Phase only_phase(const TrainingRunOptions& options, const models::TrainingRun& run) {
  const std::array<GivenLength, 3> lengths = {
      {{"--epochs", options.epochs, models::Measure::epochs},
       {"--samples", options.samples, models::Measure::samples},
       {"--iterations", options.iterations, models::Measure::iterations}}};
  models::Phase phase;
  phase.name = "phase 1";
  const char* given = nullptr;
  for (const GivenLength& length : lengths) {
    if (length.text.empty()) continue;
    if (given != nullptr)
      throw InputError({length.option}, fmt::format("there is {}, too", given),
                       "leave one of the two out");
    given = length.option;
    phase.length = {parsing_option(given, [&] { return models::parse_length_count(length.text); }),
                    length.measure};
  }
  if (given == nullptr)
    throw InputError("--epochs is missing",
                     "say how long the run is: --epochs 90 --dataset imagenet, --samples, "
                     "--iterations, or --phases FILE");
  require_dataset(run, given, phase.length);
  return phase;
}

void refuse_beside_phases(const TrainingRunOptions& options) {
  for (const auto& [option, text] :
       {std::pair<const char*, const std::string&>{"--epochs", options.epochs},
        {"--samples", options.samples},
        {"--iterations", options.iterations},
        {"--evaluate", options.evaluate},
        {"--checkpoint", options.checkpoint},
        {"--failures", options.failures},
        {"--spares", options.spares},
        {"--start-up", options.start_up}}) {
    if (!text.empty())
      throw InputError({option}, "the document of --phases says that", "leave one of the two out");
  }
}

// The value of a text, if it is one that a figure may have.
template <class Q>
Q within_range(Q value, const std::string& text) {
  if (within_limits(value)) return value;
  throw InputError(
      fmt::format("{} is out of range", in_quotes(text)),
      fmt::format("write {} to {}", to_text(Limits<Q>::least), to_text(Limits<Q>::most)));
}

Figure<Seconds> stated_time(const char* option, const std::string& text) {
  return Figure<Seconds>::exact(models::parse_run_time(text), Provenance::datasheet, option);
}

// "20s", "20s@500 iterations", "20s@best"
models::Checkpoint checkpoint(const std::string& text, bool has_failures) {
  const std::size_t at = text.find('@');
  models::Checkpoint made{stated_time("--checkpoint", text.substr(0, at))};
  if (at == std::string::npos)
    made.at_best = has_failures;
  else
    models::parse_every(text.substr(at + 1), made);
  return made;
}

// "typical", "50000h", "50000h@10min"
models::Failures failures(const std::string& text) {
  const models::CatalogFailures typical = models::catalog_failures();
  if (text == "typical") return {typical.between, typical.recovery};
  const std::size_t at = text.find('@');
  const auto between = Figure<Seconds>::exact(models::parse_device_time(text.substr(0, at)),
                                              Provenance::datasheet, "--failures");
  if (at == std::string::npos) return {between, typical.recovery};
  return {between, stated_time("--failures", text.substr(at + 1))};
}

}  // namespace

models::TrainingRun load_training_run(const TrainingRunOptions& options) {
  models::TrainingRun run;
  if (!options.dataset.empty())
    run.dataset =
        parsing_option("--dataset", [&] { return models::parse_dataset(options.dataset); });
  if (!options.phases.empty()) {
    refuse_beside_phases(options);
    return models::parse_training_yaml(read_input_file(options.phases), options.phases,
                                       run.dataset);
  }
  run.phases = {only_phase(options, run)};
  if (!options.evaluate.empty()) {
    run.evaluation = parsing_option("--evaluate", [&] {
      const auto [samples, every] = split_every(options.evaluate);
      return models::Evaluation{parse_count(samples, 1, most_evaluated), every, {}};
    });
    require_dataset(run, "--evaluate", run.evaluation->every);
  }
  if (!options.checkpoint.empty()) {
    run.checkpoint = parsing_option(
        "--checkpoint", [&] { return checkpoint(options.checkpoint, !options.failures.empty()); });
    if (run.checkpoint->at_best && options.failures.empty())
      throw InputError({"--checkpoint"}, "the best interval of no failures",
                       "add --failures typical, or say how often");
    if (!run.checkpoint->at_best) require_dataset(run, "--checkpoint", run.checkpoint->every);
  }
  if (!options.failures.empty()) {
    run.failures = parsing_option("--failures", [&] { return failures(options.failures); });
    if (!run.checkpoint)
      throw InputError("--checkpoint is missing",
                       "say how long an interrupted run waits while a checkpoint is written, as in "
                       "--checkpoint 60s");
  }
  if (!options.spares.empty())
    run.spares = static_cast<int>(parsing_option(
        "--spares", [&] { return parse_count(options.spares, 0, models::most_spares); }));
  if (!options.start_up.empty())
    run.start_up =
        parsing_option("--start-up", [&] { return stated_time("--start-up", options.start_up); });
  return run;
}

void state_expenses(const TrainingRunOptions& options, models::Cluster& cluster) {
  const std::string& price = options.node_price;
  if (!price.empty()) {
    cluster.price = parsing_option("--node-price", [&] {
      if (price.front() >= 'a' && price.front() <= 'z') return models::catalog_price(price);
      return Figure<UsdPerHour>::exact(within_range(parse_price(price), price),
                                       Provenance::datasheet, "--node-price");
    });
  }
  if (!options.node_power.empty()) {
    cluster.power.node = parsing_option("--node-power", [&] {
      return Figure<Watts>::exact(within_range(parse_power(options.node_power), options.node_power),
                                  Provenance::datasheet, "--node-power");
    });
  }
}

}  // namespace paceline::job
