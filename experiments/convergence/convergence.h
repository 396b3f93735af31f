// The papers' claims about convergence, tried at our scale: resnet-small on Fashion-MNIST, with two
// ranks as threads and several seeds for each way to train. Every figure is measured. What the papers
// measured on ImageNet stands beside it, and nothing is fitted to it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json.h"
#include "models/plan/plan.h"
#include "runtime/training/recipe.h"

namespace paceline::experiments {

// One way to train.
struct Arm {
  std::string name;  // "mixed-fp16"
  std::string what;
  runtime::Recipe recipe;
  models::WireType wire = models::WireType::fp32;
  models::Overlap overlap = models::Overlap::wait_free;
};

struct ConvergenceSetting {
  double epochs = 2;
  std::string data = "fashion-mnist";
};

// All ways to train that are compared, each once.
[[nodiscard]] std::vector<Arm> convergence_arms(const ConvergenceSetting& setting);

// A claim of a paper: one arm against another.
struct Claim {
  std::string_view source;     // "Jizhi, Fig. 10"
  std::string_view statement;  // what the paper found
  std::string_view arm;
  std::string_view against;
};
[[nodiscard]] std::span<const Claim> convergence_claims();

// The result of one run.
struct ConvergenceRun {
  std::string arm;
  std::uint64_t seed = 1;
  double epochs = 0;
  double test_accuracy = 0;  // share, after the last epoch
  double test_loss = 0;
  double training_loss = 0;
  std::int64_t skipped = 0;  // steps
  double images_per_s = 0;
  std::vector<double> accuracies;  // after each epoch
};

// Trains one arm with one seed. Throws as runtime::train does.
[[nodiscard]] ConvergenceRun run_arm(const Arm& arm, std::uint64_t seed,
                                     const ConvergenceSetting& setting);

// Mean and standard deviation of a sample (by n - 1) over the seeds of an arm.
struct Spread {
  int runs = 0;
  double mean = 0;
  double deviation = 0;
};
[[nodiscard]] Spread spread(std::span<const ConvergenceRun> runs, std::string_view arm);

// How a claim came out: the difference of the means, and twice its standard error (Welch).
struct ClaimOutcome {
  const Claim* claim = nullptr;
  Spread arm;
  Spread against;
  double difference = 0;
  double noise = 0;
};
[[nodiscard]] std::vector<ClaimOutcome> outcomes(std::span<const ConvergenceRun> runs);

// Runs as JSON lines, one object for each (to_json_line() in convergence_json.h). Reading ignores unknown keys,
// and throws InputError with the line.
[[nodiscard]] std::vector<ConvergenceRun> parse_runs(std::string_view text,
                                                     const std::string& file);

}  // namespace paceline::experiments
