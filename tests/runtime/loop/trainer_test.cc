#include "runtime/training/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "models/base/error.h"
#include "models/network/decoder.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "tests/support/rank_threads.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

namespace fs = std::filesystem;
using models::NumberType;
using test::TemporaryFolder;
using testing::on_endpoints;

// Trains in less than a second, and has every kind of state: batch norm, dropout, a shortcut.
models::Network little_network(bool with_state = true) {
  models::NetworkBuilder net("little", models::Shape::image(1, 8, 8));
  net.add("conv1", models::Convolution{
                       .channels = 8, .kernel = models::square(3), .padding = models::square(1)});
  if (with_state) net.add("bn1", models::BatchNorm{});
  const std::string first = net.add("relu1", models::Relu{});
  net.add("conv2", models::Convolution{
                       .channels = 8, .kernel = models::square(3), .padding = models::square(1)});
  if (with_state) net.add("bn2", models::BatchNorm{});
  net.add("add", models::Add{}, {with_state ? "bn2" : "conv2", first});
  net.add("pool", models::MaxPool{{.kernel = models::square(2), .stride = models::square(2)}});
  net.add("flatten", models::Flatten{});
  if (with_state) net.add("dropout", models::Dropout{0.2});
  net.add("fc", models::FullyConnected{4});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

Recipe little_recipe() {
  Recipe recipe;
  recipe.name = "test";
  recipe.epochs = 2;
  recipe.batch_per_rank = 8;
  recipe.learning_rate.base = 0.05;
  recipe.learning_rate.base_batch = 16;
  recipe.learning_rate.decay = DecayKind::constant;
  recipe.augmentation.flip = true;
  return recipe;
}

struct Setting {
  models::Network network = little_network();
  Recipe recipe = little_recipe();
  int ranks = 2;
  std::string strategy = "fused-ring";
  std::string buckets_of = {};  // the strategy whose buckets the plan has, if it is another
  int group = 0;                // by default
  bool reshard = true;
  NumberType wire = NumberType::fp32;
  models::Overlap overlap = models::Overlap::wait_free;
  std::string checkpoint = {};
  std::int64_t checkpoint_every = 0;
  std::string resume = {};
  std::int64_t most_iterations = 0;
  // Asked of the last rank. The others are never asked to stop.
  std::function<StopReason()> stop = {};
  Recorder* recorder = nullptr;
  TrainingObserver* observer = nullptr;  // of rank 0
};

// The outcome of each rank. There are 96 samples: 6 iterations an epoch with two ranks of 8.
std::vector<TrainingOutcome> train_all(const Setting& setting) {
  const auto data = open_dataset({.source = "synthetic",
                                  .sample = setting.network.input(),
                                  .classes = 4,
                                  .synthetic_samples = 96});
  const auto plan_of = [&](const std::string& strategy) {
    models::Thresholds thresholds{.fusion = Bytes{600}};
    thresholds.reshard = setting.reshard;
    thresholds.group_size = setting.group;
    return models::make_plan(models::strategy(strategy), models::work(setting.network).gradients,
                             setting.ranks, setting.wire, thresholds);
  };
  models::Plan plan = plan_of(setting.strategy);
  if (!setting.buckets_of.empty()) plan.buckets = plan_of(setting.buckets_of).buckets;
  plan.overlap = setting.overlap;
  std::vector<TrainingOutcome> outcomes(static_cast<std::size_t>(setting.ranks));
  on_endpoints(setting.ranks, 1, [&](const Endpoint& endpoint) {
    const bool first = endpoint.channel.rank() == 0;
    const bool last = endpoint.channel.rank() == setting.ranks - 1;
    const std::function<StopReason()> never = [] { return StopReason::none; };
    outcomes[static_cast<std::size_t>(endpoint.channel.rank())] =
        train({.network = setting.network,
               .dataset = *data,
               .plan = plan,
               .recipe = setting.recipe,
               .checkpoint = setting.checkpoint,
               .checkpoint_every = setting.checkpoint_every,
               .resume = setting.resume,
               .most_iterations = setting.most_iterations,
               .stop = !setting.stop ? nullptr
                       : last        ? setting.stop
                                     : never,
               .recorder = first ? setting.recorder : nullptr},
              endpoint, first ? setting.observer : nullptr);
  });
  return outcomes;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

double largest_difference(const TrainingOutcome& a, const TrainingOutcome& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.weights.size(); ++i)
    largest = std::max(
        largest, std::abs(static_cast<double>(a.weights[i]) - static_cast<double>(b.weights[i])));
  return largest;
}

constexpr const char* sharded_strategies[] = {"zero1", "zero2", "fsdp"};

// Ranks that have parts of the optimizer's state sum in the order of the ring, and so get its bits.
TEST(Trainer, OfShardsIsThatOfTheRingToTheBit) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const NumberType wire : {NumberType::fp32, NumberType::fp16}) {
      Setting replicated;
      replicated.ranks = ranks;
      replicated.wire = wire;
      replicated.recipe.optimizer.nesterov = true;
      for (const char* strategy : sharded_strategies) {
        SCOPED_TRACE(fmt::format("{}, {} ranks, {}", strategy, ranks, models::name(wire)));
        Setting sharded = replicated;
        sharded.strategy = replicated.buckets_of = strategy;
        const auto expected = train_all(replicated);
        const auto outcomes = train_all(sharded);
        ASSERT_EQ(outcomes[0].epochs.size(), expected[0].epochs.size());
        EXPECT_EQ(outcomes[0].epochs.back().test_loss, expected[0].epochs.back().test_loss);
        for (const TrainingOutcome& outcome : outcomes)
          EXPECT_TRUE(same_bits(outcome.weights, expected[0].weights));
      }
    }
  }
}

// Groups sum as the rows of a torus and then its columns do, and so get its bits.
TEST(Trainer, OfShardsInGroupsIsThatOfTheTorusToTheBit) {
  for (const auto& [ranks, group] : {std::pair{2, 1}, {4, 2}, {4, 4}, {6, 2}, {6, 3}}) {
    for (const NumberType wire : {NumberType::fp32, NumberType::fp16}) {
      SCOPED_TRACE(fmt::format("{} ranks, {} shards, {}", ranks, group, models::name(wire)));
      Setting replicated;
      replicated.ranks = ranks;
      replicated.group = group;
      replicated.wire = wire;
      replicated.recipe.optimizer = {.kind = OptimizerKind::adam, .clip_norm = 100};
      replicated.recipe.learning_rate.base = 0.002;
      replicated.strategy = "torus-2d";
      replicated.buckets_of = "hsdp";
      Setting sharded = replicated;
      sharded.strategy = "hsdp";
      sharded.buckets_of = {};
      const auto expected = train_all(replicated);
      const auto outcomes = train_all(sharded);
      for (const TrainingOutcome& outcome : outcomes)
        EXPECT_TRUE(same_bits(outcome.weights, expected[0].weights));
      sharded.recipe.optimizer.clip_norm = replicated.recipe.optimizer.clip_norm = 0.05;
      EXPECT_LT(largest_difference(train_all(sharded)[0], train_all(replicated)[0]), 1e-5);
    }
  }
}

// Units of blocks, and the embeddings and the tied head in one that stays; with all that a plan may say of them.
TEST(Trainer, OfUnitsTrainsATransformerToTheBit) {
  Setting replicated;
  replicated.network = models::decoder({.name = "little",
                                        .blocks = 3,
                                        .features = 8,
                                        .heads = 2,
                                        .key_value_heads = 1,
                                        .head_features = 4,
                                        .inner = 12,
                                        .vocabulary = 11,
                                        .sequence = 5,
                                        .rotary_base = 100,
                                        .is_tied = true,
                                        .has_gate = true,
                                        .rms_norm = true});
  replicated.ranks = 3;
  replicated.buckets_of = "fsdp";
  replicated.recipe.optimizer = {.kind = OptimizerKind::adamw};
  replicated.recipe.learning_rate.base = 0.002;
  const auto expected = train_all(replicated);
  for (const bool reshard : {true, false})
    for (const auto overlap : {models::Overlap::wait_free, models::Overlap::none}) {
      SCOPED_TRACE(fmt::format("reshard {}, overlap {}", reshard, models::name(overlap)));
      Setting sharded = replicated;
      sharded.strategy = "fsdp";
      sharded.reshard = reshard;
      sharded.overlap = overlap;
      const auto outcomes = train_all(sharded);
      EXPECT_EQ(outcomes[0].epochs.back().test_loss, expected[0].epochs.back().test_loss);
      for (const TrainingOutcome& outcome : outcomes)
        EXPECT_TRUE(same_bits(outcome.weights, expected[0].weights));
    }
}

// A rank of a sharded job has a part of the norm of all gradients, so that the sum's order differs.
TEST(Trainer, OfShardsClipsToTheNormOfAllGradients) {
  for (const int ranks : {1, 2, 3}) {
    Setting replicated;
    replicated.ranks = ranks;
    replicated.recipe.optimizer = {.kind = OptimizerKind::adamw, .clip_norm = 0.05};
    replicated.recipe.learning_rate.base = 0.002;
    const auto expected = train_all(replicated);
    for (const char* strategy : sharded_strategies) {
      Setting sharded = replicated;
      sharded.strategy = strategy;
      const auto outcomes = train_all(sharded);
      EXPECT_LT(largest_difference(outcomes[0], expected[0]), 1e-5) << strategy << ", " << ranks;
    }
  }
}

TEST(Trainer, ResumesToTheSameBitsHoweverRanksShare) {
  const TemporaryFolder folder;
  const OptimizerRecipe optimizers[] = {{.momentum_correction = true},
                                        {.kind = OptimizerKind::adam, .clip_norm = 1}};
  for (const char* strategy : {"fused-ring", "zero1", "zero2", "fsdp"})
    for (const OptimizerRecipe& optimizer : optimizers) {
      Setting whole;
      whole.ranks = 3;
      whole.strategy = strategy;
      whole.recipe.optimizer = optimizer;
      whole.recipe.learning_rate.base = 0.002;
      const auto expected = train_all(whole);
      Setting first = whole;
      first.checkpoint = folder / fmt::format("{}-{}.checkpoint", strategy, optimizer.is_adam());
      first.most_iterations = 3;
      train_all(first);
      Setting second = whole;
      second.resume = first.checkpoint;
      EXPECT_TRUE(same_bits(train_all(second)[0].weights, expected[0].weights)) << strategy;
    }
}

// A step of 4 ranks of 4 samples is one of 2 ranks of 8, whatever is shared out. The sums' order differs.
TEST(Trainer, OfShardsResumesAtAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  Setting two;
  two.network = little_network(false);
  two.recipe.augmentation = {};
  two.recipe.optimizer = {.kind = OptimizerKind::adam};
  two.recipe.learning_rate.base = 0.002;
  two.strategy = "zero1";
  const auto expected = train_all(two);
  Setting four = two;
  four.ranks = 4;
  four.recipe.batch_per_rank = two.recipe.batch_per_rank / 2;
  four.strategy = "hsdp";
  four.group = 2;
  four.checkpoint = folder / "four.checkpoint";
  four.most_iterations = 8;  // in the second epoch
  train_all(four);
  Setting rest = two;
  rest.resume = four.checkpoint;
  const auto outcomes = train_all(rest);
  EXPECT_EQ(outcomes[0].iterations, expected[0].iterations - 8);
  EXPECT_LT(largest_difference(outcomes[0], expected[0]), 1e-4);
  EXPECT_NEAR(outcomes[0].epochs.back().training_loss, expected[0].epochs.back().training_loss,
              1e-4);
  Setting larger = rest;
  larger.ranks = 3;
  EXPECT_THROW(train_all(larger), InputError);
}

// A rank whose own parts are finite must not go on where another's are not.
TEST(Trainer, OfShardsAgreesOnAnOverflow) {
  Setting sharded;
  sharded.ranks = 2;
  sharded.strategy = "fsdp";
  sharded.wire = NumberType::fp16;
  sharded.recipe.precision = models::Precision::mixed;
  sharded.recipe.loss_scale.initial = 1e9;
  Setting replicated = sharded;
  replicated.strategy = "fused-ring";
  const auto expected = train_all(replicated);
  const auto outcomes = train_all(sharded);
  EXPECT_GT(expected[0].epochs.back().skipped, 0);
  for (const TrainingOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.epochs.back().skipped, expected[0].epochs.back().skipped);
    EXPECT_TRUE(same_bits(outcome.weights, expected[0].weights));
  }
}

TEST(Trainer, OfShardsHasNoLars) {
  Setting lars;
  lars.strategy = "zero1";
  lars.recipe.optimizer.lars.enabled = true;
  EXPECT_THROW(train_all(lars), InputError);
}

TEST(Trainer, LearnsAndAllRanksHoldTheSameWeights) {
  Setting setting;
  setting.recipe.epochs = 6;
  const auto outcomes = train_all(setting);
  ASSERT_EQ(outcomes[0].epochs.size(), 6u);
  EXPECT_EQ(outcomes[0].iterations, 36);
  EXPECT_TRUE(outcomes[0].complete);
  EXPECT_LT(outcomes[0].epochs.back().training_loss, outcomes[0].epochs.front().training_loss);
  EXPECT_GT(outcomes[0].epochs.back().test_accuracy, 0.5);
  EXPECT_TRUE(same_bits(outcomes[0].weights, outcomes[1].weights));
}

// Without batch norm and dropout a step on p batches of b is one on a batch of p b.
TEST(Trainer, TwoRanksDoWhatOneDoesWithTheWholeBatch) {
  Setting setting;
  setting.network = little_network(false);
  setting.recipe.augmentation = {};
  const auto two = train_all(setting);
  setting.ranks = 1;
  setting.recipe.batch_per_rank = 16;
  const auto one = train_all(setting);
  ASSERT_EQ(one[0].weights.size(), two[0].weights.size());
  double worst = 0;
  for (std::size_t i = 0; i < one[0].weights.size(); ++i)
    worst = std::max<double>(worst, std::abs(one[0].weights[i] - two[0].weights[i]));
  EXPECT_LT(worst, 1e-4);  // 12 steps, sums in another order
  EXPECT_NEAR(one[0].epochs.back().test_loss, two[0].epochs.back().test_loss, 1e-4);
}

struct ResumeCase {
  models::Precision precision;
  NumberType storage;
  NumberType wire;
  models::Overlap overlap;
  int stop;  // after this many iterations
};

class Resume : public ::testing::TestWithParam<ResumeCase> {};

TEST_P(Resume, EndsWithTheBitsOfAnUninterruptedRun) {
  const ResumeCase& c = GetParam();
  const TemporaryFolder folder;
  Setting setting;
  setting.recipe.precision = c.precision;
  setting.recipe.storage = c.storage;
  setting.recipe.loss_scale.growth_interval = 5;
  setting.recipe.loss_scale.initial = 1024;
  setting.wire = c.wire;
  setting.overlap = c.overlap;
  const auto whole = train_all(setting);

  setting.checkpoint = folder / "a.checkpoint";
  setting.most_iterations = c.stop;
  const auto part = train_all(setting);
  EXPECT_FALSE(part[0].complete);
  EXPECT_EQ(part[0].iterations, c.stop);
  setting.resume = setting.checkpoint;
  setting.most_iterations = 0;
  const auto rest = train_all(setting);
  EXPECT_EQ(rest[0].iterations, 12 - c.stop);
  for (std::size_t rank = 0; rank < whole.size(); ++rank) {
    EXPECT_TRUE(same_bits(whole[rank].weights, rest[rank].weights)) << "rank " << rank;
    EXPECT_TRUE(same_bits(whole[rank].statistics, rest[rank].statistics)) << "rank " << rank;
  }
  EXPECT_EQ(whole[0].epochs.back().test_loss, rest[0].epochs.back().test_loss);
  EXPECT_EQ(whole[0].epochs.back().skipped, rest[0].epochs.back().skipped);
  // Figures of an epoch are those of all of it, also of what was before the stop.
  for (const EpochReport& epoch : rest[0].epochs) {
    const EpochReport& of_whole = whole[0].epochs.at(static_cast<std::size_t>(epoch.epoch));
    EXPECT_EQ(epoch.training_loss, of_whole.training_loss) << epoch.epoch;
    EXPECT_EQ(epoch.training_accuracy, of_whole.training_accuracy) << epoch.epoch;
    EXPECT_GT(epoch.training_time, epoch.exposed);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Resume,
    ::testing::Values(ResumeCase{models::Precision::fp32, NumberType::bf16, NumberType::fp32,
                                 models::Overlap::wait_free, 1},
                      ResumeCase{models::Precision::fp32, NumberType::bf16, NumberType::fp32,
                                 models::Overlap::wait_free, 6},
                      ResumeCase{models::Precision::mixed, NumberType::fp16, NumberType::fp16,
                                 models::Overlap::wait_free, 8},
                      ResumeCase{models::Precision::mixed, NumberType::bf16, NumberType::bf16,
                                 models::Overlap::none, 5},
                      ResumeCase{models::Precision::fp32, NumberType::bf16, NumberType::fp16,
                                 models::Overlap::double_buffered, 1},
                      ResumeCase{models::Precision::fp32, NumberType::bf16, NumberType::fp32,
                                 models::Overlap::double_buffered, 6},
                      ResumeCase{models::Precision::mixed, NumberType::fp16, NumberType::fp16,
                                 models::Overlap::double_buffered, 9}));

TEST(Trainer, CheckpointsOnTheWayChangeNothing) {
  const TemporaryFolder folder;
  for (const models::Overlap overlap :
       {models::Overlap::wait_free, models::Overlap::double_buffered}) {
    Setting setting;
    setting.overlap = overlap;
    const auto without = train_all(setting);
    setting.checkpoint = folder / (std::string(name(overlap)) + ".checkpoint");
    setting.checkpoint_every = 1;
    const auto with = train_all(setting);
    EXPECT_TRUE(same_bits(without[0].weights, with[0].weights));
  }
}

TEST(Trainer, DoubleBufferingUpdatesOneIterationLate) {
  Setting setting;
  setting.overlap = models::Overlap::double_buffered;
  setting.most_iterations = 1;
  const std::vector<float> start = initial_weights(setting.network, {.seed = setting.recipe.seed});
  EXPECT_TRUE(same_bits(train_all(setting)[0].weights, start));
  // The second iteration applies what wait-free applies in the first, at the rate of the second.
  setting.most_iterations = 2;
  const auto late = train_all(setting);
  setting.overlap = models::Overlap::wait_free;
  setting.most_iterations = 1;
  EXPECT_TRUE(same_bits(late[0].weights, train_all(setting)[0].weights));
}

TEST(Trainer, SkipsAndCountsStepsThatOverflow) {
  Setting setting;
  setting.recipe.precision = models::Precision::mixed;
  setting.recipe.storage = NumberType::fp16;
  setting.wire = NumberType::fp16;
  setting.recipe.loss_scale = {.dynamic = false, .initial = 1e9};
  const std::vector<float> start = initial_weights(setting.network, {.seed = setting.recipe.seed});
  auto outcomes = train_all(setting);
  EXPECT_EQ(outcomes[0].epochs.back().skipped, 12);
  EXPECT_TRUE(same_bits(outcomes[0].weights, start));
  // A dynamic scale comes down until steps are taken.
  setting.recipe.loss_scale = {.dynamic = true, .initial = 16777216, .backoff = 0.0625};
  outcomes = train_all(setting);
  EXPECT_GT(outcomes[0].epochs.back().skipped, 0);
  EXPECT_LT(outcomes[0].epochs.back().skipped, 6);
  EXPECT_FALSE(same_bits(outcomes[0].weights, start));
}

TEST(Trainer, IncreasesTheBatchInsteadOfDecayingTheRate) {
  struct Seen final : TrainingObserver {
    std::map<std::int64_t, int> batch_of_epoch;
    void iteration(const IterationReport& r) override {
      batch_of_epoch[r.epoch] = r.batch_per_rank;
    }
  } seen;
  Setting setting;
  setting.recipe.epochs = 3;
  setting.recipe.learning_rate.decay = DecayKind::step;
  setting.recipe.learning_rate.step_epochs = {1};
  setting.recipe.learning_rate.step_factor = 0.5;
  setting.recipe.learning_rate.increase_batch_instead = true;
  setting.observer = &seen;
  const auto outcomes = train_all(setting);
  EXPECT_EQ(seen.batch_of_epoch, (std::map<std::int64_t, int>{{0, 8}, {1, 16}, {2, 16}}));
  EXPECT_EQ(outcomes[0].iterations, 6 + 3 + 3);
}

TEST(Trainer, RefusesRanksWithDifferentJobsOnAllOfThem) {
  const models::Network network = little_network();
  const Recipe recipe = little_recipe();
  const auto data = open_dataset({.source = "synthetic", .sample = network.input(), .classes = 4});
  std::vector<std::string> messages(3);
  on_endpoints(3, 1, [&](const Endpoint& endpoint) {
    const auto rank = static_cast<std::size_t>(endpoint.channel.rank());
    const models::Plan plan =
        models::make_plan(models::strategy(rank == 2 ? "ring" : "fused-ring"),
                          models::work(network).gradients, 3, NumberType::fp32, {});
    try {
      static_cast<void>(
          train({.network = network, .dataset = *data, .plan = plan, .recipe = recipe}, endpoint));
    } catch (const InputError& error) {
      messages[rank] = error.what();
    }
  });
  EXPECT_THAT(
      messages[0],
      ::testing::HasSubstr("rank 2 has \"strategy: ring\", and rank 0 \"strategy: fused-ring\""));
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

TEST(Trainer, RefusesACheckpointOfAnotherJob) {
  const TemporaryFolder folder;
  Setting setting;
  setting.checkpoint = folder / "a.checkpoint";
  setting.most_iterations = 2;
  train_all(setting);
  setting.resume = setting.checkpoint;
  setting.recipe.seed = 99;
  try {
    train_all(setting);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"seed: 1\", and this job \"seed: 99\""));
  }
}

// The message that train() throws, or nothing.
std::string refusal(const Setting& setting) {
  try {
    train_all(setting);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

// Attributes that change neither shapes nor parameters nor FLOPs.
TEST(Trainer, RefusesACheckpointOfANetworkWithOtherAttributes) {
  const auto network = [](double dropout, std::int64_t lrn, std::int64_t kernel) {
    models::NetworkBuilder net("n", models::Shape::image(1, 8, 8));
    net.add("conv", models::Convolution{.channels = 8,
                                        .kernel = {kernel, 4 - kernel},
                                        .padding = {(kernel - 1) / 2, (3 - kernel) / 2}});
    net.add("norm", models::Lrn{lrn});
    net.add("flatten", models::Flatten{});
    net.add("drop", models::Dropout{dropout});
    net.add("fc", models::FullyConnected{4});
    net.add("loss", models::SoftmaxCrossEntropy{});
    return net.build();
  };
  const TemporaryFolder folder;
  Setting setting;
  setting.network = network(0.25, 5, 1);
  setting.checkpoint = folder / "a.checkpoint";
  setting.most_iterations = 1;
  train_all(setting);
  setting.resume = setting.checkpoint;
  setting.network = network(0.5, 5, 1);
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("\"layer 4: {name: drop, kind: dropout, "
                                                     "probability: 0.25}\", and this job"));
  setting.network = network(0.25, 3, 1);
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("layer 2: {name: norm, kind: lrn, size: 5}"));
  setting.network = network(0.25, 5, 3);
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("kernel: [1, 3]"));
  setting.network = network(0.25, 5, 1);
  EXPECT_EQ(refusal(setting), "");
}

TEST(Trainer, ReplacesNoFileThatIsNoCheckpointOfThisJob) {
  const TemporaryFolder folder;
  Setting setting;
  setting.checkpoint = folder / "a.checkpoint";
  setting.most_iterations = 1;
  const auto bytes = [&] {
    std::ifstream file(setting.checkpoint, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::ofstream(setting.checkpoint) << "a thesis\n";
  EXPECT_THAT(refusal(setting), ::testing::HasSubstr("a file is there that a checkpoint would "
                                                     "replace"));
  EXPECT_EQ(bytes(), "a thesis\n");
  fs::remove(setting.checkpoint);
  EXPECT_EQ(refusal(setting), "");
  const std::string old = bytes();
  setting.recipe.seed = 99;
  EXPECT_THAT(refusal(setting),
              ::testing::HasSubstr("a checkpoint of another job is there: it has \"seed: 1\""));
  EXPECT_EQ(bytes(), old);
  // The same job may begin anew over its own checkpoint.
  setting.recipe.seed = 1;
  setting.most_iterations = 2;
  EXPECT_EQ(refusal(setting), "");
  EXPECT_NE(bytes(), old);
}

TEST(Trainer, StopsAllRanksAfterOneIterationWhereOneIsAskedTo) {
  for (const int ranks : {1, 3}) {
    for (const models::Overlap overlap :
         {models::Overlap::wait_free, models::Overlap::double_buffered}) {
      const TemporaryFolder folder;
      Setting setting;
      setting.ranks = ranks;
      setting.overlap = overlap;
      setting.recipe.epochs = 400;
      setting.checkpoint = folder / "a.checkpoint";
      std::atomic<int> asked = 0;
      setting.stop = [&] { return ++asked < 2 ? StopReason::none : StopReason::terminated; };
      const auto stopped = train_all(setting);
      EXPECT_FALSE(stopped[0].complete);
      EXPECT_EQ(asked, 2);
      for (const TrainingOutcome& outcome : stopped) {
        EXPECT_EQ(outcome.stopped, StopReason::terminated);
        EXPECT_EQ(outcome.iterations, stopped[0].iterations);
        EXPECT_TRUE(same_bits(outcome.weights, stopped[0].weights));
      }
      // The checkpoint that it leaves goes on as any other.
      Setting straight = setting;
      straight.stop = {};
      straight.checkpoint.clear();
      straight.most_iterations = stopped[0].iterations + 3;
      Setting rest = straight;
      rest.resume = setting.checkpoint;
      rest.most_iterations = 3;
      EXPECT_TRUE(same_bits(train_all(straight)[0].weights, train_all(rest)[0].weights));
    }
  }
}

TEST(Trainer, WritesATimelineOfEveryTask) {
  Recorder recorder(2, 2);
  Setting setting;
  setting.recorder = &recorder;
  setting.wire = NumberType::fp16;
  train_all(setting);
  const models::Timeline timeline = recorder.timeline("title", 0);
  std::map<models::TaskKind, std::size_t> count;
  for (const models::TimelineEvent& event : timeline.events) {
    ++count[event.kind];
    EXPECT_GE(event.start, Seconds{0});
    EXPECT_LT(event.iteration, 2);
  }
  const std::size_t layers = setting.network.layers().size();
  EXPECT_EQ(count[models::TaskKind::forward], 2 * layers);
  EXPECT_EQ(count[models::TaskKind::backward], 2 * layers);
  EXPECT_EQ(count[models::TaskKind::update], 2u);
  EXPECT_GT(count[models::TaskKind::all_reduce], 2u);
  EXPECT_EQ(count[models::TaskKind::all_reduce], count[models::TaskKind::unpack]);
  EXPECT_EQ(count[models::TaskKind::all_reduce], count[models::TaskKind::cast]);
  EXPECT_GT(timeline.period, Seconds{0});
  // On one stream one transfer begins when the last one is done.
  std::vector<models::TimelineEvent> transfers;
  for (const models::TimelineEvent& event : timeline.events) {
    if (event.kind == models::TaskKind::all_reduce) transfers.push_back(event);
  }
  std::ranges::sort(transfers, {}, &models::TimelineEvent::start);
  for (std::size_t i = 1; i < transfers.size(); ++i)
    EXPECT_GE(transfers[i].start - transfers[i - 1].start - transfers[i - 1].duration,
              Seconds{-1e-12});
}

TEST(Trainer, AFractionOfAnEpochHasItsShareOfTheRates) {
  struct Rates final : TrainingObserver {
    std::vector<double> seen;
    void iteration(const IterationReport& r) override { seen.push_back(r.learning_rate); }
  } rates;
  Setting setting;
  setting.recipe.epochs = 1.5;
  setting.recipe.learning_rate.decay = DecayKind::polynomial;
  setting.recipe.learning_rate.polynomial_power = 1;
  setting.observer = &rates;
  train_all(setting);
  ASSERT_EQ(rates.seen.size(), 9u);  // 6 and 3
  for (std::size_t i = 0; i < rates.seen.size(); ++i)
    EXPECT_NEAR(rates.seen[i], 0.05 * (1 - static_cast<double>(i) / 9), 1e-12) << i;
}

// A dataset of which one sample is damaged.
class Damaged final : public Dataset {
 public:
  [[nodiscard]] std::string name() const override { return "damaged"; }
  [[nodiscard]] models::Shape sample() const override { return models::Shape::image(1, 8, 8); }
  [[nodiscard]] int classes() const override { return 4; }
  [[nodiscard]] std::int64_t size(Part) const override { return 96; }
  void read(Part, std::int64_t index, const Augmentation&, std::uint64_t, std::span<float> image,
            std::span<std::int32_t> labels) const override {
    if (index == 77) throw InputError({"image-77.jpg"}, "cut short", "");
    std::ranges::fill(image, static_cast<float>(index % 4));
    labels[0] = static_cast<std::int32_t>(index % 4);
  }
};

// ... also where buckets are in flight, in memory of their own.
TEST(Trainer, NamesTheCauseAndNotTheRankThatItKilled) {
  const models::Network network = little_network();
  const Recipe recipe = little_recipe();
  const Damaged data;
  for (const models::Overlap overlap :
       {models::Overlap::wait_free, models::Overlap::double_buffered}) {
    models::Plan plan =
        models::make_plan(models::strategy("fused-ring"), models::work(network).gradients, 3,
                          NumberType::fp16, {.fusion = Bytes{600}});
    plan.overlap = overlap;
    try {
      on_endpoints(3, 1, [&](const Endpoint& endpoint) {
        train({.network = network, .dataset = data, .plan = plan, .recipe = recipe}, endpoint);
      });
      FAIL();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("image-77.jpg"));
    }
  }
}

TEST(Trainer, SaysThatABatchIsLargerThanTheData) {
  Setting setting;
  setting.recipe.batch_per_rank = 64;
  EXPECT_THROW(train_all(setting), InputError);
}

}  // namespace
}  // namespace paceline::runtime
