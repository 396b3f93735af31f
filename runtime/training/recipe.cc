// Tests: tests/runtime/training/recipe_test.cc; tests/fuzz/recipe_yaml.cc.
#include "runtime/training/recipe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/yaml_reader.h"

namespace paceline::runtime {
namespace {

constexpr double most_epochs = 1e6;
constexpr int largest_batch = 1 << 20;
constexpr std::size_t most_steps = 1000;

// A mapping none of whose keys is without a value: "lars:" is neither LARS nor no LARS.
YamlMap section(const YAML::Node& node, const std::string& file, const std::string& what,
                std::vector<std::string> keys) {
  YamlMap map(node, file, what, std::move(keys));
  for (const auto& entry : node) {
    if (!entry.second.IsNull()) continue;
    throw InputError(place_of(entry.first, file),
                     fmt::format("'{}' has no value", entry.first.Scalar()),
                     "write one, or leave the key out");
  }
  return map;
}

// The mapping under a key, where there is one.
std::optional<YamlMap> section_under(const YamlMap& map, const std::string& key,
                                     std::vector<std::string> keys) {
  if (!map.has(key)) return std::nullopt;
  return section(map.at(key), map.file(), key, std::move(keys));
}

void read_number(const YamlMap& map, const std::string& key, double low, double high,
                 double& value) {
  if (!map.has(key)) return;
  value = map.parsed(key, [&](const std::string& text) { return parse_number(text, low, high); });
}

template <class Integer>
void read_count(const YamlMap& map, const std::string& key, std::int64_t low, std::int64_t high,
                Integer& value) {
  if (!map.has(key)) return;
  value = static_cast<Integer>(
      map.parsed(key, [&](const std::string& text) { return parse_count(text, low, high); }));
}

void read_flag(const YamlMap& map, const std::string& key, bool& value) {
  value = map.flag_or(key, value);
}

std::vector<double> numbers(const YamlMap& map, const std::string& key, double low, double high) {
  const YAML::Node list = map.at(key);
  const auto parse = [&](const std::string& text) { return parse_number(text, low, high); };
  if (!list.IsSequence() || list.size() == 0 || list.size() > most_steps) {
    throw InputError(place_of(list, map.file()), fmt::format("{} is no list of numbers", key),
                     fmt::format("write {}: [30, 60, 80], of 1 to {} numbers", key, most_steps));
  }
  std::vector<double> all;
  for (const YAML::Node& entry : list)
    all.push_back(YamlMap::parsed_scalar(entry, map.file(), key, parse));
  return all;
}

// Reads a text, which must be one line of printable characters.
std::string line(const YamlMap& map, const std::string& key) {
  std::string text = map.text(key);
  const bool is_printable = std::none_of(text.begin(), text.end(),
                                         [](char c) { return c >= 0 && (c < ' ' || c == 127); });
  if (text.empty() || text.size() > 1000 || !is_printable) {
    throw InputError(map.place_of_key(key), fmt::format("{} is no line of text", key),
                     "write 1 to 1000 printable characters on one line");
  }
  return text;
}

// ---- Optimizer ----

void read_lars(const YamlMap& optimizer, Lars& lars) {
  const auto map =
      section_under(optimizer, "lars", {"trust_coefficient", "epsilon", "bias", "batch_norm"});
  if (!map) return;
  lars.enabled = true;
  read_number(*map, "trust_coefficient", 1e-9, 1e3, lars.trust_coefficient);
  read_number(*map, "epsilon", 0, 1, lars.epsilon);
  read_flag(*map, "bias", lars.bias);
  read_flag(*map, "batch_norm", lars.batch_norm);
}

void read_rmsprop(const YamlMap& optimizer, OptimizerRecipe& recipe) {
  const auto map = section_under(optimizer, "rmsprop_warm_up",
                                 {"centre_epoch", "period_epochs", "rate", "decay", "epsilon"});
  if (!map) return;
  recipe.kind = OptimizerKind::rmsprop_warm_up;
  read_number(*map, "centre_epoch", 0, most_epochs, recipe.rmsprop_centre_epoch);
  read_number(*map, "period_epochs", 1e-3, most_epochs, recipe.rmsprop_period_epochs);
  read_number(*map, "rate", 0, 10, recipe.rmsprop_rate);
  read_number(*map, "decay", 0, 1, recipe.rmsprop_decay);
  read_number(*map, "epsilon", 1e-12, 1, recipe.rmsprop_epsilon);
}

void read_adam(const YamlMap& optimizer, const std::string& key, OptimizerKind kind,
               OptimizerRecipe& recipe) {
  const auto map = section_under(optimizer, key, {"beta1", "beta2", "epsilon"});
  if (!map) return;
  if (recipe.kind != OptimizerKind::momentum_sgd)
    throw InputError(optimizer.place_of_key(key), key + " stands beside another optimizer",
                     "keep one of them");
  for (const char* other : {"momentum", "nesterov", "momentum_correction", "lars"})
    if (optimizer.has(other))
      throw InputError(optimizer.place_of_key(other),
                       fmt::format("{} stands beside {}", other, key), "leave it out");
  recipe.kind = kind;
  read_number(*map, "beta1", 0, 0.9999, recipe.momentum);
  read_number(*map, "beta2", 0, 0.99999, recipe.square_decay);
  read_number(*map, "epsilon", 1e-12, 1, recipe.adam_epsilon);
}

void read_optimizer(const YamlMap& root, OptimizerRecipe& recipe) {
  const auto map =
      section_under(root, "optimizer",
                    {"momentum", "nesterov", "momentum_correction", "weight_decay", "decay_bias",
                     "decay_batch_norm", "clip_norm", "lars", "rmsprop_warm_up", "adam", "adamw"});
  if (!map) return;
  read_number(*map, "clip_norm", 1e-6, 1e6, recipe.clip_norm);
  read_number(*map, "momentum", 0, 0.9999, recipe.momentum);
  read_flag(*map, "nesterov", recipe.nesterov);
  read_flag(*map, "momentum_correction", recipe.momentum_correction);
  read_number(*map, "weight_decay", 0, 1, recipe.weight_decay);
  read_flag(*map, "decay_bias", recipe.decay_bias);
  read_flag(*map, "decay_batch_norm", recipe.decay_batch_norm);
  read_lars(*map, recipe.lars);
  read_rmsprop(*map, recipe);
  read_adam(*map, "adam", OptimizerKind::adam, recipe);
  read_adam(*map, "adamw", OptimizerKind::adamw, recipe);
  if (recipe.kind != OptimizerKind::rmsprop_warm_up) return;
  if (recipe.lars.enabled)
    throw InputError(map->place_of_key("lars"), "lars stands beside rmsprop_warm_up",
                     "keep one of them");
  if (recipe.nesterov)
    throw InputError(map->place_of_key("nesterov"), "nesterov stands beside rmsprop_warm_up",
                     "leave it out");
}

// ---- Learning rate ----

void read_step(const YamlMap& step, LearningRateRecipe& rate) {
  rate.decay = DecayKind::step;
  rate.step_epochs = numbers(step, "epochs", 0, most_epochs);
  const InputPlace place = step.place_of_key("epochs");
  if (std::adjacent_find(rate.step_epochs.begin(), rate.step_epochs.end(),
                         std::greater_equal<>()) != rate.step_epochs.end())
    throw InputError(place, "epochs do not rise", "write them in order, each once");
  if (rate.step_epochs.front() < rate.warm_up_epochs)
    throw InputError(place, "a step comes before the warm-up ends",
                     "begin it later, or warm up for fewer epochs");
  if (!step.has("factor")) return;
  if (!step.at("factor").IsSequence())
    return read_number(step, "factor", 1e-6, 1, rate.step_factor);
  rate.step_factors = numbers(step, "factor", 1e-6, 1);
  if (rate.step_factors.size() != rate.step_epochs.size()) {
    throw InputError(
        step.place_of_key("factor"),
        fmt::format("{} factors for {} epochs", rate.step_factors.size(), rate.step_epochs.size()),
        "write one for each, or one number for all");
  }
}

void read_decay(const YamlMap& map, LearningRateRecipe& rate) {
  if (!map.has("decay")) return;
  const YAML::Node node = map.at("decay");
  if (node.IsScalar()) {
    if (node.Scalar() != "constant")
      throw InputError(
          place_of(node, map.file()), fmt::format("{} is no decay", in_quotes(node.Scalar())),
          "write constant, {step: ...}, {polynomial: ...}, {exponential: ...} or {cosine: ...}");
    rate.decay = DecayKind::constant;
    return;
  }
  const YamlMap decay =
      section(node, map.file(), "decay", {"step", "polynomial", "exponential", "cosine"});
  if (node.size() != 1)
    throw InputError(decay.place(), fmt::format("{} kinds of decay", node.size()),
                     "write one of step, polynomial, exponential and cosine, or decay: constant");
  if (const auto step = section_under(decay, "step", {"epochs", "factor"})) read_step(*step, rate);
  if (const auto polynomial = section_under(decay, "polynomial", {"power"})) {
    rate.decay = DecayKind::polynomial;
    read_number(*polynomial, "power", 0.1, 10, rate.polynomial_power);
  }
  if (const auto exponential = section_under(decay, "exponential", {"every_epochs", "factor"})) {
    rate.decay = DecayKind::smooth_exponential;
    read_number(*exponential, "every_epochs", 1e-3, most_epochs, rate.exponential_epochs);
    read_number(*exponential, "factor", 1e-6, 1, rate.exponential_factor);
  }
  if (const auto cosine = section_under(decay, "cosine", {"to"})) {
    rate.decay = DecayKind::cosine;
    read_number(*cosine, "to", 0, 1, rate.cosine_to);
  }
}

void read_increase_batch(const YamlMap& map, int batch_per_rank, LearningRateRecipe& rate) {
  const auto increase = section_under(map, "increase_batch", {"largest_per_rank"});
  if (!increase) return;
  rate.increase_batch_instead = true;
  rate.largest_batch_per_rank = std::max(rate.largest_batch_per_rank, batch_per_rank);
  read_count(*increase, "largest_per_rank", batch_per_rank, largest_batch,
             rate.largest_batch_per_rank);
  const bool whole = std::all_of(rate.step_epochs.begin(), rate.step_epochs.end(),
                                 [](double epoch) { return epoch == std::floor(epoch); });
  if (rate.decay != DecayKind::step || rate.step_epochs.empty() || !whole)
    throw InputError(increase->place(),
                     "the batch is to grow, and there is no whole epoch to do so",
                     "write decay: {step: {epochs: [30, 60, 80]}}");
}

void read_learning_rate(const YamlMap& root, int batch_per_rank, LearningRateRecipe& rate) {
  const auto map =
      section_under(root, "learning_rate",
                    {"base", "base_batch", "linear_scaling", "warm_up", "decay", "increase_batch"});
  if (!map) return;
  read_number(*map, "base", 1e-9, 1e4, rate.base);
  read_count(*map, "base_batch", 1, std::int64_t{1} << 40, rate.base_batch);
  read_flag(*map, "linear_scaling", rate.linear_scaling);
  if (const auto warm_up = section_under(*map, "warm_up", {"epochs", "from"})) {
    (void)warm_up->at("epochs");
    read_number(*warm_up, "epochs", 0, most_epochs, rate.warm_up_epochs);
    read_number(*warm_up, "from", 1e-6, 1, rate.warm_up_from);
  }
  read_decay(*map, rate);
  read_increase_batch(*map, batch_per_rank, rate);
}

// ---- The rest ----

void read_loss_scale(const YamlMap& root, LossScaleRecipe& recipe) {
  const auto map = section_under(root, "loss_scale", {"static", "dynamic"});
  if (!map) return;
  if (map->has("static") == map->has("dynamic"))
    throw InputError(map->place(), "loss_scale is neither static nor dynamic",
                     "write {static: 1024} or {dynamic: {initial: 65536}}");
  constexpr double largest = 1 << 24;
  recipe.dynamic = map->has("dynamic");
  read_number(*map, "static", 1e-6, largest, recipe.initial);
  const auto dynamic =
      section_under(*map, "dynamic", {"initial", "growth", "backoff", "growth_interval"});
  if (!recipe.dynamic) return;
  read_number(*dynamic, "initial", 1, largest, recipe.initial);
  read_number(*dynamic, "growth", 1, 1024, recipe.growth);
  read_number(*dynamic, "backoff", 1e-6, 1, recipe.backoff);
  read_count(*dynamic, "growth_interval", 1, 1'000'000'000, recipe.growth_interval);
}

void read_augmentation(const YamlMap& root, AugmentationRecipe& recipe) {
  const auto map =
      section_under(root, "augmentation", {"crop_padding", "flip", "random_resized_crop"});
  if (!map) return;
  read_count(*map, "crop_padding", 0, 1024, recipe.crop_padding);
  read_flag(*map, "flip", recipe.flip);
  read_flag(*map, "random_resized_crop", recipe.random_resized_crop);
  if (recipe.random_resized_crop && recipe.crop_padding > 0)
    throw InputError(map->place_of_key("crop_padding"),
                     "crop_padding stands beside random_resized_crop", "keep one of them");
}

void read_precision(const YamlMap& root, Recipe& recipe) {
  if (root.has("precision"))
    recipe.precision = root.parsed("precision", models::computed_precision_from_name);
  if (!root.has("storage")) return;
  const InputPlace place = root.place_of_key("storage");
  recipe.storage = root.parsed("storage", [](const std::string& text) {
    if (text == "fp16") return models::NumberType::fp16;
    if (text == "bf16") return models::NumberType::bf16;
    throw InputError(fmt::format("{} is no storage type of mixed precision", in_quotes(text)),
                     "write fp16 or bf16");
  });
  if (recipe.precision == models::Precision::fp32)
    throw InputError(place, "storage is given, and precision is fp32", "write precision: mixed");
}

}  // namespace

Recipe parse_recipe(std::string_view yaml, const std::string& file) {
  const YamlMap root =
      section(parse_yaml(yaml, file), file, "the recipe",
              {"recipe", "source", "epochs", "batch_per_rank", "seed", "precision", "storage",
               "optimizer", "learning_rate", "loss_scale", "augmentation", "zero_last_gamma"});
  Recipe recipe;
  recipe.name = line(root, "recipe");
  if (root.has("source")) recipe.source = line(root, "source");
  (void)root.at("epochs");
  read_number(root, "epochs", 1e-3, most_epochs, recipe.epochs);
  read_count(root, "batch_per_rank", 1, largest_batch, recipe.batch_per_rank);
  read_count(root, "seed", 0, std::int64_t{1} << 53, recipe.seed);
  read_precision(root, recipe);
  read_optimizer(root, recipe.optimizer);
  read_learning_rate(root, recipe.batch_per_rank, recipe.learning_rate);
  read_loss_scale(root, recipe.loss_scale);
  read_augmentation(root, recipe.augmentation);
  read_flag(root, "zero_last_gamma", recipe.zero_last_gamma);
  return recipe;
}

}  // namespace paceline::runtime
