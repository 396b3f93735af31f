// Tests: tests/cli/train_test.py (end to end).
#include "cli/job/training.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "models/layout/tensor_part.h"
#include "models/plan/strategy.h"
#include "runtime/network/batch.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/question/question_fields.h"

namespace paceline::job {
namespace {

constexpr const char* default_strategy = "fused-ring";
constexpr int most_batch = 1 << 16;
// A bucket of this size hides its latency on any network that trains, and several of them make up a
// network whose communication is worth hiding.
constexpr Bytes default_theta{4.0 * 1024 * 1024};

models::Plan load_planned(const TrainingOptions& options, const models::Network& network,
                          int ranks) {
  refuse_beside_plan(simulator::options_beside_plan(options.travel));
  const std::string& file = options.travel.plan;
  models::PlanDocument document = read_plan(file);
  check_plan(document, file, models::work(network), ranks);
  models::Plan of_data = document.plan;
  if (of_data.layout.is_data_and_tensor()) of_data.layout = {};
  refuse_of_other_system(of_data, file.c_str());
  return std::move(document.plan);
}

// The one strategy that is named, or the default.
const models::Strategy& strategy_of(const simulator::AskedStrategies& asked) {
  if (asked.all || asked.named.size() > 1)
    throw InputError({"--strategy"}, "several strategies", "a training run has one");
  return asked.are_named() ? *asked.named.front() : models::strategy(default_strategy);
}

// The mesh that --tensor asks for.
models::Layout layout_of(const simulator::Question& travel, int ranks) {
  models::Layout layout;
  if (travel.layout.tensor == 1) return layout;
  layout.tensor = travel.layout.tensor;
  layout.sequence_parallel = false;
  check_layout(layout, ranks, 1);
  return layout;
}

}  // namespace

NamedDevice named_device(const std::string& device) {
  if (device.empty() || device == "cpu") return {};
  if (device == "cuda") return {.is_cuda = true};
  constexpr std::string_view prefix = "cuda:";
  if (!device.starts_with(prefix))
    throw InputError({"--device"}, "there is no device " + in_quotes(device),
                     "use cpu, cuda, or cuda:N");
  return {.is_cuda = true,
          .index = parsing_option("--device", [&] {
            return static_cast<int>(parse_count(device.substr(prefix.size()), 0, 1023));
          })};
}

bool wants_cuda_graphs(const std::string& choice, const NamedDevice& device) {
  if (choice.empty()) return true;
  if (choice != "on" && choice != "off")
    throw InputError({"--cuda-graphs"}, fmt::format("{} is neither", in_quotes(choice)),
                     "give on or off");
  if (!device.is_cuda)
    throw InputError({"--cuda-graphs"}, "a CPU has none", "leave it out, or add --device cuda");
  return choice == "on";
}

runtime::CudaLayers named_layers(const TrainingOptions& options, const NamedDevice& device) {
  const auto check_used = [&](const char* option, const std::string& value) {
    if (!value.empty() && !device.is_cuda)
      throw InputError({option}, "layers are computed by the CPU", "add --device cuda");
  };
  check_used("--layers", options.layers);
  check_used("--layer-plans", options.layer_plans);
  runtime::CudaLayers layers{.plans = options.layer_plans};
  if (options.layers == "own") {
    layers.by = runtime::LayersBy::own;
  } else if (options.layers == "cudnn") {
    layers.by = runtime::LayersBy::cudnn;
  } else if (!options.layers.empty() && options.layers != "auto") {
    throw InputError({"--layers"},
                     "nothing called " + in_quotes(options.layers) + " computes layers",
                     "use auto, cudnn or own");
  }
  if (layers.by == runtime::LayersBy::own && !options.layer_plans.empty())
    throw InputError({"--layer-plans"}, "own kernels have no plans", "leave out --layers own");
  return layers;
}

int device_of_rank(const NamedDevice& device, int rank, int devices) {
  if (devices == 0)
    throw InputError({"--device"}, "no CUDA device was found",
                     "use --device cpu, or a machine with a GPU and its driver");
  if (device.index && *device.index >= devices)
    throw InputError({"--device"},
                     fmt::format("there is no cuda:{}: this machine has {} CUDA device{}",
                                 *device.index, devices, devices == 1 ? "" : "s"),
                     fmt::format("use cuda:0 to cuda:{}, or cuda", devices - 1));
  return device.index.value_or(rank % devices);
}

runtime::Recipe load_recipe(const TrainingOptions& options, const models::Network& network) {
  const std::string name = options.recipe.empty() ? std::string(network.input().is_sequence
                                                                    ? runtime::default_text_recipe
                                                                    : runtime::default_recipe)
                                                  : options.recipe;
  runtime::Recipe recipe =
      names_a_file(name)
          ? runtime::parse_recipe(read_input_file(name), name)
          : parsing_option("--recipe", [&] { return runtime::shipped_recipe(name); });
  if (!options.epochs.empty())
    recipe.epochs =
        parsing_option("--epochs", [&] { return parse_number(options.epochs, 1e-6, 1e6); });
  if (const auto batch = optional_count("--batch", options.batch, most_batch))
    recipe.batch_per_rank = *batch;
  if (!options.learning_rate.empty())
    recipe.learning_rate.base = parsing_option(
        "--learning-rate", [&] { return parse_number(options.learning_rate, 0, 1e6); });
  if (!options.seed.empty())
    recipe.seed = static_cast<std::uint64_t>(parsing_option(
        "--seed", [&] { return parse_count(options.seed, 0, std::int64_t{1} << 53); }));
  if (!options.precision.empty())
    recipe.precision = parsing_option(
        "--precision", [&] { return models::computed_precision_from_name(options.precision); });
  if (!options.storage.empty()) {
    recipe.storage = parsing_option("--storage", [&] {
      if (options.storage == "bf16") return models::NumberType::bf16;
      if (options.storage == "fp16") return models::NumberType::fp16;
      throw unknown_name("storage type", options.storage, {"bf16", "fp16"});
    });
    if (recipe.precision == models::Precision::fp32)
      throw InputError({"--storage"}, "there is none in precision fp32", "add --precision mixed");
  }
  return recipe;
}

std::string precision_text(const runtime::Recipe& recipe) {
  if (recipe.precision == models::Precision::fp32) return "fp32";
  return fmt::format("mixed ({})", name(recipe.storage));
}

models::Plan load_plan(const TrainingOptions& options, const models::Network& network,
                       const runtime::Recipe& recipe, int ranks, int ranks_per_node) {
  const simulator::Question& travel = options.travel;
  if (!travel.plan.empty()) return load_planned(options, network, ranks);
  const models::Strategy& strategy = strategy_of(travel.strategies);
  if (!strategy.is_runnable())
    throw InputError({"--strategy"},
                     strategy.sharded() != nullptr
                         ? fmt::format("{} can be predicted, not run", strategy.name)
                         : fmt::format("{} models what another system does: it can be predicted, "
                                       "not run",
                                       strategy.name),
                     "choose a strategy of ours, such as fused-ring or fsdp");
  if (strategy.needs_times())
    throw InputError(
        {"--strategy"},
        fmt::format("the buckets of {} depend on how long all-reduces take", strategy.name),
        "write its plan with paceline predict --plan-out, and give it as --plan");
  if (travel.wires.size() > 1)
    throw InputError({"--wire"}, fmt::format("{} wire types", travel.wires.size()), "give one");
  const models::WireType wire =
      travel.wires.empty() ? models::default_wire(recipe.precision) : travel.wires.front();
  const simulator::ThresholdRequest& asked = travel.thresholds;
  check_taken(asked, {&strategy});
  models::Thresholds thresholds;
  thresholds.fusion = asked.fusion.value_or(
      strategy.fusion == models::Fusion::by_default ? default_theta : Bytes{0});
  thresholds.hybrid =
      asked.hybrid.value_or(strategy.hybrid() == nullptr ? Bytes{0} : strategy.hybrid()->threshold);
  const models::Layout layout = layout_of(travel, ranks);
  const int replicas = ranks / layout.tensor;
  const int replicas_of_node = std::max(1, ranks_per_node / layout.tensor);
  thresholds.group_size =
      asked.group_size.value_or(replicas % replicas_of_node == 0 ? replicas_of_node : 1);
  thresholds.segments = asked.segments.value_or(thresholds.segments);
  thresholds.rings = asked.rings.value_or(thresholds.rings);
  thresholds.servers = asked.servers.value_or(thresholds.servers);
  thresholds.streams = asked.streams.value_or(thresholds.streams);
  thresholds.reshard = asked.reshard.value_or(thresholds.reshard);
  // Buckets hold this rank's part of each tensor. All ranks have parts of one size.
  const models::Network& computed =
      layout.tensor == 1 ? network : models::tensor_part(network, layout.tensor, 0).network;
  const models::NetworkWork work = models::work(computed);
  const std::vector<models::Gradient>& gradients = work.gradients;
  if (strategy.other && !asked.fusion)
    models::take_buckets_of_ddp(*strategy.other, wire, work.parameters(), thresholds);
  models::Plan plan = parsing_option(
      "--strategy", [&] { return make_plan(strategy, gradients, replicas, wire, thresholds); });
  plan.layout = layout;
  plan.overlap = travel.overlap.value_or(plan.overlap);
  return plan;
}

std::unique_ptr<runtime::Dataset> load_dataset(const TrainingOptions& options,
                                               const models::Network& network,
                                               const runtime::Recipe& recipe) {
  return parsing_option("--data", [&] {
    return runtime::open_dataset({.source = options.data,
                                  .sample = network.input(),
                                  .classes = runtime::count_classes(network),
                                  .seed = recipe.seed});
  });
}

}  // namespace paceline::job
