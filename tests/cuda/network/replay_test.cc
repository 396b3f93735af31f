// Passes as CUDA graphs: the bits of passes that are started kernel by kernel, in every order, and what
// happens where something cannot be captured.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "runtime/device/copies.h"
#include "runtime/network/cuda/cuda_network.h"
#include "tests/cuda/network/training_rig.h"
#include "tests/support/network_trial.h"
#include "tests/support/thoroughness.h"

namespace paceline::test {
namespace {

using runtime::CudaNetwork;
using runtime::Pass;
using runtime::Token;
using runtime::TrainableNetworkOptions;

const std::uint64_t seeds = cases(2, 5);

// What passes give: losses, logits, gradients, statistics.
using Bits = std::vector<std::vector<float>>;

// A network that trains by gradient descent on its own device.
class Descent {
 public:
  Descent(const NetworkTrial& trial, const TrainableNetworkOptions& options)
      : trial_(trial),
        network_(device_, trial.network(), options),
        stream_(device_.make_stream()),
        weights_(floats()) {
    for (Memory& gradients : gradients_) gradients = floats();
    copy_from_host(device_, *stream_, trial.weights(), weights_.array(NumberType::fp32));
    take_weights();
  }
  CudaNetwork& network() { return network_; }

  // One pass and step, by the gradients in one of two arrays.
  void step(int iteration, Bits& bits) {
    const auto images = trial_.images();
    const auto seed = static_cast<std::uint64_t>(iteration);
    const ArrayView gradients =
        gradients_.at(static_cast<std::size_t>(iteration % 2)).array(NumberType::fp32);
    bits.push_back(
        {static_cast<float>(network_.forward(images, trial_.labels(), Pass::training, seed).loss)});
    bits.push_back(network_.logits());
    Token last;
    int announced = 0;
    network_.compute_gradients(-1.0F / static_cast<float>(8 << iteration % 3), gradients,
                               [&](int parameter, const Token& token) {
                                 EXPECT_EQ(parameter, announced++);
                                 last = token;
                               });
    EXPECT_EQ(announced, static_cast<int>(network_.parameters().size()));
    if (iteration % 2 == 1) bits.push_back({static_cast<float>(network_.outcome().loss)});
    bits.push_back(network_.logits());
    stream_->wait_for(last);
    stream_->start(runtime::Add{gradients, weights_.array(NumberType::fp32)});
    take_weights();
    bits.push_back(runtime::to_host(device_, *stream_, gradients));
    bits.push_back(runtime::to_host(device_, *stream_, network_.running_statistics()));
    if (iteration % 3 == 2) {
      const auto one = static_cast<std::size_t>(trial_.network().input().elements());
      const auto outcome = network_.forward(std::span(images).first(one),
                                            std::span(trial_.labels()).first(1), Pass::evaluation);
      bits.push_back({static_cast<float>(outcome.loss)});
    }
  }

 private:
  Memory floats() {
    return device_.allocate(trial_.weights().size() * sizeof(float), MemoryKind::device);
  }
  void take_weights() {
    stream_->wait_for(network_.take_weights(weights_.array(NumberType::fp32), 0,
                                            static_cast<int>(network_.parameters().size()),
                                            stream_->record()));
  }

  const NetworkTrial& trial_;
  CudaDevice device_;
  CudaNetwork network_;
  std::unique_ptr<Stream> stream_;
  Memory weights_;
  std::array<Memory, 2> gradients_;
};

// A network with dropout, whose masks follow the seed, and batch norms.
models::Network small_network() {
  using namespace models;  // NOLINT: the layers' names
  NetworkBuilder net("small", Shape::image(3, 6, 6));
  net.add("stem", Convolution{.channels = 4, .kernel = square(3), .padding = square(1)});
  net.add("norm", BatchNorm{});
  net.add("relu", Relu{});
  net.add("left", Convolution{.channels = 4, .kernel = square(1)}, {"relu"});
  net.add("sum", Add{}, {"left", "relu"});
  net.add("pool", MaxPool{{.kernel = square(2), .stride = square(2)}});
  net.add("dropout", Dropout{0.4});
  net.add("fc", FullyConnected{5});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

long launches() {
  return cuda_on_host::calls("cudaGraphLaunch");
}

TEST(Replay, HasTheBitsOfKernelsThatAreStartedOneByOne) {
  const models::Network network = small_network();
  const NetworkTrial trial(network, 3);
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16}) {
    Bits expected;
    in_every_order(seeds, [&](std::uint64_t) {
      for (const bool replay : {false, true}) {
        Descent descent(trial, {.batch = 3, .storage = storage, .replay = replay});
        // Parameters in backward order: fc, left, norm, stem.
        descent.network().announce_at({1, 5});
        Bits bits;
        for (int i = 0; i < 7; ++i) descent.step(i, bits);
        EXPECT_EQ(descent.network().take_remark(), "");
        if (expected.empty()) expected = bits;
        EXPECT_EQ(bits, expected) << "with graphs: " << replay;
      }
    });
  }
}

// 8 takes of weights, 7 training passes, 7 backward passes, 2 evaluations: the first of each kind is
// started kernel by kernel. Behind the last gradient a backward pass has nothing.
TEST(Replay, LaunchesAGraphForEachPart) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double counts calls";
  const models::Network network = small_network();
  const NetworkTrial trial(network, 3);
  const auto launches_of = [&](bool replay, const std::vector<int>& announced) {
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
    Descent descent(trial, {.batch = 3, .replay = replay});
    if (!announced.empty()) descent.network().announce_at(announced);
    Bits bits;
    for (int i = 0; i < 7; ++i) descent.step(i, bits);
    return launches();
  };
  EXPECT_EQ(launches_of(false, {}), 0);
  EXPECT_EQ(launches_of(true, {7}), 7 + 6 + 6 + 1);
  EXPECT_EQ(launches_of(true, {1, 7}), 7 + 6 + 2 * 6 + 1);
}

TEST(Replay, LeavesLayersToAnObserver) {
  class Observer : public runtime::LayerObserver {
   public:
    void began(bool /*backward*/, int /*layer*/) override { ++told; }
    void ended(bool /*backward*/, int /*layer*/) override { ++told; }
    int told = 0;
  } observer;
  const models::Network network = small_network();
  const NetworkTrial trial(network, 3);
  in_every_order(1, [&](std::uint64_t) {
    Bits expected;
    Bits bits;
    Descent alone(trial, {.batch = 3, .replay = false});
    Descent watched(trial, {.batch = 3});
    for (int i = 0; i < 6; ++i) {
      alone.step(i, expected);
      observer.told = 0;
      watched.network().observe(i % 2 == 1 ? &observer : nullptr);
      watched.step(i, bits);
      const int passes = i % 3 == 2 ? 3 : 2;
      EXPECT_EQ(observer.told,
                i % 2 == 1 ? 2 * passes * static_cast<int>(network.layers().size()) : 0);
    }
    EXPECT_EQ(bits, expected);
  });
}

// A call that fails while a pass is captured: passes go on without graphs, with one line.
TEST(Replay, GoesOnWithoutGraphsWhereACaptureFails) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double fails on demand";
  const models::Network network = small_network();
  const NetworkTrial trial(network, 3);
  const auto run = [&](const std::function<void()>& break_it, std::string& remark) {
    cuda_on_host::reset(cuda_on_host::Order::latest, 1);
    Bits bits;
    {
      Descent descent(trial, {.batch = 3});
      break_it();
      for (int i = 0; i < 5; ++i) {
        descent.step(i, bits);
        const std::string said = descent.network().take_remark();
        EXPECT_TRUE(said.empty() || remark.empty()) << "it is said once";
        if (!said.empty()) remark = said;
      }
    }
    EXPECT_THAT(cuda_on_host::leaks(), ::testing::IsEmpty());
    EXPECT_THAT(cuda_on_host::races(), ::testing::IsEmpty());
    return bits;
  };
  std::string none;
  long before = 0;
  const Bits expected = run([&] { before = cuda_on_host::calls("cudaLaunchKernelExC"); }, none);
  EXPECT_EQ(none, "");
  const long kernels = cuda_on_host::calls("cudaLaunchKernelExC") - before;
  int refused = 0;
  for (const char* function :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate"}) {
    for (const int call : {1, 2, 3}) {
      std::string remark;
      EXPECT_EQ(run([&] { cuda_on_host::fail(function, call, cudaErrorNotSupported); }, remark),
                expected);
      EXPECT_THAT(remark, ::testing::MatchesRegex("CUDA graphs are off: cannot [^\n]*"))
          << function << " " << call;
      ++refused;
    }
  }
  EXPECT_EQ(refused, 9);
  // A kernel that the capture refuses: those of the second pass and later.
  int fell_back = 0;
  for (long call = 1; call <= kernels; call += 1 + kernels / 40) {
    std::string remark;
    const std::string error = run_error_of([&] {
      EXPECT_EQ(run(
                    [&] {
                      cuda_on_host::fail("cudaLaunchKernelExC", static_cast<int>(call),
                                         cudaErrorStreamCaptureUnsupported);
                    },
                    remark),
                expected);
      return 0;
    });
    // Where the pass was not captured, the error is the pass's.
    EXPECT_TRUE((error == "no error") != remark.empty()) << call << ": " << error << remark;
    fell_back += remark.empty() ? 0 : 1;
  }
  EXPECT_GT(fell_back, 3);
}

// Neither pass asks the device for anything, also where memory of the pass before may be in use.
TEST(Passes, DoNotWaitForTheDevice) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double counts calls";
  const models::Network network = small_network();
  const NetworkTrial trial(network, 3);
  cuda_on_host::reset(cuda_on_host::Order::latest, 1);
  CudaDevice device;
  CudaNetwork a(device, network, {.batch = 3});
  CudaNetwork b(device, network, {.batch = 3});
  const std::unique_ptr<Stream> stream = device.make_stream();
  const Memory weights =
      device.allocate(trial.weights().size() * sizeof(float), MemoryKind::device);
  const Memory gradients = device.allocate(weights.size(), MemoryKind::device);
  copy_from_host(device, *stream, trial.weights(), weights.array(NumberType::fp32));
  for (CudaNetwork* net : {&a, &b})
    stream->wait_for(net->take_weights(weights.array(NumberType::fp32), 0,
                                       static_cast<int>(net->parameters().size()),
                                       stream->record()));
  std::vector<double> losses;
  for (int pass = 0; pass < 3; ++pass) {
    const long before = cuda_on_host::calls("cudaEventQuery");
    a.start_forward(trial.images(), trial.labels(), Pass::training, 1);
    a.compute_gradients(1, gradients.array(NumberType::fp32), nullptr);
    if (pass == 0) EXPECT_EQ(cuda_on_host::calls("cudaEventQuery"), before);
    losses.push_back(a.outcome().loss);
    losses.push_back(b.forward(trial.images(), trial.labels(), Pass::training, 1).loss);
    EXPECT_EQ(losses[losses.size() - 2], losses.back());
  }
  EXPECT_THAT(cuda_on_host::races(), ::testing::IsEmpty());
}

// Pinned memory is not written while the pass before reads it, though nobody has asked for its outcome.
TEST(Passes, MayFollowEachOtherWithoutTheirOutcomes) {
  const models::Network network = small_network();
  const NetworkTrial trial(network, 3);
  std::vector<float> expected;
  in_every_order(seeds, [&](std::uint64_t) {
    CudaDevice device;
    CudaNetwork passes(device, network, {.batch = 3});
    const std::unique_ptr<Stream> stream = device.make_stream();
    const Memory weights =
        device.allocate(trial.weights().size() * sizeof(float), MemoryKind::device);
    const Memory gradients = device.allocate(weights.size(), MemoryKind::device);
    copy_from_host(device, *stream, trial.weights(), weights.array(NumberType::fp32));
    stream->wait_for(passes.take_weights(weights.array(NumberType::fp32), 0,
                                         static_cast<int>(passes.parameters().size()),
                                         stream->record()));
    std::vector<float> made;
    for (int pass = 0; pass < 4; ++pass) {
      passes.start_forward(trial.images(), trial.labels(), Pass::training,
                           static_cast<std::uint64_t>(pass));
      passes.compute_gradients(static_cast<float>(1 + pass), gradients.array(NumberType::fp32),
                               [&](int, const Token& token) { stream->wait_for(token); });
    }
    made.push_back(static_cast<float>(passes.outcome().loss));
    for (const float g : runtime::to_host(device, *stream, gradients.array(NumberType::fp32)))
      made.push_back(g);
    if (expected.empty()) expected = made;
    EXPECT_EQ(made, expected);
  });
}

class ReplayedTraining : public ::testing::TestWithParam<Setting> {};

TEST_P(ReplayedTraining, HasTheBitsOfOneWithoutGraphs) {
  const Job job(GetParam());
  std::vector<float> expected;
  in_every_order(seeds, [&](std::uint64_t) {
    for (const bool replay : {false, true}) {
      const runtime::TrainingOutcome made =
          job.run([&](const runtime::TrainingRequest& request, const runtime::Endpoint& endpoint) {
            runtime::TrainingRequest changed = request;
            changed.replay = replay;
            return on_cuda(changed, endpoint);
          });
      if (expected.empty()) expected = made.weights;
      EXPECT_EQ(made.weights, expected) << "with graphs: " << replay;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, ReplayedTraining, ::testing::ValuesIn(settings),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace paceline::test
