// CudaNetwork with its layers by cuDNN, against CpuNetwork and against our own kernels, under every
// order in which the doubles may run what was started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cudnn_graph.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/network/zoo.h"
#include "runtime/network/cudnn/cudnn_steps.h"
#include "tests/cuda/network/rig.h"
#include "tests/support/cuda_on_host/control.h"
#include "tests/support/cuda_on_host/cudnn_control.h"
#include "tests/support/drawn_network.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

using cuda_on_host::Order;
using models::LayerKind;
using models::Network;
using models::NumberType;
using models::Shape;
using models::square;
using test::around;
using test::branches;
using test::fused;
using test::Gradients;
using test::kinds;
using test::NetworkTrial;
using test::OnDevice;
using test::relative_error;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

// Plans of all tests, which take a second each to compile on a GPU, by whether TF32 is used.
std::string shared_plans(bool tf32) {
  static const test::TemporaryFolder folder;
  return folder.path() + (tf32 ? "/tf32.json" : "/fp32.json");
}

class CudnnNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override { cuda_on_host::reset(Order::eager, 1); }
  void TearDown() override {
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
    EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
    EXPECT_EQ(cuda_on_host::cudnn::live_handles(), 0);
    EXPECT_EQ(cuda_on_host::cudnn::live_descriptors(), 0);
  }

  // A file of the test's own.
  [[nodiscard]] std::string plans() const { return folder_.path() + "/plans.json"; }
  [[nodiscard]] static OnDevice::Open by_cudnn(bool tf32 = true) {
    return by_cudnn(shared_plans(tf32), tf32);
  }
  [[nodiscard]] static OnDevice::Open by_cudnn(const std::string& plans, bool tf32) {
    return [plans, tf32](int device) {
      return cudnn::open_cudnn({.device = device, .plans = plans, .tf32 = tf32});
    };
  }

 private:
  test::TemporaryFolder folder_;
};

// How far results may be apart, by norm, from those of the CPU and of our own kernels.
struct Bounds {
  double logits = 0;
  double weights = 0;
};

// FP32 with sums in another order: some ten units of roundoff. In 16 bits the same changes the
// rounding of few elements; in BF16 cuDNN rounds the gradients of weights, too, which the CPU does
// not. TF32 keeps 10 bits of each operand of a convolution.
Bounds bounds(NumberType storage, bool tf32) {
  if (storage == NumberType::fp32) return tf32 ? Bounds{2e-3, 2e-3} : Bounds{2e-5, 2e-5};
  if (storage == NumberType::fp16) return {0x1p-11 / 8, 0x1p-11 / 2};
  return {0x1p-8 / 8, 0x1p-8};
}

void expect_near(const Gradients& made, const Gradients& expected, const Bounds& bound) {
  EXPECT_NEAR(made.loss, expected.loss, bound.logits * std::max(1.0, std::abs(expected.loss)));
  EXPECT_LT(relative_error(made.logits, expected.logits), bound.logits);
  EXPECT_LT(relative_error(made.weights, expected.weights), bound.weights);
}

void expect_like_others(const Network& network, const OnDevice::Open& open, NumberType storage,
                        bool tf32, int batch = 4, double leeway = 1) {
  SCOPED_TRACE(std::string(name(storage)) + (tf32 ? " tf32" : ""));
  const float loss_scale = storage == NumberType::fp16 ? 256 : 1;
  const NetworkTrial trial(network, batch);
  const TrainableNetworkOptions options{.batch = batch, .storage = storage};
  const Gradients made = OnDevice(trial, options, 0, open).pass(loss_scale);
  Bounds bound = bounds(storage, tf32);
  bound.logits *= leeway;
  bound.weights *= leeway;
  {
    SCOPED_TRACE("cpu");
    expect_near(made, trial.of_mode(storage, loss_scale, Arithmetic::fp32), bound);
  }
  SCOPED_TRACE("own kernels");
  expect_near(made, OnDevice(trial, options).pass(loss_scale), bound);
}

TEST_F(CudnnNetworkTest, ComputesEachKindOfLayerAsTheOthersDo) {
  const std::vector<LayerKind> all = kinds();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    const double leeway = std::holds_alternative<models::AdaptiveAveragePool>(all[i]) ? 4 : 1;
    expect_like_others(around(all[i]), by_cudnn(false), NumberType::fp32, false, 4, leeway);
    for (const NumberType storage : {NumberType::fp16, NumberType::bf16})
      expect_like_others(around(all[i]), by_cudnn(), storage, true, 4, leeway);
    // Rounding to TF32 may make another element the largest of its window.
    const bool chooses = std::holds_alternative<models::MaxPool>(all[i]);
    expect_like_others(around(all[i]), by_cudnn(), NumberType::fp32, true, 4, chooses ? 20 : 1);
  }
}

TEST_F(CudnnNetworkTest, ComputesBranchesAndFusedStepsAsTheOthersDo) {
  expect_like_others(branches(), by_cudnn(false), NumberType::fp32, false);
  expect_like_others(fused(), by_cudnn(false), NumberType::fp32, false, 4, 8);
  // Batch norm alone, of channels that cuDNN has and of others.
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16, NumberType::bf16})
    for (const std::int64_t channels : {4, 8})
      expect_like_others(around(models::BatchNorm{}, channels), by_cudnn(), storage, true, 4, 4);
  // cuDNN rounds a sum of three terms once, where the others round each sum of two.
  for (const NumberType storage : {NumberType::fp16, NumberType::bf16}) {
    expect_like_others(branches(), by_cudnn(), storage, true, 4, 8);
    expect_like_others(fused(), by_cudnn(), storage, true, 4, 8);
  }
}

// cuDNN's steps are captured as kernels are.
TEST_F(CudnnNetworkTest, ReplaysPassesToTheBit) {
  const NetworkTrial trial(fused(), 4);
  std::vector<Gradients> expected;
  for (const bool replay : {false, true}) {
    OnDevice on_device(trial, {.batch = 4, .storage = NumberType::fp16, .replay = replay}, 0,
                       by_cudnn());
    for (std::size_t pass = 0; pass < 4; ++pass) {
      const Gradients made = on_device.pass(256, pass);
      EXPECT_EQ(on_device.network().take_remark(), "");
      if (!replay) {
        expected.push_back(made);
        continue;
      }
      EXPECT_EQ(made.loss, expected[pass].loss);
      EXPECT_EQ(made.logits, expected[pass].logits);
      EXPECT_EQ(made.weights, expected[pass].weights);
    }
    if (cuda_on_host::present()) EXPECT_EQ(cuda_on_host::calls("cudaGraphLaunch") > 0, replay);
  }
}

TEST_F(CudnnNetworkTest, ComputesAZooNetworkAsTheReferenceDoes) {
  const NetworkTrial trial(models::zoo_network("cnn-small"), 2);
  expect_near(OnDevice(trial, {.batch = 2}, 0, by_cudnn(false)).pass(1), trial.of_reference(),
              {2e-5, 2e-5});
}

// Drawn graphs of layers: what a kind of layer is fused with, and how many read it, is anything.
RC_GTEST_FIXTURE_PROP(CudnnNetworkTest, ComputesADrawnNetworkAsOwnKernelsDo, ()) {
  const NetworkTrial trial(test::drawn_network(), 2);
  const Gradients made = OnDevice(trial, {.batch = 2}, 0, by_cudnn(false)).pass(1);
  const Gradients expected = OnDevice(trial, {.batch = 2}).pass(1);
  RC_ASSERT(std::abs(made.loss - expected.loss) < 1e-4 * std::max(1.0, expected.loss));
  RC_ASSERT(relative_error(made.logits, expected.logits) < 1e-4);
  RC_ASSERT(relative_error(made.weights, expected.weights) < 1e-3);
}

// A batch norm of six channels is not cuDNN's. The running statistics of the one behind it do not
// begin at a multiple of 16 bytes: it goes forward by our own kernels, and back by cuDNN.
TEST_F(CudnnNetworkTest, ComputesBatchNormsOfAnyNumberOfChannels) {
  models::NetworkBuilder net("odd", Shape::image(3, 5, 5));
  net.add("conv1", models::Convolution{.channels = 6, .kernel = square(3), .bias = false});
  net.add("bn1", models::BatchNorm{});
  net.add("relu1", models::Relu{});
  net.add("conv2", models::Convolution{.channels = 8, .kernel = square(1), .bias = false});
  net.add("bn2", models::BatchNorm{});
  net.add("relu2", models::Relu{});
  net.add("fc", models::FullyConnected{5});
  net.add("loss", models::SoftmaxCrossEntropy{});
  expect_like_others(net.build(), by_cudnn(false), NumberType::fp32, false, 8);
  if (cuda_on_host::present()) EXPECT_GT(cuda_on_host::calls("cudnnBackendExecute"), 0);
}

// cuDNN 9.19 gives wrong numbers there on an H100.
TEST_F(CudnnNetworkTest, LeavesMeanPoolsInBf16ToOwnKernels) {
  const auto libraries = cudnn::open_cudnn({.device = 0, .plans = plans()});
  const auto library = libraries->make();
  const auto computes = [&](runtime::steps::Pool::Kind kind, NumberType storage) {
    runtime::steps::Pool pool;
    pool.kind = kind;
    return library->computes(pool, storage);
  };
  EXPECT_FALSE(computes(runtime::steps::Pool::Kind::average, NumberType::bf16));
  EXPECT_TRUE(computes(runtime::steps::Pool::Kind::average, NumberType::fp16));
  EXPECT_TRUE(computes(runtime::steps::Pool::Kind::max, NumberType::bf16));
}

TEST_F(CudnnNetworkTest, GivesTheSameBitsUnderEveryOrder) {
  const NetworkTrial trial(branches(), 3);
  const TrainableNetworkOptions options{.batch = 3, .storage = NumberType::bf16};
  const Gradients expected = OnDevice(trial, options, 0, by_cudnn()).pass(1);
  for (const Order order : {Order::eager, Order::latest, Order::random}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      cuda_on_host::reset(order, seed);
      {
        OnDevice on_device(trial, options, 0, by_cudnn());
        for (int repeated = 0; repeated < 2; ++repeated) {
          const Gradients made = on_device.pass(1);
          EXPECT_EQ(made.loss, expected.loss);
          EXPECT_EQ(made.logits, expected.logits);
          EXPECT_EQ(made.weights, expected.weights);
        }
      }
      ASSERT_THAT(cuda_on_host::races(), IsEmpty()) << static_cast<int>(order) << " " << seed;
      EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
      if (!cuda_on_host::present()) return;
    }
  }
}

TEST_F(CudnnNetworkTest, EvaluatesByRunningStatisticsAsTheCpuDoes) {
  const Network network = fused();
  const NetworkTrial trial(network, 5);
  OnDevice on_device(trial, {.batch = 5, .batch_norm_momentum = 0.25, .batch_norm_epsilon = 1e-3},
                     0, by_cudnn(false));
  CpuNetwork cpu(network, {.batch = 5, .batch_norm_momentum = 0.25, .batch_norm_epsilon = 1e-3});
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
}

// Every wait of two iterations, with updates on another stream. The check for races reports those that
// the trace of a run says are needed, and no others.
TEST_F(CudnnNetworkTest, NeedsTheWaitsThatItsTraceSays) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "is a property of the doubles";
  const NetworkTrial trial(fused(), 2);
  const auto iterate = [&] {
    OnDevice on_device(trial, {.batch = 2}, 0, by_cudnn());
    for (int iteration = 0; iteration < 2; ++iteration) {
      static_cast<void>(
          on_device.network().forward(trial.images(), trial.labels(), Pass::training, 1));
      int layer = -1;
      on_device.network().compute_gradients(
          -0.01F, on_device.gradients(), [&](int parameter, const Token& ready) {
            const ParameterPlace& place =
                on_device.network().parameters()[static_cast<std::size_t>(parameter)];
            const auto first = static_cast<std::size_t>(place.offset);
            const auto count = static_cast<std::size_t>(place.elements);
            if (place.layer != layer) on_device.stream().wait_for(ready);  // of all its parameters
            layer = place.layer;
            on_device.stream().start(Add{on_device.gradients().part(first, count),
                                         on_device.weights().part(first, count)});
          });
      on_device.take_weights();
    }
    wait_for(on_device.stream().record(), device_patience, "end");
  };
  using cuda_on_host::WithoutWait;
  iterate();  // plans are made once
  cuda_on_host::reset(Order::eager, 1);
  cuda_on_host::record_waits(0);
  iterate();
  EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  const std::vector<cuda_on_host::JudgedWait> waits = cuda_on_host::judged_waits();
  int needed = 0;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    cuda_on_host::reset(Order::eager, 1);
    cuda_on_host::overlook_wait(0, static_cast<int>(i) + 1);
    iterate();
    const bool is_needed = waits[i].without == WithoutWait::races;
    EXPECT_EQ(!cuda_on_host::races().empty(), is_needed) << i + 1 << ": " << waits[i].what;
    needed += is_needed ? 1 : 0;
  }
  EXPECT_GT(needed, 50);
  EXPECT_LT(needed, static_cast<int>(waits.size()));  // those of the last take of weights, at least
  cuda_on_host::reset(Order::eager, 1);
}

// Whatever call of cuDNN fails: one line, and nothing is left.
TEST_F(CudnnNetworkTest, EndsInOneLineWhicheverCallOfCudnnFails) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double fails on demand";
  const NetworkTrial trial(around(models::BatchNorm{}), 2);
  const auto work = [&]() -> std::string {
    std::filesystem::remove(plans());
    try {
      OnDevice on_device(trial, {.batch = 2}, 0, by_cudnn(plans(), true));
      static_cast<void>(on_device.pass(1));
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  };
  int failures = 0;
  for (const char* function :
       {"cudnnCreate", "cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
        "cudnnBackendGetAttribute", "cudnnBackendFinalize", "cudnnBackendExecute"}) {
    cuda_on_host::reset(Order::eager, 1);
    EXPECT_EQ(work(), "");
    const long calls = cuda_on_host::calls(function);
    EXPECT_GT(calls, 0) << function;
    for (long number = 1; number <= calls; number += 1 + calls / 100) {
      cuda_on_host::reset(Order::eager, 1);
      cuda_on_host::fail(function, static_cast<int>(number), CUDNN_STATUS_INTERNAL_ERROR);
      const std::string error = work();
      SCOPED_TRACE(testing::Message() << function << " " << number << " " << error);
      EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
      EXPECT_EQ(cuda_on_host::cudnn::live_handles(), 0);
      EXPECT_EQ(cuda_on_host::cudnn::live_descriptors(), 0);
      if (error.empty()) continue;  // another configuration or list of them did
      ++failures;
      EXPECT_THAT(error, MatchesRegex("cannot [^\n]*"));
    }
  }
  EXPECT_GT(failures, 200);
}

// The file of plans.

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CudnnPlanFile : public CudnnNetworkTest {
 protected:
  // Makes a network, and returns the notes. `made` says whether plans were made for it.
  std::vector<std::string> notes(bool& made, const std::string& path, int batch = 2) {
    const NetworkTrial trial(around(models::BatchNorm{}), batch);
    const std::string before = contents(path);
    std::vector<std::string> notes;
    const std::unique_ptr<cuda::StepLibraries> libraries =
        cudnn::open_cudnn({.device = 0, .plans = path});
    {
      CudaDevice device;
      const CudaNetwork network(device, trial.network(), {.batch = batch}, libraries->make());
    }
    made = contents(path) != before;
    return libraries->notes();
  }
};

TEST_F(CudnnPlanFile, IsKeptForLaterRuns) {
  bool made = false;
  EXPECT_THAT(notes(made, plans()), IsEmpty());
  EXPECT_TRUE(made);
  EXPECT_THAT(notes(made, plans()), IsEmpty());
  EXPECT_FALSE(made);
  // Other shapes are added.
  const std::string before = contents(plans());
  EXPECT_THAT(notes(made, plans(), 3), IsEmpty());
  EXPECT_TRUE(made);
  EXPECT_GT(contents(plans()).size(), before.size());
  EXPECT_THAT(notes(made, plans()), IsEmpty());
  EXPECT_FALSE(made);
}

TEST_F(CudnnPlanFile, IsMadeAnewWhereItIsDamaged) {
  bool made = false;
  static_cast<void>(notes(made, plans()));
  const std::string sound = contents(plans());
  for (const std::string& damaged :
       {sound.substr(0, sound.size() / 2), std::string(), std::string("[]"), sound + "x"}) {
    std::ofstream(plans(), std::ios::binary) << damaged;
    EXPECT_THAT(notes(made, plans()), ElementsAre(AllOf(HasSubstr(plans()), HasSubstr("made anew"),
                                                        Not(HasSubstr("\n")))));
    EXPECT_EQ(contents(plans()), sound);
  }
}

TEST_F(CudnnPlanFile, IsMadeAnewForAnotherDevice) {
  bool made = false;
  static_cast<void>(notes(made, plans()));
  const std::string sound = contents(plans());
  std::string other = sound;
  const std::size_t place = other.find("132 multiprocessors");
  ASSERT_NE(place, std::string::npos);
  other.replace(place, 3, "114");
  std::ofstream(plans(), std::ios::binary) << other;
  EXPECT_THAT(notes(made, plans()), ElementsAre(HasSubstr("another device")));
  EXPECT_EQ(contents(plans()), sound);
}

TEST_F(CudnnPlanFile, IsNotedWhereItCannotBeWritten) {
  bool made = false;
  const std::string path = "/proc/paceline/plans.json";
  EXPECT_THAT(notes(made, path), ElementsAre(HasSubstr("cannot be written")));
}

TEST_F(CudnnPlanFile, StandsInTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/a", 1);
  const std::string path = cudnn::default_plan_file("cuDNN 1, device 1");
  EXPECT_THAT(path, MatchesRegex("/a/paceline/cudnn-plans-[0-9a-f]*\\.json"));
  EXPECT_NE(cudnn::default_plan_file("cuDNN 1, device 2"), path);
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/u", 1);
  EXPECT_THAT(cudnn::default_plan_file(""), HasSubstr("/home/u/.cache/paceline/"));
  unsetenv("HOME");
  EXPECT_EQ(cudnn::default_plan_file(""), "");
}

}  // namespace
}  // namespace paceline::runtime
