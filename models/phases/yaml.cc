// Tests: tests/models/phases_test.cc.
#include "models/phases/yaml.h"

#include <fmt/core.h>

#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/yaml_reader.h"
#include "models/cluster/figure_reader.h"

namespace paceline::models {
namespace {

constexpr int most_phases = 1000;
constexpr int most_batch = 1 << 20;
constexpr int most_sequence = 1 << 24;
constexpr int most_accumulated = 1 << 16;
constexpr std::int64_t most_evaluated = 1'000'000'000'000;

// Figures of long times are read as numbers of seconds: the limits of times are those of messages.
Figure<Seconds> read_run_time(const YamlMap& map, const char* key,
                              Seconds (*parse)(std::string_view) = parse_run_time) {
  const Figure<double> read = read_figure(
      map, key, {}, [parse](const std::string& text) { return parse(text).value(); },
      Zero::allowed);
  return {Seconds{read.value}, Seconds{read.low}, Seconds{read.high}, read.provenance, read.source};
}

std::optional<int> optional_number(const YamlMap& map, const char* key, int most) {
  if (!map.has(key)) return std::nullopt;
  return read_count(map, key, most);
}

// Epochs have samples only where a data set says how many.
void check_epochs(const Length& length, bool has_dataset, const InputPlace& place) {
  if (has_dataset || length.measure != Measure::epochs) return;
  throw InputError(place, fmt::format("{}, and no data set", to_text(length)),
                   "add dataset: imagenet, or the samples of an epoch (--dataset)");
}

Length read_length(const YamlMap& phase, bool has_dataset) {
  std::optional<Length> length;
  for (const auto& [measure, key] : measures) {
    const std::string text(key);
    if (!phase.has(text)) continue;
    if (length)
      throw InputError(phase.place_of_key(text),
                       fmt::format("a phase of {} and of {}", name(length->measure), text),
                       "leave one of the two out");
    length = Length{phase.parsed(text, [](const std::string& s) { return parse_length_count(s); }),
                    measure};
    check_epochs(*length, has_dataset, phase.place_of_key(text));
  }
  if (!length)
    throw InputError(phase.place(), "a phase without a length",
                     "add epochs, samples or iterations");
  return *length;
}

Phase read_phase(const YAML::Node& node, const std::string& file, std::size_t index,
                 bool has_dataset) {
  const YamlMap map(node, file, "a phase",
                    {"name", "epochs", "samples", "iterations", "batch", "sequence", "accumulate",
                     "precision", "throughput"});
  Phase phase;
  phase.name =
      map.has("name") ? checked_name(map, "name", "phase") : fmt::format("phase {}", index + 1);
  phase.place = map.place();
  phase.length = read_length(map, has_dataset);
  phase.batch = optional_number(map, "batch", most_batch);
  phase.sequence = optional_number(map, "sequence", most_sequence);
  phase.accumulate = optional_number(map, "accumulate", most_accumulated);
  if (map.has("precision"))
    phase.precision =
        map.parsed("precision", [](const std::string& text) { return precision_from_name(text); });
  if (map.has("throughput"))
    phase.throughput = map.parsed("throughput", [](const std::string& text) {
      const PerSecond rate = parse_rate(text);
      if (!within_limits(rate))
        throw InputError(fmt::format("{} is out of range", in_quotes(text)),
                         "write 0.001 to 1e9 samples/s");
      return rate;
    });
  return phase;
}

std::vector<Phase> read_phases(const YamlMap& map, bool has_dataset) {
  const YAML::Node list = map.at("phases");
  if (!list.IsSequence() || list.size() == 0 || list.size() > most_phases)
    throw InputError(map.place_of_key("phases"),
                     fmt::format("phases is no list of 1 to {} phases", most_phases),
                     "write - {epochs: 90} for each, on a line of its own");
  std::vector<Phase> phases;
  for (std::size_t i = 0; i < list.size(); ++i)
    phases.push_back(read_phase(list[i], map.file(), i, has_dataset));
  return phases;
}

void read_every(const YamlMap& map, bool has_dataset, Length& every) {
  if (map.has("every"))
    every = map.parsed("every", [](const std::string& text) { return parse_length(text); });
  check_epochs(every, has_dataset, map.has("every") ? map.place_of_key("every") : map.place());
}

Evaluation read_evaluation(const YamlMap& map, bool has_dataset) {
  const YamlMap keys(map.at("evaluation"), map.file(), "evaluation", {"samples", "every", "batch"});
  Evaluation evaluation;
  evaluation.samples = keys.parsed(
      "samples", [](const std::string& text) { return parse_count(text, 1, most_evaluated); });
  evaluation.batch = optional_number(keys, "batch", most_batch);
  read_every(keys, has_dataset, evaluation.every);
  return evaluation;
}

Checkpoint read_checkpoint(const YamlMap& map, bool has_dataset) {
  const YamlMap keys(map.at("checkpoint"), map.file(), "checkpoint", {"time", "every"});
  Checkpoint checkpoint;
  checkpoint.time = read_run_time(keys, "time");
  if (keys.has("every"))
    keys.parsed("every", [&](const std::string& text) {
      parse_every(text, checkpoint);
      return true;
    });
  else
    checkpoint.at_best = map.has("failures");
  if (!checkpoint.at_best)
    check_epochs(checkpoint.every, has_dataset,
                 keys.has("every") ? keys.place_of_key("every") : keys.place());
  return checkpoint;
}

Failures read_failures(const YamlMap& map) {
  const YamlMap keys(map.at("failures"), map.file(), "failures", {"between", "recovery"});
  if (!map.has("checkpoint"))
    throw InputError(map.place_of_key("failures"), "failures, and no checkpoint to go on from",
                     "add checkpoint: {time: 60 s}");
  return {read_run_time(keys, "between", parse_device_time), read_run_time(keys, "recovery")};
}

}  // namespace

Seconds parse_device_time(std::string_view text) {
  constexpr double hour = 3600;
  constexpr double most_hours = 1e9;
  std::string_view number = text;
  for (const std::string_view unit : {"hours", "h"})
    if (number.ends_with(unit)) number.remove_suffix(unit.size());
  while (number.ends_with(' ')) number.remove_suffix(1);
  const double hours = parse_number(number, 0, most_hours);
  if (hours <= 0)
    throw InputError("failures without an end",
                     "write the hours of a device between two, as in 50000h");
  return Seconds{hours * hour};
}

void parse_every(std::string_view text, Checkpoint& checkpoint) {
  checkpoint.at_best = text == "best";
  if (!checkpoint.at_best) checkpoint.every = parse_length(text);
}

Seconds parse_run_time(std::string_view text) {
  const Seconds time = parse_duration(text);
  if (time > longest_duration)
    throw InputError(fmt::format("{} is out of range", in_quotes(text)), "write 0 s to 30 days");
  return time;
}

TrainingRun parse_training_yaml(std::string_view text, const std::string& file,
                                const std::optional<Dataset>& dataset) {
  const YamlMap map(parse_yaml(text, file), file, "the training run",
                    {"training", "dataset", "phases", "start_up", "evaluation", "checkpoint",
                     "failures", "spares"});
  TrainingRun run;
  run.name = checked_name(map, "training", "training run");
  if (map.has("dataset"))
    run.dataset = map.parsed("dataset", [](const std::string& s) { return parse_dataset(s); });
  if (dataset) run.dataset = dataset;
  const bool has_dataset = run.dataset.has_value();
  run.phases = read_phases(map, has_dataset);
  if (map.has("start_up")) run.start_up = read_run_time(map, "start_up");
  if (map.has("evaluation")) run.evaluation = read_evaluation(map, has_dataset);
  if (map.has("checkpoint")) run.checkpoint = read_checkpoint(map, has_dataset);
  if (map.has("failures")) run.failures = read_failures(map);
  if (run.checkpoint && run.checkpoint->at_best && !run.failures)
    throw InputError(map.place_of_key("checkpoint"), "the best interval of no failures",
                     "add failures: {between: 50000 h, recovery: 10 min}");
  run.spares = optional_number(map, "spares", most_spares).value_or(0);
  return run;
}

}  // namespace paceline::models
