// Tests: tests/experiments/convergence_test.cc.
#include "experiments/convergence/convergence.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "models/base/error.h"
#include "models/base/json_reader.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "runtime/channel/rank_threads.h"
#include "runtime/training/trainer.h"

namespace paceline::experiments {
namespace {

constexpr int ranks = 2;
// This makes 58 steps for an epoch of 60,000 images. With four times as many images in a step,
// momentum SGD does not train in a few epochs, even with warm-up (10 % after one epoch).
constexpr int large_batch_per_rank = 512;

runtime::Recipe base_recipe(const ConvergenceSetting& setting) {
  runtime::Recipe recipe = runtime::shipped_recipe(runtime::default_recipe);
  recipe.epochs = setting.epochs;
  return recipe;
}

runtime::Recipe large_batch_recipe(const ConvergenceSetting& setting) {
  runtime::Recipe recipe = base_recipe(setting);
  recipe.batch_per_rank = large_batch_per_rank;
  recipe.learning_rate.warm_up_epochs = setting.epochs / 4;
  return recipe;
}

runtime::Recipe lars_recipe(const ConvergenceSetting& setting) {
  runtime::Recipe recipe = large_batch_recipe(setting);
  recipe.optimizer.lars.enabled = true;
  // The learning rate of LARS is of another kind: times the trust coefficient, it is the share of its
  // norm by which a weight moves. This is the best of 5, 10 and 20 for seed 1.
  recipe.learning_rate.linear_scaling = false;
  recipe.learning_rate.base = 10;
  return recipe;
}

}  // namespace

std::vector<Arm> convergence_arms(const ConvergenceSetting& setting) {
  using models::NumberType;
  using models::Overlap;
  const auto with = [](runtime::Recipe recipe, auto change) {
    change(recipe);
    return recipe;
  };
  const runtime::Recipe base = base_recipe(setting);
  const auto mixed = [](NumberType storage) {
    return [storage](runtime::Recipe& recipe) {
      recipe.precision = models::Precision::mixed;
      recipe.storage = storage;
    };
  };
  return {
      {"fp32", "FP32 throughout", base},
      {"mixed-bf16", "BF16 storage and arithmetic, FP32 masters, BF16 on the wire",
       with(base, mixed(NumberType::bf16)), NumberType::bf16},
      {"mixed-fp16", "FP16 storage, FP32 masters, dynamic loss scale, FP16 on the wire",
       with(base, mixed(NumberType::fp16)), NumberType::fp16},
      {"wire-fp16", "FP32, gradients in FP16 on the wire", base, NumberType::fp16},
      {"double-buffered", "FP32, updates one iteration late", base, NumberType::fp32,
       Overlap::double_buffered},
      {"wire-fp16-double-buffered", "both", base, NumberType::fp16, Overlap::double_buffered},
      {"large-batch", "2 x 512 images a step, momentum SGD, linear scaling and warm-up",
       large_batch_recipe(setting)},
      {"large-batch-lars", "... with LARS", lars_recipe(setting)},
      {"large-batch-lars-decay", "... with LARS, and weight decay on bias, gamma and beta too",
       with(lars_recipe(setting),
            [](runtime::Recipe& recipe) {
              recipe.optimizer.decay_bias = true;
              recipe.optimizer.decay_batch_norm = true;
            })},
  };
}

std::span<const Claim> convergence_claims() {
  static constexpr std::array claims = {
      Claim{"Jizhi, Fig. 10", "mixed precision ends where FP32 does (76.2 % against 76.3 %)",
            "mixed-fp16", "fp32"},
      Claim{"Jizhi, Fig. 10", "the same, with BF16", "mixed-bf16", "fp32"},
      Claim{"Jizhi, Tables 1 and 6", "LARS at batch 64K: 71.9 % against 60.6 %", "large-batch-lars",
            "large-batch"},
      Claim{"Jizhi, Tables 7 and 8", "no decay on BN and bias: 76.2 % against 71.9 %",
            "large-batch-lars", "large-batch-lars-decay"},
      Claim{"ChainerMN 1.3, table", "FP16 all-reduce changes nothing", "wire-fp16", "fp32"},
      Claim{"ChainerMN 1.3, table", "double buffering changes nothing", "double-buffered", "fp32"},
      Claim{"ChainerMN 1.3, table", "both: 75.8 % against 76.4 %", "wire-fp16-double-buffered",
            "fp32"},
  };
  return claims;
}

ConvergenceRun run_arm(const Arm& arm, std::uint64_t seed, const ConvergenceSetting& setting) {
  const models::Network network = models::zoo_network("resnet-small");
  const auto data = runtime::open_dataset(
      {.source = setting.data, .sample = network.input(), .classes = 10, .seed = seed});
  models::Plan plan =
      models::make_plan(models::strategy("fused-ring"), models::work(network).gradients, ranks,
                        arm.wire, {.fusion = Bytes{4.0 * 1024 * 1024}});
  plan.overlap = arm.overlap;
  runtime::Recipe recipe = arm.recipe;
  recipe.seed = seed;
  runtime::TrainingOutcome outcome;
  runtime::run_as_threads(
      ranks, plan.streams, Seconds{300}, [&](const runtime::Endpoint& endpoint) {
        auto done = runtime::train(
            {.network = network, .dataset = *data, .plan = plan, .recipe = recipe}, endpoint);
        if (endpoint.channel.rank() == 0) outcome = std::move(done);
      });
  const runtime::EpochReport& last = outcome.epochs.back();
  ConvergenceRun run{.arm = arm.name,
                     .seed = seed,
                     .epochs = recipe.epochs,
                     .test_accuracy = last.test_accuracy,
                     .test_loss = last.test_loss,
                     .training_loss = last.training_loss,
                     .skipped = last.skipped,
                     .images_per_s = last.images.value(),
                     .accuracies = {}};
  for (const runtime::EpochReport& epoch : outcome.epochs)
    run.accuracies.push_back(epoch.test_accuracy);
  return run;
}

Spread spread(std::span<const ConvergenceRun> runs, std::string_view arm) {
  Spread result;
  double squares = 0;
  for (const ConvergenceRun& run : runs) {
    if (run.arm != arm) continue;
    ++result.runs;
    const double before = run.test_accuracy - result.mean;
    result.mean += before / result.runs;
    squares += before * (run.test_accuracy - result.mean);
  }
  if (result.runs > 1) result.deviation = std::sqrt(squares / (result.runs - 1));
  return result;
}

std::vector<ClaimOutcome> outcomes(std::span<const ConvergenceRun> runs) {
  std::vector<ClaimOutcome> all;
  for (const Claim& claim : convergence_claims()) {
    ClaimOutcome outcome{
        .claim = &claim, .arm = spread(runs, claim.arm), .against = spread(runs, claim.against)};
    if (outcome.arm.runs == 0 || outcome.against.runs == 0) continue;
    outcome.difference = outcome.arm.mean - outcome.against.mean;
    outcome.noise =
        2 * std::sqrt(outcome.arm.deviation * outcome.arm.deviation / outcome.arm.runs +
                      outcome.against.deviation * outcome.against.deviation / outcome.against.runs);
    all.push_back(outcome);
  }
  return all;
}

std::vector<ConvergenceRun> parse_runs(std::string_view text, const std::string& file) {
  constexpr std::int64_t most = std::int64_t{1} << 53;  // up to it a double holds all whole numbers
  std::vector<ConvergenceRun> runs;
  int line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.empty()) continue;
    try {
      const JsonDocument document(line, file, "the run", "");
      const JsonValue root = document.root();
      const auto number = [&](const char* key) {
        const bool is_null = root.has(key) && !root.has_value(key);
        return is_null ? std::nan("") : root.at(key).number();
      };
      std::vector<double> accuracies;
      root.at("test_accuracy_by_epoch").for_each([&](const JsonValue& accuracy) {
        accuracies.push_back(accuracy.number());
      });
      runs.push_back({.arm = root.at("arm").text(),
                      .seed = static_cast<std::uint64_t>(root.at("seed").whole(0, most)),
                      .epochs = number("epochs"),
                      .test_accuracy = number("test_accuracy"),
                      .test_loss = number("test_loss"),
                      .training_loss = number("training_loss"),
                      .skipped = root.at("skipped_steps").whole(0, most),
                      .images_per_s = number("images_per_s"),
                      .accuracies = std::move(accuracies)});
    } catch (const InputError&) {
      throw InputError({file, line_number}, "this line is no run of the study",
                       "remove it: the run is made again");
    }
  }
  return runs;
}

}  // namespace paceline::experiments
