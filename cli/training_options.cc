// Tests: tests/cli/train_test.py (end to end).
#include "cli/training_options.h"

#include <fmt/format.h>

#include "cli/files.h"
#include "cli/job.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"
#include "models/network/shape_inference.h"
#include "models/plan/strategy.h"
#include "runtime/exchange/recorder.h"

namespace paceline::cli {
namespace {

constexpr int most_batch = 1 << 16;
// A bucket of this size hides its latency on any network that trains, and several of them make up
// a network whose communication is worth hiding.
constexpr Bytes default_theta{4.0 * 1024 * 1024};

void add_recipe_options(Command& command, TrainingOptions& options) {
  command
      .add_option("--recipe", options.recipe,
                  "How to train: the name of a shipped recipe (paceline show recipes) or a YAML "
                  "file; the options below take the place of what it says")
      .value(fmt::format("NAME|FILE ({})", runtime::default_recipe));
  command.add_option("--epochs", options.epochs, "Passes over the training set; may be a fraction")
      .value("N");
  command.add_option("--batch", options.batch, "Samples per rank and iteration").value("N");
  command
      .add_option("--learning-rate", options.learning_rate,
                  "Base learning rate, before linear scaling and warm-up")
      .value("RATE");
  command.add_option("--seed", options.seed, "Of initial weights, order and augmentation")
      .value("N");
  command
      .add_option("--precision", options.precision,
                  "Of computation: fp32, or mixed (16-bit storage with FP32 master weights)")
      .value("fp32|mixed");
  command
      .add_option("--storage", options.storage,
                  "The 16-bit type of mixed precision. Arithmetic is in it where the CPU has that "
                  "(bf16: AVX-512), and elsewhere in FP32")
      .value("bf16|fp16");
}

void add_plan_options(Command& command, TrainingOptions& options) {
  command
      .add_option("--wire", options.wire,
                  "Type of gradients in an all-reduce; by default fp16 for mixed, else fp32")
      .value("fp32|fp16|bf16");
  command.add_option("--strategy", options.strategy, "How gradients travel (paceline show catalog)")
      .value("NAME (fused-ring)");
  add_threshold_options(command, options.thresholds,
                        {.theta = "4 MiB",
                         .eta = "the strategy's",
                         .group = "the ranks of a node",
                         .segments = "the algorithm's",
                         .servers = "1"});
  command.add_option("--overlap", options.overlap, "When buckets travel, and what an update uses")
      .value("wait-free|none|double-buffered");
}

}  // namespace

void add_training_options(Command& command, TrainingOptions& options) {
  command
      .add_option("--model", options.model,
                  "Network: a name of the zoo (paceline show catalog) or a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--data", options.data,
                  "Images: fashion-mnist, synthetic, or a folder in ImageNet's layout or of "
                  "TFRecord files")
      .value("NAME|FOLDER");
  add_recipe_options(command, options);
  add_plan_options(command, options);
  command
      .add_option("--ranks", options.ranks,
                  "Ranks as threads of this process; under mpirun or srun they are its processes")
      .value("N (1)");
  command
      .add_option("--threads", options.threads,
                  "Threads that compute, per rank; by default the cores of the node shared evenly")
      .value("N");
  command.add_option("--workers", options.workers, "Threads that decode images, per rank")
      .value("N (1)");
  add_patience_option(command, options.patience);
  command
      .add_option("--checkpoint", options.checkpoint,
                  "Where to write a checkpoint after each epoch; the file is whole at all times")
      .value("FILE");
  command
      .add_option("--checkpoint-every", options.checkpoint_every,
                  "... and after every N iterations")
      .value("N");
  command
      .add_option("--resume", options.resume,
                  "Go on from a checkpoint of the same job; what follows is the same, bit by bit")
      .value("FILE");
  command
      .add_option("--stop-after", options.stop_after,
                  "Stop after N iterations of this run, with a checkpoint if there is a path")
      .value("N");
  command.add_option("--metrics", options.metrics, "Write metrics as JSON lines").value("FILE");
  command
      .add_option("--timeline", options.timeline,
                  fmt::format("Write what rank 0 did in up to {} iterations as Chrome trace "
                              "JSON, as predict does",
                              runtime::recorded_iterations))
      .value("FILE");
  command.add_flag("--json", options.json, "Print one JSON document");
}

runtime::Recipe load_recipe(const TrainingOptions& options) {
  const std::string name =
      options.recipe.empty() ? std::string(runtime::default_recipe) : options.recipe;
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
        "--precision", [&] { return models::precision_from_name(options.precision); });
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
  const models::Strategy& strategy = parsing_option("--strategy", [&]() -> const models::Strategy& {
    return models::strategy(options.strategy);
  });
  models::WireType wire = default_wire(recipe.precision);
  if (!options.wire.empty())
    wire = parsing_option("--wire", [&] { return models::wire_type_from_name(options.wire); });
  const simulator::ThresholdRequest asked = parse_thresholds(options.thresholds);
  models::Thresholds thresholds;
  thresholds.fusion = asked.fusion.value_or(
      strategy.fusion == models::Fusion::by_default ? default_theta : Bytes{0});
  thresholds.hybrid =
      asked.hybrid.value_or(strategy.hybrid() == nullptr ? Bytes{0} : strategy.hybrid()->threshold);
  thresholds.group_size =
      asked.group_size.value_or(ranks % ranks_per_node == 0 ? ranks_per_node : 1);
  thresholds.segments = asked.segments.value_or(thresholds.segments);
  thresholds.rings = asked.rings.value_or(thresholds.rings);
  thresholds.servers = asked.servers.value_or(thresholds.servers);
  thresholds.streams = asked.streams.value_or(thresholds.streams);
  const std::vector<models::Gradient> gradients = models::work(network).gradients;
  models::Plan plan = parsing_option(
      "--strategy", [&] { return make_plan(strategy, gradients, ranks, wire, thresholds); });
  if (!options.overlap.empty())
    plan.overlap =
        parsing_option("--overlap", [&] { return models::overlap_from_name(options.overlap); });
  return plan;
}

std::unique_ptr<runtime::Dataset> load_dataset(const TrainingOptions& options,
                                               const models::Network& network,
                                               const runtime::Recipe& recipe) {
  const std::vector<models::Shape> shapes = models::infer_shapes(network);
  const models::Layer& loss = network.layers().back();
  const models::Shape logits = loss.inputs.front() == models::network_input
                                   ? network.input()
                                   : shapes[static_cast<std::size_t>(loss.inputs.front())];
  return parsing_option("--data", [&] {
    return runtime::open_dataset({.source = options.data,
                                  .sample = network.input(),
                                  .classes = static_cast<int>(logits.elements()),
                                  .seed = recipe.seed});
  });
}

}  // namespace paceline::cli
