// Tests: tests/experiments/published_source_test.cc.
#include "experiments/published/row_job.h"

#include <fmt/core.h>

#include <array>
#include <sstream>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"
#include "models/network/hugging_face.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/question/question_fields.h"

namespace paceline::experiments {
namespace {

// An option that `paceline predict` does not take.
using RowField = Field<RowOptions>;

const std::array<RowField, 2>& row_fields() {
  static const std::array<RowField, 2> fields = {
      RowField{{.name = "epochs", .takes = "N"},
               [](RowOptions& options, const std::string& text) {
                 options.length = {models::parse_length_count(text), models::Measure::epochs};
               }},
      RowField{{.name = "dataset", .takes = "N"}, [](RowOptions& options, const std::string& text) {
                 options.dataset = models::parse_dataset(text);
               }}};
  return fields;
}

// The fields of a question that a row may have as options; others have a column, or are of a question
// that no publication answers.
const std::vector<const Field<simulator::Question>*>& question_options() {
  static const std::vector<const Field<simulator::Question>*> fields = [] {
    std::vector<const Field<simulator::Question>*> all;
    for (const simulator::ThresholdField& field : simulator::threshold_fields())
      all.push_back(&simulator::question_field(field.name));
    for (const char* const name : {"accumulate", "recompute", "nccl", "wire", "overlap", "engine",
                                   "placement", "stack", "offload", "attention-kernel"})
      all.push_back(&simulator::question_field(name));
    for (const std::string_view name : simulator::names_of_groups({simulator::layout_group}))
      all.push_back(&simulator::question_field(name));
    return all;
  }();
  return fields;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The text of the value behind the option at words[at]; a flag has none. Passes over both.
std::string value_of(const FieldLabel& field, const std::vector<std::string>& words,
                     std::size_t& at) {
  ++at;
  if (field.is_flag()) return {};
  if (at == words.size())
    throw InputError(fmt::format("{} has no value", in_quotes(field.option())),
                     "write options as --theta 64MiB, without blanks in a value");
  return words[at++];
}

// Reads the option at words[at], and passes over it and its value.
void read_option(RowOptions& options, const std::vector<std::string>& words, std::size_t& at) {
  const std::string name = words[at];
  const auto reading = [&name](const auto& field, const std::string& text, auto& value) {
    try {
      field.read(value, text);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", name, error.problem()), error.remedy());
    }
  };
  std::vector<std::string> known;
  for (const Field<simulator::Question>* field : question_options()) {
    known.push_back(field->option());
    if (known.back() != name) continue;
    const std::string value = value_of(*field, words, at);
    reading(*field, value, options.question);
    options.words += " " + name + (field->is_flag() ? "" : " " + value);
    return;
  }
  for (const RowField& field : row_fields()) {
    known.push_back(field.option());
    if (known.back() == name) return reading(field, value_of(field, words, at), options);
  }
  throw unknown_name("option", name, known);
}

// What options of one row exclude each other, as predict's do.
void check_together(const RowOptions& options) {
  try {
    simulator::check_together(options.question.thresholds);
    simulator::check_taken(options.question.thresholds, {options.strategy});
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", error.place().file, error.problem()), error.remedy());
  }
}

// The file of a network of the source; the end where the zoo has it.
auto network_file(const Source& source, const std::string& name) {
  const auto yaml = source.files.texts.find("networks/" + name + ".yaml");
  return yaml != source.files.texts.end() ? yaml
                                          : source.files.texts.find("networks/" + name + ".json");
}

models::Network network_of(const Source& source, const std::string& name) {
  const auto file = network_file(source, name);
  if (file == source.files.texts.end()) return models::zoo_network(name);
  const auto& [path, text] = *file;
  return path.ends_with(".json") ? models::parse_hugging_face(text, source.path(path))
                                 : models::parse_network_yaml(text, source.path(path));
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
  if (options.question.wires.size() > 1)
    throw InputError("--wire: a row has one wire type", "write a row for each");
  options.question.batch_per_rank = row.batch;
  options.question.precision = row.precision;
  if (row.quantity == Quantity::minutes && (!options.length || !options.dataset))
    throw InputError("a time to train without epochs or dataset",
                     "add options such as --epochs 90 --dataset 1281167");
  return options;
}

models::WireType RowJob::wire() const {
  const std::vector<models::WireType>& wires = options.question.wires;
  return wires.empty() ? models::default_wire(options.question.precision) : wires.front();
}

simulator::PredictionRequest RowJob::request(const models::Profile* profile) const {
  return simulator::request_for(options.question, network->work, network->stored_sample, *cluster,
                                profile, ranks, wire());
}

bool RowJob::shares_predictor(const RowJob& other) const {
  return network == other.network && cluster == other.cluster && ranks == other.ranks &&
         options.question.batch_per_rank == other.options.question.batch_per_rank &&
         options.question.precision == other.options.question.precision &&
         options.words == other.options.words;
}

RowJob SourceParts::job(const TrainingRow& row) {
  const auto read = [&] {
    RowJob job{
        .network = nullptr, .cluster = nullptr, .options = row_options(row), .ranks = row.ranks};
    job.network = &network(row.model, row.sequence);
    const std::string& placement = job.options.question.placement;
    job.cluster = &cluster(
        row.cluster,
        placement.empty() ? std::nullopt : std::optional(models::placement_from_name(placement)),
        job.options.question.stack, job.options.question.attention_kernel);
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
                                            std::optional<models::Placement> placement,
                                            std::optional<models::Stack> stack,
                                            std::optional<models::AttentionKernel> kernel) {
  std::unique_ptr<models::Cluster>& known = clusters_[{name, placement, stack, kernel}];
  if (known) return *known;
  const std::string file = "clusters/" + name + ".yaml";
  const auto text = source_.files.texts.find(file);
  known = std::make_unique<models::Cluster>(
      text == source_.files.texts.end()
          ? models::catalog_cluster(name)
          : models::parse_cluster_yaml(text->second, source_.path(file)));
  if (stack) models::take_stack(*stack, *known);
  if (kernel) models::take_attention_kernel(*kernel, *known);
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
  const models::Network network = network_of(source_, name);
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
  const auto file = network_file(source_, name);
  return file == source_.files.texts.end() ? name : source_.path(file->first);
}

}  // namespace paceline::experiments
