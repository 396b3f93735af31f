#include "runtime/training/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/source_tree.h"

namespace paceline::runtime {
namespace {

using test::error_of;
using ::testing::HasSubstr;

Recipe parse(const std::string& more) {
  return parse_recipe("recipe: mine\nepochs: 10\n" + more, "mine.yaml");
}
std::string error(const std::string& more) {
  return error_of([&] { return parse(more); });
}

TEST(Recipe, OfTwoLinesHasTheDefaults) {
  const Recipe recipe = parse("");
  EXPECT_EQ(recipe.name, "mine");
  EXPECT_EQ(recipe.epochs, 10);
  EXPECT_EQ(recipe.batch_per_rank, Recipe{}.batch_per_rank);
  EXPECT_EQ(recipe.optimizer.momentum, 0.9);
  EXPECT_FALSE(recipe.optimizer.lars.enabled);
  EXPECT_EQ(recipe.learning_rate.warm_up_epochs, 0);
}

TEST(Recipe, ReadsEveryKey) {
  const Recipe recipe = parse(R"(source: "here: there"
batch_per_rank: 16
seed: 7
precision: mixed
storage: fp16
optimizer:
  momentum: 0.8
  nesterov: yes
  momentum_correction: true
  weight_decay: 0.01
  decay_bias: true
  decay_batch_norm: true
  lars: {trust_coefficient: 0.01, epsilon: 1e-8, bias: true, batch_norm: true}
learning_rate:
  base: 0.2
  base_batch: 128
  linear_scaling: false
  warm_up: {epochs: 1.5, from: 0.25}
  decay: {step: {epochs: [3, 5], factor: [0.5, 0.25]}}
  increase_batch: {largest_per_rank: 64}
loss_scale: {dynamic: {initial: 1024, growth: 4, backoff: 0.25, growth_interval: 100}}
augmentation: {crop_padding: 4, flip: true}
zero_last_gamma: true
)");
  EXPECT_EQ(recipe.source, "here: there");
  EXPECT_EQ(recipe.batch_per_rank, 16);
  EXPECT_EQ(recipe.seed, 7u);
  EXPECT_EQ(recipe.precision, models::Precision::mixed);
  EXPECT_EQ(recipe.storage, models::NumberType::fp16);
  const OptimizerRecipe& optimizer = recipe.optimizer;
  EXPECT_EQ(optimizer.kind, OptimizerKind::momentum_sgd);
  EXPECT_EQ(optimizer.momentum, 0.8);
  EXPECT_TRUE(optimizer.nesterov && optimizer.momentum_correction && optimizer.decay_bias &&
              optimizer.decay_batch_norm);
  EXPECT_EQ(optimizer.weight_decay, 0.01);
  EXPECT_TRUE(optimizer.lars.enabled && optimizer.lars.bias && optimizer.lars.batch_norm);
  EXPECT_EQ(optimizer.lars.trust_coefficient, 0.01);
  EXPECT_EQ(optimizer.lars.epsilon, 1e-8);
  const LearningRateRecipe& rate = recipe.learning_rate;
  EXPECT_EQ(rate.base, 0.2);
  EXPECT_EQ(rate.base_batch, 128);
  EXPECT_FALSE(rate.linear_scaling);
  EXPECT_EQ(rate.warm_up_epochs, 1.5);
  EXPECT_EQ(rate.warm_up_from, 0.25);
  EXPECT_EQ(rate.decay, DecayKind::step);
  EXPECT_EQ(rate.step_epochs, (std::vector<double>{3, 5}));
  EXPECT_EQ(rate.step_factors, (std::vector<double>{0.5, 0.25}));
  EXPECT_TRUE(rate.increase_batch_instead);
  EXPECT_EQ(rate.largest_batch_per_rank, 64);
  EXPECT_TRUE(recipe.loss_scale.dynamic);
  EXPECT_EQ(recipe.loss_scale.initial, 1024);
  EXPECT_EQ(recipe.loss_scale.growth, 4);
  EXPECT_EQ(recipe.loss_scale.backoff, 0.25);
  EXPECT_EQ(recipe.loss_scale.growth_interval, 100);
  EXPECT_EQ(recipe.augmentation.crop_padding, 4);
  EXPECT_TRUE(recipe.augmentation.flip);
  EXPECT_TRUE(recipe.zero_last_gamma);
}

TEST(Recipe, ReadsTheOtherKinds) {
  const Recipe rmsprop = parse("optimizer: {rmsprop_warm_up: {centre_epoch: 4, rate: 0.001}}");
  EXPECT_EQ(rmsprop.optimizer.kind, OptimizerKind::rmsprop_warm_up);
  EXPECT_EQ(rmsprop.optimizer.rmsprop_centre_epoch, 4);
  EXPECT_EQ(rmsprop.optimizer.rmsprop_rate, 0.001);
  EXPECT_EQ(parse("learning_rate: {decay: constant}").learning_rate.decay, DecayKind::constant);
  const Recipe polynomial = parse("learning_rate: {decay: {polynomial: {power: 1}}}");
  EXPECT_EQ(polynomial.learning_rate.decay, DecayKind::polynomial);
  EXPECT_EQ(polynomial.learning_rate.polynomial_power, 1);
  const Recipe smooth = parse("learning_rate: {decay: {exponential: {every_epochs: 3}}}");
  EXPECT_EQ(smooth.learning_rate.decay, DecayKind::smooth_exponential);
  EXPECT_EQ(smooth.learning_rate.exponential_epochs, 3);
  const Recipe fixed = parse("loss_scale: {static: 128}");
  EXPECT_FALSE(fixed.loss_scale.dynamic);
  EXPECT_EQ(fixed.loss_scale.initial, 128);
  EXPECT_TRUE(parse("optimizer: {lars: {}}").optimizer.lars.enabled);
}

TEST(Recipe, OfTheDocumentsParses) {
  std::ifstream file(test::source_path("docs/examples/recipe.yaml"));
  const std::string yaml{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(parse_recipe(yaml, "recipe.yaml").name, "my-resnet50");
}

struct Fault {
  std::string yaml;  // after two lines
  std::string error;
};

TEST(Recipe, ThatIsWrongIsRefusedWithItsPlaceAndWhatWouldBeRight) {
  const std::vector<Fault> faults = {
      {"epoch: 3", "mine.yaml:3:1: unknown key 'epoch'; did you mean 'epochs'?"},
      {"optimizer: {momentun: 3}",
       "mine.yaml:3:13: unknown key 'momentun'; did you mean 'momentum'?"},
      {"batch_per_rank: 0", "mine.yaml:3:17: batch_per_rank: "},
      {"batch_per_rank: 2.5", "mine.yaml:3:17: batch_per_rank: "},
      {"precision: fp16", "mine.yaml:3:12: precision: unknown precision 'fp16'"},
      {"storage: fp16",
       "mine.yaml:3:10: storage is given, and precision is fp32; write precision: mixed"},
      {"precision: mixed\nstorage: fp32", "mine.yaml:4:10: storage: 'fp32' is no storage type"},
      {"optimizer: {lars: }",
       "mine.yaml:3:13: 'lars' has no value; write one, or leave the key out"},
      {"optimizer: {lars: {}, rmsprop_warm_up: {}}", "lars stands beside rmsprop_warm_up"},
      {"optimizer: {nesterov: true, rmsprop_warm_up: {}}", "nesterov stands beside"},
      {"optimizer: {momentum: 1}", "momentum: '1' is not a number from 0 to 0.9999"},
      {"optimizer: {momentum: nan}", "momentum: 'nan' is not a number"},
      {"optimizer: {nesterov: perhaps}", "write true or false"},
      {"optimizer: 3", "mine.yaml:3:12: optimizer is no mapping"},
      {"learning_rate: {decay: cosine}", "mine.yaml:3:24: 'cosine' is no decay; write constant"},
      {"learning_rate: {decay: {step: {epochs: [3]}, polynomial: {power: 2}}}", "2 kinds of decay"},
      {"learning_rate: {decay: {}}", "0 kinds of decay"},
      {"learning_rate: {decay: {step: {factor: 0.1}}}", "step has no 'epochs'"},
      {"learning_rate: {decay: {step: {epochs: 3}}}",
       "epochs is no list of numbers; write epochs: [30"},
      {"learning_rate: {decay: {step: {epochs: []}}}", "epochs is no list of numbers"},
      {"learning_rate: {decay: {step: {epochs: [3, 3]}}}", "epochs do not rise"},
      {"learning_rate: {decay: {step: {epochs: [3, 5], factor: [0.1]}}}", "1 factors for 2 epochs"},
      {"learning_rate: {decay: {step: {epochs: [3], factor: 1.5}}}",
       "factor: '1.5' is not a number"},
      {"learning_rate: {warm_up: {epochs: 4}, decay: {step: {epochs: [3]}}}",
       "a step comes before"},
      {"learning_rate: {warm_up: {from: 0.1}}", "warm_up has no 'epochs'"},
      {"learning_rate: {warm_up: {epochs: 1, from: 0}}",
       "from: '0' is not a number from 1e-06 to 1"},
      {"learning_rate: {increase_batch: {}}", "the batch is to grow, and there is no whole epoch"},
      {"learning_rate: {decay: {step: {epochs: [2.5]}}, increase_batch: {}}", "no whole epoch"},
      {"learning_rate: {decay: {step: {epochs: [2]}}, increase_batch: {largest_per_rank: 3}}",
       "largest_per_rank: '3'"},
      {"loss_scale: {}", "neither static nor dynamic"},
      {"loss_scale: {static: 1, dynamic: {}}", "neither static nor dynamic"},
      {"loss_scale: {dynamic: {initial: 0.5}}",
       "initial: '0.5' is not a number from 1 to 16777216"},
      {"augmentation: {crop_padding: 2, random_resized_crop: true}", "keep one of them"},
      {"source: \"a\\nb\"", "source is no line of text"},
  };
  for (const Fault& fault : faults) {
    const std::string found = error(fault.yaml);
    EXPECT_THAT(found, HasSubstr(fault.error)) << fault.yaml;
    EXPECT_THAT(found, HasSubstr("mine.yaml:")) << fault.yaml;
    EXPECT_EQ(found.find('\n'), std::string::npos) << fault.yaml;
  }
  EXPECT_THAT(error_of([] { return parse_recipe("recipe: a", "mine.yaml"); }),
              HasSubstr("no 'epochs'"));
  EXPECT_THAT(error_of([] { return parse_recipe("epochs: 1", "mine.yaml"); }),
              HasSubstr("no 'recipe'"));
}

TEST(ShippedRecipes, AreTheFilesOfTheFolderAndParse) {
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_path("runtime/training/recipes")))
    files.insert(entry.path().stem().string());
  std::set<std::string> shipped;
  for (const ShippedRecipe& recipe : shipped_recipes()) {
    shipped.insert(std::string(recipe.name));
    const Recipe parsed = shipped_recipe(recipe.name);
    EXPECT_EQ(parsed.name, recipe.name);
    EXPECT_FALSE(parsed.source.empty()) << recipe.name;
  }
  EXPECT_EQ(shipped, files);
  EXPECT_TRUE(shipped.contains(std::string(default_recipe)));
}

TEST(ShippedRecipes, SuggestTheNearestName) {
  EXPECT_THAT(error_of([] { return shipped_recipe("goyal2017"); }),
              HasSubstr("unknown recipe 'goyal2017'; did you mean 'goyal-2017'?"));
}

// The figures that the papers state.
TEST(ShippedRecipes, AreThePapers) {
  const Recipe jizhi = shipped_recipe("jizhi-resnet50");
  EXPECT_EQ(jizhi.precision, models::Precision::mixed);
  EXPECT_EQ(jizhi.storage, models::NumberType::fp16);
  EXPECT_TRUE(jizhi.optimizer.lars.enabled);
  EXPECT_EQ(jizhi.optimizer.lars.trust_coefficient, 0.001);
  EXPECT_EQ(jizhi.optimizer.weight_decay, 0.0005);
  EXPECT_FALSE(jizhi.optimizer.decay_bias || jizhi.optimizer.decay_batch_norm);
  EXPECT_EQ(jizhi.epochs, 90);
  EXPECT_EQ(shipped_recipe("jizhi-alexnet").epochs, 95);
  EXPECT_EQ(shipped_recipe("akiba-2017").optimizer.kind, OptimizerKind::rmsprop_warm_up);
  EXPECT_TRUE(shipped_recipe("goyal-2017").zero_last_gamma);
  EXPECT_TRUE(shipped_recipe("goyal-2017").optimizer.nesterov);
}

}  // namespace
}  // namespace paceline::runtime
