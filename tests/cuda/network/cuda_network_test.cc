// CudaNetwork against CpuNetwork, whose arithmetic is FP32 here and rounds at the same places, and
// under every order in which the double may run what was started.
#include "runtime/network/cuda/cuda_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/network/zoo.h"
#include "tests/cuda/network/rig.h"
#include "tests/support/cuda_on_host/control.h"
#include "tests/support/error_of.h"

namespace paceline::runtime {
namespace {

using cuda_on_host::Order;
using models::LayerKind;
using models::Network;
using models::NetworkBuilder;
using models::NumberType;
using models::Shape;
using test::around;
using test::branches;
using test::error_of;
using test::fused;
using test::Gradients;
using test::kinds;
using test::NetworkTrial;
using test::OnDevice;
using test::relative_error;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CudaNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override { cuda_on_host::reset(Order::eager, 1); }
  void TearDown() override { EXPECT_THAT(cuda_on_host::races(), IsEmpty()); }
};

// Sums of a few thousand products in FP32 lose some ten units of roundoff. In 16 bits the order and
// width of sums change the rounding of few elements, by one unit each.
double tolerance(NumberType storage) {
  return storage == NumberType::fp32   ? 2e-5
         : storage == NumberType::fp16 ? 0x1p-11 / 8
                                       : 0x1p-8 / 8;
}

void expect_like_cpu(const Network& network, NumberType storage, int batch = 4, double leeway = 1) {
  SCOPED_TRACE(std::string(name(storage)));
  const float loss_scale = storage == NumberType::fp16 ? 256 : 1;
  const NetworkTrial trial(network, batch);
  const Gradients expected = trial.of_mode(storage, loss_scale, Arithmetic::fp32);
  OnDevice on_device(trial, {.batch = batch, .storage = storage});
  const Gradients made = on_device.pass(loss_scale);
  const double bound = leeway * tolerance(storage);
  EXPECT_NEAR(made.loss, expected.loss, bound * std::max(1.0, std::abs(expected.loss)));
  EXPECT_LT(relative_error(made.logits, expected.logits), bound);
  EXPECT_LT(relative_error(made.weights, expected.weights), bound);
}

TEST_F(CudaNetworkTest, ComputesEachKindOfLayerAsTheCpuDoes) {
  const std::vector<LayerKind> all = kinds();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    // A mean of six numbers of 16 bits is a tie of the rounding in one of six cases. We divide the
    // exact sum, and the CPU, where windows are uneven, each number before it adds it.
    const double leeway = std::holds_alternative<models::AdaptiveAveragePool>(all[i]) ? 4 : 1;
    for (const NumberType storage : {NumberType::fp32, NumberType::fp16, NumberType::bf16})
      expect_like_cpu(around(all[i]), storage, 4, leeway);
  }
}

TEST_F(CudaNetworkTest, ComputesBranchesAsTheCpuDoes) {
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16, NumberType::bf16})
    expect_like_cpu(branches(), storage);
}

TEST_F(CudaNetworkTest, ComputesFusedStepsAsTheCpuDoesOneByOne) {
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16, NumberType::bf16})
    expect_like_cpu(fused(), storage, 4, 8);  // batch norm over four samples makes roundings larger
}

TEST_F(CudaNetworkTest, ComputesAnImageOfOnePixelAndASampleAlone) {
  expect_like_cpu(around(models::BatchNorm{}, 4, {1, 1}), NumberType::fp32, 3);
  expect_like_cpu(around(models::Relu{}, 4, {5, 5}), NumberType::fp32, 1);
}

TEST_F(CudaNetworkTest, ComputesAZooNetworkAsTheReferenceDoes) {
  const NetworkTrial trial(models::zoo_network("cnn-small"), 2);
  const Gradients expected = trial.of_reference();
  const Gradients made = OnDevice(trial, {.batch = 2}).pass(1);
  EXPECT_NEAR(made.loss, expected.loss, 1e-5);
  EXPECT_LT(relative_error(made.logits, expected.logits), 2e-5);
  EXPECT_LT(relative_error(made.weights, expected.weights), 2e-5);
}

// What a pass gives, to the bit, whatever the order: and nothing is ordered by luck.
TEST_F(CudaNetworkTest, GivesTheSameBitsUnderEveryOrder) {
  const NetworkTrial trial(branches(), 3);
  const Gradients expected = OnDevice(trial, {.batch = 3, .storage = NumberType::bf16}).pass(1);
  for (const Order order : {Order::eager, Order::latest, Order::random}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      cuda_on_host::reset(order, seed);
      {
        OnDevice on_device(trial, {.batch = 3, .storage = NumberType::bf16});
        for (int repeated = 0; repeated < 2; ++repeated) {
          const Gradients made = on_device.pass(1);
          EXPECT_EQ(made.loss, expected.loss);
          EXPECT_EQ(made.logits, expected.logits);
          EXPECT_EQ(made.weights, expected.weights);
        }
      }
      ASSERT_THAT(cuda_on_host::races(), IsEmpty()) << static_cast<int>(order) << " " << seed;
      EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
    }
  }
}

// An update on another stream between passes, without the host: gradients are subtracted from the
// weights, which the next pass takes.
TEST_F(CudaNetworkTest, PassesAndUpdatesWaitForEachOtherOnTheDevice) {
  const Network network = branches();
  const NetworkTrial trial(network, 2);
  std::vector<float> expected;
  for (const Order order : {Order::eager, Order::latest, Order::random}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      cuda_on_host::reset(order, seed);
      OnDevice on_device(trial, {.batch = 2});
      for (int iteration = 0; iteration < 3; ++iteration) {
        static_cast<void>(
            on_device.network().forward(trial.images(), trial.labels(), Pass::training, 1));
        std::vector<int> order_of_parameters;
        on_device.network().compute_gradients(
            -0.01F, on_device.gradients(), [&](int parameter, const Token& ready) {
              order_of_parameters.push_back(parameter);
              const ParameterPlace& place =
                  on_device.network().parameters()[static_cast<std::size_t>(parameter)];
              const auto first = static_cast<std::size_t>(place.offset);
              const auto count = static_cast<std::size_t>(place.elements);
              on_device.stream().wait_for(ready);
              on_device.stream().start(Add{on_device.gradients().part(first, count),
                                           on_device.weights().part(first, count)});
            });
        for (std::size_t i = 0; i < order_of_parameters.size(); ++i)
          ASSERT_EQ(order_of_parameters[i], static_cast<int>(i));
        on_device.take_weights();
      }
      const std::vector<float> weights =
          to_host(on_device.device(), on_device.stream(), on_device.weights());
      if (expected.empty()) expected = weights;
      ASSERT_EQ(weights, expected);
      ASSERT_NE(weights, trial.weights());
      ASSERT_THAT(cuda_on_host::races(), IsEmpty());
    }
  }
}

TEST_F(CudaNetworkTest, EvaluatesFewerSamplesThanABatchByRunningStatistics) {
  const Network network = branches();
  const NetworkTrial trial(network, 5);
  OnDevice on_device(trial, {.batch = 5});
  CpuNetwork cpu(network, {.batch = 5});
  cpu.set_weights(trial.weights());
  for (int pass = 0; pass < 2; ++pass) {
    static_cast<void>(cpu.forward(trial.images(), trial.labels(), Pass::training, 7));
    static_cast<void>(
        on_device.network().forward(trial.images(), trial.labels(), Pass::training, 7));
  }
  const std::vector<float> statistics =
      to_host(on_device.device(), on_device.stream(), on_device.network().running_statistics());
  ASSERT_EQ(statistics.size(), cpu.statistics().size());
  for (std::size_t i = 0; i < statistics.size(); ++i)
    EXPECT_NEAR(statistics[i], cpu.statistics()[i], 1e-5) << i;
  const auto two = static_cast<std::size_t>(2 * network.input().elements());
  const std::span<const float> images = std::span(trial.images()).first(two);
  const std::span<const std::int32_t> labels = std::span(trial.labels()).first(2);
  const PassOutcome expected = cpu.forward(images, labels, Pass::evaluation);
  const PassOutcome made = on_device.network().forward(images, labels, Pass::evaluation);
  EXPECT_NEAR(made.loss, expected.loss, 1e-5);
  EXPECT_EQ(made.correct, expected.correct);
  EXPECT_EQ(made.correct_5, expected.correct_5);
}

TEST_F(CudaNetworkTest, OverflowsWhereFp16Does) {
  const NetworkTrial trial(around(models::Relu{}), 2);
  const Gradients made = OnDevice(trial, {.batch = 2, .storage = NumberType::fp16}).pass(1e9F);
  int not_finite = 0;
  for (const double g : made.weights) not_finite += std::isfinite(g) ? 0 : 1;
  EXPECT_GT(not_finite, 0);
}

TEST_F(CudaNetworkTest, TellsAnObserverOfEachLayerWhenItIsDone) {
  class Observer : public LayerObserver {
   public:
    void began(bool backward, int layer) override { add(backward ? "b" : "f", layer); }
    void ended(bool backward, int layer) override { add(backward ? "/b" : "/f", layer); }
    std::vector<std::string> told;

   private:
    void add(const std::string& what, int layer) { told.push_back(what + std::to_string(layer)); }
  } observer;
  NetworkBuilder net("two", Shape::vector(4));
  net.add("fc", models::FullyConnected{3});
  net.add("loss", models::SoftmaxCrossEntropy{});
  const NetworkTrial trial(net.build(), 2);
  OnDevice on_device(trial, {.batch = 2});
  on_device.network().observe(&observer);
  static_cast<void>(on_device.pass(1));
  EXPECT_THAT(observer.told, ElementsAre("f0", "/f0", "f1", "/f1", "b1", "/b1", "b0", "/b0"));
}

TEST_F(CudaNetworkTest, RefusesWhatTheCpuRefuses) {
  CudaDevice device;
  EXPECT_EQ(error_of([&] { return CudaNetwork(device, around(models::Lrn{4}), {}).batch(); }),
            "layer 'layer': lrn over 4 channels has no middle; use an odd size");
  EXPECT_EQ(
      error_of([&] { return CudaNetwork(device, around(models::Relu{}), {.batch = 0}).batch(); }),
      "a batch of 0; use 1 or more");
  const NetworkTrial trial(around(models::Relu{}), 2);
  OnDevice on_device(trial, {.batch = 2});
  const std::vector<std::int32_t> labels{0, 7};
  EXPECT_EQ(error_of([&] {
              return on_device.network().forward(trial.images(), labels, Pass::training).loss;
            }),
            "label 7 in a network of 7 classes; use labels from 0 to 6");
}

// Whatever device the thread has used before.
TEST_F(CudaNetworkTest, ComputesOnADeviceThatIsNotTheCurrentOne) {
  if (CudaDevice::count() < 2) GTEST_SKIP() << "there is one device";
  const NetworkTrial trial(around(models::BatchNorm{}), 2);
  const Gradients expected = OnDevice(trial, {.batch = 2}).pass(1);
  EXPECT_EQ(OnDevice(trial, {.batch = 2}, 1).pass(1).weights, expected.weights);
}

// A device without enough memory says so in one line, and leaves nothing behind.
TEST_F(CudaNetworkTest, SaysThatMemoryDoesNotSuffice) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double's memory is limited";
  cuda_on_host::limit_memory(1 << 16);
  {
    CudaDevice device;
    try {
      CudaNetwork(device, branches(), {.batch = 64});
      FAIL() << "the memory suffices";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("out of memory"));
    }
  }
  EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
}

}  // namespace
}  // namespace paceline::runtime
