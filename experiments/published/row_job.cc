// Tests: tests/experiments/published_source_test.cc.
#include "experiments/published/row_job.h"

#include <fmt/core.h>

#include <array>
#include <sstream>
#include <variant>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "simulator/cost/nccl_tables.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::experiments {
namespace {

// What an option does with its value. Options that `paceline predict` does not take are the row's.
struct OptionWord {
  std::string_view name;
  void (*read)(RowOptions& options, const std::string& value);
  bool is_predicts = true;
};

// Options beside the thresholds (simulator/planner/threshold_fields.h).
constexpr std::array option_words = {
    OptionWord{.name = "--accumulate",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     options.accumulate =
                         static_cast<int>(parse_count(value, 1, simulator::most_accumulated));
                   }},
    OptionWord{.name = "--nccl",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     (void)simulator::nccl_tables(value);
                     options.nccl_version = value;
                   }},
    OptionWord{.name = "--wire",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     options.wire = models::wire_type_from_name(value);
                   }},
    OptionWord{.name = "--overlap",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     options.overlap = models::overlap_from_name(value);
                   }},
    OptionWord{.name = "--engine",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     options.engine = simulator::engine_from_name(value);
                   }},
    OptionWord{.name = "--placement",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     options.placement = models::placement_from_name(value);
                   }},
    OptionWord{.name = "--epochs",
               .read =
                   [](RowOptions& options, const std::string& value) {
                     options.length = {models::parse_length_count(value), models::Measure::epochs};
                   },
               .is_predicts = false},
    OptionWord{
        .name = "--dataset",
        .read = [](RowOptions& options,
                   const std::string& value) { options.dataset = models::parse_dataset(value); },
        .is_predicts = false},
};

// A threshold or another option, by its name with two dashes.
using RowOption = std::variant<const simulator::ThresholdField*, const OptionWord*>;

RowOption option_of(const std::string& name) {
  std::vector<std::string> known;
  for (const simulator::ThresholdField& field : simulator::threshold_fields()) {
    known.push_back(simulator::option_of(field));
    if (known.back() == name) return &field;
  }
  for (const OptionWord& option : option_words) {
    if (option.name == name) return &option;
    known.emplace_back(option.name);
  }
  throw unknown_name("option", name, known);
}

bool is_flag(RowOption option) {
  const auto* const field = std::get_if<const simulator::ThresholdField*>(&option);
  return field != nullptr && (*field)->is_flag;
}

bool is_predicts(RowOption option) {
  const auto* const word = std::get_if<const OptionWord*>(&option);
  return word == nullptr || (*word)->is_predicts;
}

void read_value(RowOption option, const std::string& value, RowOptions& options) {
  if (const auto* const field = std::get_if<const simulator::ThresholdField*>(&option))
    return (*field)->read(options.thresholds, value);
  std::get<const OptionWord*>(option)->read(options, value);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Reads the option at words[at], and passes over it and its value.
void read_option(RowOptions& options, const std::vector<std::string>& words, std::size_t& at) {
  const std::string& name = words[at++];
  const RowOption option = option_of(name);
  std::string value;
  if (!is_flag(option)) {
    if (at == words.size())
      throw InputError(fmt::format("{} has no value", in_quotes(name)),
                       "write options as --theta 64MiB, without blanks in a value");
    value = words[at++];
  }
  try {
    read_value(option, value, options);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.problem()), error.remedy());
  }
  if (is_predicts(option)) options.words += " " + name + (is_flag(option) ? "" : " " + value);
}

// What options of one row exclude each other, as predict's do.
void check_together(const RowOptions& options) {
  try {
    simulator::check_together(options.thresholds);
    simulator::check_taken(options.thresholds, {options.strategy});
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", error.place().file, error.problem()), error.remedy());
  }
}

}  // namespace

RowOptions row_options(const TrainingRow& row) {
  std::vector<std::string> words = words_of(row.strategy + " " + row.options);
  RowOptions options;
  if (words.empty() || words.front().starts_with("--"))
    throw InputError("a row without a strategy", "name one, as in fused-ring");
  options.strategy = &models::strategy(words.front());
  options.strategy_words = "--strategy " + words.front();
  for (std::size_t at = 1; at < words.size();) read_option(options, words, at);
  check_together(options);
  if (row.quantity == Quantity::minutes && (!options.length || !options.dataset))
    throw InputError("a time to train without epochs or dataset",
                     "add options such as --epochs 90 --dataset 1281167");
  return options;
}

models::WireType RowJob::wire() const {
  return options.wire.value_or(models::default_wire(precision));
}

simulator::PredictionRequest RowJob::request(const models::Profile* profile) const {
  return {.network = network->work,
          .cluster = *cluster,
          .profile = profile,
          .ranks = ranks,
          .batch_per_rank = batch,
          .accumulate = options.accumulate,
          .precision = precision,
          .wire = wire(),
          .thresholds = options.thresholds,
          .engine = options.engine,
          .nccl_version = options.nccl_version,
          .overlap = options.overlap,
          .stored_sample = network->stored_sample};
}

bool RowJob::shares_predictor(const RowJob& other) const {
  return network == other.network && cluster == other.cluster && ranks == other.ranks &&
         batch == other.batch && precision == other.precision &&
         options.words == other.options.words;
}

RowJob SourceParts::job(const TrainingRow& row) {
  const auto read = [&] {
    RowJob job{.network = nullptr,
               .cluster = nullptr,
               .options = row_options(row),
               .ranks = row.ranks,
               .batch = row.batch,
               .precision = row.precision};
    job.network = &network(row.model, row.sequence);
    job.cluster = &cluster(row.cluster, job.options.placement);
    models::check_ranks(*job.cluster, row.ranks);
    return job;
  };
  try {
    return read();
  } catch (const InputError& error) {
    throw error.at({source_.path("expected.csv"), row.line});
  }
}

const models::Cluster& SourceParts::cluster(const std::string& name,
                                            std::optional<models::Placement> placement) {
  std::unique_ptr<models::Cluster>& known = clusters_[{name, placement}];
  if (known) return *known;
  const std::string file = "clusters/" + name + ".yaml";
  const auto text = source_.files.texts.find(file);
  known = std::make_unique<models::Cluster>(
      text == source_.files.texts.end()
          ? models::catalog_cluster(name)
          : models::parse_cluster_yaml(text->second, source_.path(file)));
  if (placement) {
    known->placement = *placement;
    known->slots.clear();
  }
  if (edit_) edit_(*known);
  return *known;
}

const SourceNetwork& SourceParts::network(const std::string& name, std::optional<int> sequence) {
  std::unique_ptr<SourceNetwork>& known = networks_[{name, sequence.value_or(0)}];
  if (known) return *known;
  const std::string file = "networks/" + name + ".yaml";
  const auto text = source_.files.texts.find(file);
  const models::Network network =
      text == source_.files.texts.end()
          ? models::zoo_network(name)
          : models::parse_network_yaml(text->second, source_.path(file));
  const Bytes stored = network.stored_sample_bytes();
  if (!sequence) {
    known = std::make_unique<SourceNetwork>(SourceNetwork{models::work(network), stored});
    return *known;
  }
  const double share = *sequence / static_cast<double>(network.input().height);
  known = std::make_unique<SourceNetwork>(
      SourceNetwork{models::work(network.with_sequence(*sequence)), share * stored});
  return *known;
}

std::string SourceParts::cluster_word(const std::string& name) const {
  const std::string file = "clusters/" + name + ".yaml";
  return source_.files.texts.contains(file) ? source_.path(file) : name;
}

std::string SourceParts::network_word(const std::string& name) const {
  const std::string file = "networks/" + name + ".yaml";
  return source_.files.texts.contains(file) ? source_.path(file) : name;
}

}  // namespace paceline::experiments
