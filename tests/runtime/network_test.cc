// Whole networks: what a training loop relies on.
#include "runtime/network/cpu_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>

#include "models/network/zoo.h"
#include "tests/support/error_of.h"
#include "tests/support/network_trial.h"
#include "tests/support/thoroughness.h"

namespace paceline::runtime {
namespace {

using models::Network;
using models::NetworkBuilder;
using models::NumberType;
using models::Shape;
using models::square;
using test::Doubles;
using test::error_of;
using test::NetworkTrial;
using ::testing::HasSubstr;

// Two convolutions with batch norm around a residual, and a fully connected layer with dropout.
Network small_network(double dropout = 0) {
  NetworkBuilder net("small", Shape::image(2, 8, 8));
  const models::Convolution convolution{
      .channels = 16, .kernel = square(3), .padding = square(1), .bias = true};
  net.add("conv1", convolution);
  net.add("bn1", models::BatchNorm{});
  net.add("relu1", models::Relu{});
  net.add("conv2", convolution);
  net.add("bn2", models::BatchNorm{});
  net.add("add", models::Add{}, {"bn2", "relu1"});
  net.add("relu2", models::Relu{});
  net.add("pool", models::AdaptiveAveragePool{square(1)});
  net.add("flatten", models::Flatten{});
  net.add("dropout", models::Dropout{dropout});
  net.add("fc", models::FullyConnected{6});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

std::vector<float> gradients_of(const NetworkTrial& trial, CpuNetwork& network,
                                std::uint64_t seed = 1) {
  network.set_weights(trial.weights());
  network.forward(trial.images(), trial.labels(), Pass::training, seed);
  std::vector<float> gradients(trial.weights().size());
  network.backward(1, gradients);
  return gradients;
}

TEST(ParameterPlaces, StandInTheOrderOfGradients) {
  for (const models::ZooEntry& entry : models::zoo()) {
    const Network network = entry.build();
    const models::NetworkWork work = models::work(network);
    const std::vector<ParameterPlace> places = parameter_places(network);
    ASSERT_EQ(places.size(), work.gradients.size()) << entry.name;
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_EQ(places[i].name, work.gradients[i].name);
      EXPECT_EQ(places[i].elements, work.gradients[i].elements);
      EXPECT_EQ(places[i].layer, work.gradients[i].layer);
      EXPECT_EQ(places[i].offset, offset);
      offset += places[i].elements;
    }
    EXPECT_EQ(offset, work.parameters()) << entry.name;
  }
}

TEST(TrainableNetwork, AnnouncesEachGradientOnceInOrderWhenItIsThere) {
  const NetworkTrial trial(small_network(), 4);
  CpuNetwork network(trial.network(), {.batch = 4});
  const std::vector<float> expected = gradients_of(trial, network);
  network.forward(trial.images(), trial.labels(), Pass::training, 1);
  std::vector<float> gradients(expected.size(), 1e30F);
  std::vector<int> announced;
  network.backward(1, gradients, [&](int i) {
    announced.push_back(i);
    const ParameterPlace& place = network.parameters()[static_cast<std::size_t>(i)];
    for (std::int64_t k = place.offset; k < place.offset + place.elements; ++k)
      EXPECT_EQ(gradients[static_cast<std::size_t>(k)], expected[static_cast<std::size_t>(k)])
          << place.name;
  });
  std::vector<int> all(network.parameters().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  EXPECT_EQ(announced, all);
}

TEST(TrainableNetwork, RepeatsItselfBitForBit) {
  for (const NumberType storage : {NumberType::fp32, NumberType::bf16, NumberType::fp16})
    for (const int threads : {1, 2}) {
      const NetworkTrial trial(small_network(0.5), 8);
      const TrainableNetworkOptions options{.batch = 8, .storage = storage, .threads = threads};
      CpuNetwork one(trial.network(), options);
      CpuNetwork other(trial.network(), options);
      const std::vector<float> first = gradients_of(trial, one);
      EXPECT_EQ(gradients_of(trial, one), first);
      EXPECT_EQ(gradients_of(trial, other), first);
      EXPECT_NE(gradients_of(trial, one, 2), first) << "another seed of dropout";
    }
}

TEST(TrainableNetwork, ComputesBesideAnotherInAnotherThread) {
  const NetworkTrial trial(small_network(0.5), 8);
  const TrainableNetworkOptions options{.batch = 8, .threads = 2};
  CpuNetwork alone(trial.network(), options);
  const std::vector<float> expected = gradients_of(trial, alone);
  std::vector<std::vector<float>> made(2);
  {
    std::vector<std::jthread> threads;
    for (std::vector<float>& gradients : made)
      threads.emplace_back([&] {
        CpuNetwork network(trial.network(), options);
        for (int i = 0; i < 3; ++i) gradients = gradients_of(trial, network);
      });
  }
  EXPECT_EQ(made[0], expected);
  EXPECT_EQ(made[1], expected);
}

TEST(TrainableNetwork, TakesSomeWeightsAlone) {
  NetworkTrial trial(small_network(), 4);
  CpuNetwork network(trial.network(), {.batch = 4});
  const std::vector<float> before = gradients_of(trial, network);
  const ParameterPlace fc_weight = network.parameters()[1];
  EXPECT_EQ(fc_weight.name, "fc.weight");
  for (float& weight : trial.weights()) weight *= 1.5F;
  network.set_weights(std::span(trial.weights())
                          .subspan(static_cast<std::size_t>(fc_weight.offset),
                                   static_cast<std::size_t>(fc_weight.elements)),
                      1, 1);
  network.forward(trial.images(), trial.labels(), Pass::training);
  const std::vector<float> logits = network.logits();
  std::vector<float> mixed = NetworkTrial(trial.network(), 4).weights();
  std::copy_n(trial.weights().begin() + fc_weight.offset, fc_weight.elements,
              mixed.begin() + fc_weight.offset);
  network.set_weights(mixed);
  network.forward(trial.images(), trial.labels(), Pass::training);
  EXPECT_EQ(network.logits(), logits);
}

// Unbiased variance, as PyTorch's running statistics.
TEST(TrainableNetwork, MixesABatchIntoTheRunningStatistics) {
  NetworkBuilder net("norm", Shape::image(1, 2, 2));
  net.add("bn", models::BatchNorm{});
  net.add("flatten", models::Flatten{});
  net.add("loss", models::SoftmaxCrossEntropy{});
  CpuNetwork network(net.build(), {.batch = 1, .batch_norm_momentum = 0.25});
  ASSERT_EQ(network.statistics().size(), 2U);
  EXPECT_EQ(network.statistics()[0], 0);
  EXPECT_EQ(network.statistics()[1], 1);
  network.set_weights(std::vector<float>{0, 1});
  network.forward(std::vector<float>{1, 2, 3, 6}, std::vector<std::int32_t>{0}, Pass::training);
  EXPECT_FLOAT_EQ(network.statistics()[0], 0.25F * 3);
  EXPECT_FLOAT_EQ(network.statistics()[1], 0.75F + 0.25F * 14 / 3);
}

TEST(TrainableNetwork, EvaluatesWithTheRunningStatisticsAndWithoutDropout) {
  const NetworkTrial trial(small_network(0.5), 4);
  CpuNetwork network(trial.network(), {.batch = 4});
  network.set_weights(trial.weights());
  Random random(9);
  for (float& value : network.statistics()) value = static_cast<float>(random.uniform() + 0.5);
  const std::vector<float> statistics(network.statistics().begin(), network.statistics().end());
  const double loss = network.forward(trial.images(), trial.labels(), Pass::evaluation).loss;
  test::ReferenceNetwork reference(trial.network(), 4);
  reference.statistics = NetworkTrial::doubles(statistics);
  EXPECT_NEAR(loss,
              reference.forward(NetworkTrial::doubles(trial.weights()),
                                NetworkTrial::doubles(trial.images()), trial.labels()),
              1e-5);
  EXPECT_TRUE(std::equal(statistics.begin(), statistics.end(), network.statistics().begin()));
}

TEST(TrainableNetwork, EvaluatesFewerSamplesThanABatch) {
  const NetworkTrial trial(small_network(), 5);
  CpuNetwork network(trial.network(), {.batch = 5});
  network.set_weights(trial.weights());
  const auto pixels = static_cast<std::size_t>(trial.network().input().elements());
  PassOutcome sum;
  for (std::size_t i = 0; i < 5; ++i) {
    const PassOutcome one =
        network.forward(std::span(trial.images()).subspan(i * pixels, pixels),
                        std::span(trial.labels()).subspan(i, 1), Pass::evaluation);
    sum.loss += one.loss / 5;
    sum.correct += one.correct;
    sum.correct_5 += one.correct_5;
  }
  const PassOutcome all = network.forward(trial.images(), trial.labels(), Pass::evaluation);
  EXPECT_NEAR(sum.loss, all.loss, 1e-6);
  EXPECT_EQ(sum.correct, all.correct);
  EXPECT_EQ(sum.correct_5, all.correct_5);
}

TEST(TrainableNetwork, Learns) {
  for (const NumberType storage : {NumberType::fp32, NumberType::bf16, NumberType::fp16})
    for (const char* name : {"cnn-small", "resnet-small"}) {
      NetworkTrial trial(models::zoo_network(name), 8);
      trial.weights() = initial_weights(trial.network(), {});
      CpuNetwork network(trial.network(), {.batch = 8, .storage = storage});
      double first = 0;
      double last = 0;
      for (int step = 0; step < 25; ++step) {
        network.set_weights(trial.weights());
        last = network.forward(trial.images(), trial.labels(), Pass::training).loss;
        if (step == 0) first = last;
        std::vector<float> gradients(trial.weights().size());
        network.backward(1024, gradients);
        for (std::size_t i = 0; i < gradients.size(); ++i)
          trial.weights()[i] -= 0.05F / 1024 * gradients[i];
      }
      EXPECT_LT(last, 0.7 * first) << name << " " << models::name(storage);
    }
}

// Two samples let a batch norm of one pixel have a variance; the largest networks have none such.
TEST(TrainableNetwork, ComputesEveryNetworkOfTheZooThatTrains) {
  int computed = 0;
  for (const models::ZooEntry& entry : models::zoo()) {
    const Network description = entry.build();
    if (error_of([&] { check_trainable(description); }) != "no error") continue;
    const models::NetworkWork work = models::work(description);
    const std::int64_t flops = work.forward_flops();
    if (flops > 100'000'000'000) continue;  // GPT-2 from small on, which takes minutes
    // Random weights take most of the time.
    if (!test::is_thorough() && work.parameters() > 30'000'000) continue;
    ++computed;
    const int batch = flops > 5'000'000'000 ? 1 : 2;
    const NetworkTrial trial(description, batch);
    CpuNetwork network(description, {.batch = batch});
    const std::vector<float> gradients = gradients_of(trial, network);
    EXPECT_TRUE(std::all_of(gradients.begin(), gradients.end(), [](float g) {
      return std::isfinite(g);
    })) << entry.name;
    for (const ParameterPlace& place : network.parameters()) {
      const auto first = gradients.begin() + place.offset;
      EXPECT_TRUE(std::any_of(first, first + place.elements, [](float g) { return g != 0; }))
          << place.name;
    }
  }
  EXPECT_EQ(computed, test::cases(6, 13));
}

struct Calls : LayerObserver {
  std::vector<std::string> seen;
  void began(bool backward, int layer) override { add(backward ? "<" : ">", layer); }
  void ended(bool backward, int layer) override { add(backward ? "end<" : "end>", layer); }
  void add(const std::string& what, int layer) { seen.push_back(what + std::to_string(layer)); }
};

TEST(TrainableNetwork, TellsTheObserverOfEachLayerBothWays) {
  const NetworkTrial trial(small_network(), 2);
  CpuNetwork network(trial.network(), {.batch = 2});
  Calls calls;
  network.observe(&calls);
  gradients_of(trial, network);
  std::vector<std::string> expected;
  for (int i = 0; i < 12; ++i) {
    expected.push_back(">" + std::to_string(i));
    expected.push_back("end>" + std::to_string(i));
  }
  for (int i = 11; i >= 0; --i) {
    expected.push_back("<" + std::to_string(i));
    expected.push_back("end<" + std::to_string(i));
  }
  EXPECT_EQ(calls.seen, expected);
  network.observe(nullptr);
  gradients_of(trial, network);
  EXPECT_EQ(calls.seen.size(), expected.size());
}

TEST(TrainableNetwork, RefusesALabelThatIsNoClass) {
  const NetworkTrial trial(small_network(), 1);
  CpuNetwork network(trial.network(), {.batch = 1});
  network.set_weights(trial.weights());
  for (const std::int32_t label : {-1, 6})
    EXPECT_EQ(
        error_of(
            [&] { return network.forward(trial.images(), std::vector{label}, Pass::training); }),
        "label " + std::to_string(label) + " in a network of 6 classes; use labels from 0 to 5");
}

TEST(TrainableNetwork, RefusesANetworkThatDoesNotEndInItsLoss) {
  NetworkBuilder without("without", Shape::image(1, 2, 2));
  without.add("fc", models::FullyConnected{3});
  EXPECT_THAT(error_of([&] { return CpuNetwork(without.build(), {}).batch(); }),
              HasSubstr("network 'without' ends in layer 'fc', which is no loss"));
  NetworkBuilder early("early", Shape::image(1, 2, 2));
  early.add("flatten", models::Flatten{});
  early.add("loss1", models::SoftmaxCrossEntropy{});
  early.add("fc", models::FullyConnected{3});
  early.add("loss2", models::SoftmaxCrossEntropy{});
  EXPECT_THAT(error_of([&] { return CpuNetwork(early.build(), {}).batch(); }),
              HasSubstr("layer 'loss1' is a loss and not the last layer"));
}

TEST(TrainableNetwork, RefusesAnEvenLrn) {
  NetworkBuilder net("even", Shape::image(4, 2, 2));
  net.add("norm", models::Lrn{4});
  net.add("flatten", models::Flatten{});
  net.add("loss", models::SoftmaxCrossEntropy{});
  EXPECT_THAT(error_of([&] { return CpuNetwork(net.build(), {}).batch(); }),
              HasSubstr("layer 'norm': lrn over 4 channels has no middle"));
}

}  // namespace
}  // namespace paceline::runtime
