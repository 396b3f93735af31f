#include "experiments/convergence/convergence.h"
#include "experiments/convergence/convergence_json.h"

#include <gmock/gmock.h>

#include <set>

#include "models/base/error.h"

namespace paceline::experiments {
namespace {

ConvergenceRun run(const std::string& arm, std::uint64_t seed, double accuracy) {
  return {
      .arm = arm, .seed = seed, .epochs = 2, .test_accuracy = accuracy, .accuracies = {accuracy}};
}

TEST(Convergence, EveryClaimIsOfArmsThatThereAre) {
  std::set<std::string, std::less<>> names;
  for (const Arm& arm : convergence_arms({})) EXPECT_TRUE(names.insert(arm.name).second);
  for (const Claim& claim : convergence_claims()) {
    EXPECT_TRUE(names.contains(claim.arm)) << claim.arm;
    EXPECT_TRUE(names.contains(claim.against)) << claim.against;
  }
}

TEST(Convergence, ArmsDifferFromWhatTheyAreComparedWith) {
  const std::vector<Arm> arms = convergence_arms({});
  const auto find = [&](std::string_view name) {
    for (const Arm& arm : arms) {
      if (arm.name == name) return arm;
    }
    return Arm{};
  };
  EXPECT_TRUE(find("large-batch-lars").recipe.optimizer.lars.enabled);
  EXPECT_FALSE(find("large-batch").recipe.optimizer.lars.enabled);
  EXPECT_TRUE(find("large-batch-lars-decay").recipe.optimizer.decay_batch_norm);
  EXPECT_EQ(find("mixed-fp16").recipe.storage, models::NumberType::fp16);
  EXPECT_EQ(find("double-buffered").overlap, models::Overlap::double_buffered);
}

TEST(Convergence, SpreadIsThatOfASample) {
  const std::vector<ConvergenceRun> runs = {run("a", 1, 0.90), run("b", 1, 0.5), run("a", 2, 0.92),
                                            run("a", 3, 0.94)};
  const Spread s = spread(runs, "a");
  EXPECT_EQ(s.runs, 3);
  EXPECT_NEAR(s.mean, 0.92, 1e-12);
  EXPECT_NEAR(s.deviation, 0.02, 1e-12);
  EXPECT_EQ(spread(runs, "b").deviation, 0);
}

TEST(Convergence, AClaimIsADifferenceAndItsNoise) {
  std::vector<ConvergenceRun> runs;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const double wobble = seed % 2 == 0 ? 0.01 : -0.01;
    runs.push_back(run("fp32", seed, 0.90 + wobble));
    runs.push_back(run("wire-fp16", seed, 0.95 + wobble));
  }
  const std::vector<ClaimOutcome> all = outcomes(runs);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NEAR(all[0].difference, 0.05, 1e-12);
  // Each variance is 4 (0.01)^2 / 3; twice the root of the sum of two of them over 4.
  EXPECT_NEAR(all[0].noise, 2 * std::sqrt(2 * (4e-4 / 3) / 4), 1e-12);
}

TEST(Convergence, RunsAreWrittenAndReadAsLines) {
  const std::vector<ConvergenceRun> runs = {run("a", 1, 0.5), run("b", 2, 0.25)};
  std::string text;
  for (const ConvergenceRun& r : runs) text += to_json_line(r);
  const std::vector<ConvergenceRun> read = parse_runs(text, "runs.jsonl");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].arm, "b");
  EXPECT_EQ(read[1].seed, 2u);
  EXPECT_EQ(read[1].accuracies, (std::vector<double>{0.25}));
  try {
    static_cast<void>(parse_runs(text + "{\"arm\": 1}\n", "runs.jsonl"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("runs.jsonl:3"));
  }
}

// One short run, on images that need no package.
TEST(Convergence, AnArmTrains) {
  const ConvergenceSetting setting{.epochs = 1, .data = "synthetic"};
  for (const Arm& arm : convergence_arms(setting)) {
    if (arm.name != "fp32") continue;
    const ConvergenceRun result = run_arm(arm, 1, setting);
    EXPECT_EQ(result.accuracies.size(), 1u);
    EXPECT_GT(result.images_per_s, 0);
  }
}

}  // namespace
}  // namespace paceline::experiments
