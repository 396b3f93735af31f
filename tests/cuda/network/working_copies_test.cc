// An update that writes a network's working copies has the bits of an update behind which the network
// takes its weights, in every order of the doubles; and it waits for what reads the copies.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/training/optimizer.h"
#include "tests/cuda/device/rig.h"
#include "tests/cuda/network/rig.h"

namespace paceline::test {
namespace {

using runtime::Optimizer;
using runtime::OptimizerRecipe;
using runtime::WorkingCopies;
using runtime::WorkingCopy;

OptimizerRecipe lars() {
  OptimizerRecipe recipe;
  recipe.lars.enabled = true;
  return recipe;
}

// Filters of several pixels and of one, of a padded first layer and of groups; a fully connected layer
// over an image; vectors of both types. 10 classes put what follows them out of step.
Network all_layouts() {
  NetworkBuilder net("layouts", Shape::image(3, 12, 12));
  net.add("first", models::Convolution{.channels = 16, .kernel = square(5), .padding = square(2)});
  net.add("norm", models::BatchNorm{});
  net.add("relu", models::Relu{});
  net.add("point", models::Convolution{.channels = 24, .kernel = square(1), .bias = false});
  net.add("three", models::Convolution{.channels = 32, .kernel = square(3)});
  net.add("groups", models::Convolution{.channels = 16, .kernel = square(3), .groups = 4});
  net.add("pool", models::MaxPool{{.kernel = square(2), .stride = square(2)}});
  net.add("hidden", models::FullyConnected{40});
  net.add("fc", models::FullyConnected{10});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// A network on a device, and an optimizer that updates it by the gradients of its passes.
class Trained {
 public:
  Trained(const NetworkTrial& trial, const TrainableNetworkOptions& options)
      : on_device_(trial, options),
        optimizer_(on_device_.device(), lars(), network().parameters()),
        update_(on_device_.device().make_stream()),
        other_gradients_(device().allocate(trial.weights().size() * 4, MemoryKind::device)) {}

  CudaNetwork& network() { return on_device_.network(); }
  CudaDevice& device() { return on_device_.device(); }
  Stream& stream() { return *update_; }
  Gradients pass(std::uint64_t seed) { return on_device_.pass(64, seed); }
  // Starts a pass that nobody waits for, and whose gradients no update reads.
  void start_pass(const NetworkTrial& trial) {
    network().start_forward(trial.images(), trial.labels(), Pass::training, 1);
    network().compute_gradients(1, other_gradients_.array(NumberType::fp32), nullptr);
  }

  void update(const WorkingCopies* copies) {
    optimizer_.step(*update_, on_device_.weights(), on_device_.gradients(), 1.0F / 64, 0.3, 0,
                    copies);
  }
  void take_weights() {
    update_->wait_for(network().take_weights(on_device_.weights(), 0,
                                             static_cast<int>(network().parameters().size()),
                                             update_->record()));
  }
  void update_then_take() {
    update(nullptr);
    take_weights();
  }
  void update_with_copies() {
    update_->wait_for(network().working_copies_read());
    update(network().working_copies());
    network().use_working_copies(update_->record());
  }
  // The bytes of all copies, and the weights.
  std::vector<Bytes> copies() {
    std::vector<Bytes> all;
    for (const WorkingCopy& copy : network().working_copies()->copies()) {
      const Memory staging = device().allocate(copy.target.bytes(), MemoryKind::pinned);
      ArrayView to = staging.array(copy.target.type);
      update_->start(runtime::Cast{copy.target, to.part(0, copy.target.elements)});
      runtime::wait_for(update_->record(), Seconds{60}, "read a copy");
      const std::span<const std::byte> bytes = staging.bytes().first(copy.target.bytes());
      all.emplace_back(bytes.begin(), bytes.end());
    }
    const std::vector<float> weights = runtime::to_host(device(), *update_, on_device_.weights());
    const auto bytes = std::as_bytes(std::span(weights));
    all.emplace_back(bytes.begin(), bytes.end());
    return all;
  }

 private:
  OnDevice on_device_;
  Optimizer optimizer_;
  std::unique_ptr<Stream> update_;
  Memory other_gradients_;
};

TEST(WorkingCopies, HaveTheBitsOfAnUpdateAndACast) {
  const NetworkTrial trial(all_layouts(), 2);
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
    SCOPED_TRACE(std::string(models::name(storage)));
    in_every_order(2, [&](std::uint64_t) {
      Trained taking(trial, {.batch = 2, .storage = storage});
      Trained writing(trial, {.batch = 2, .storage = storage});
      for (std::uint64_t i = 0; i < 4; ++i) {  // the second pass on are graphs
        const Gradients expected = taking.pass(i);
        const Gradients made = writing.pass(i);
        ASSERT_EQ(made.logits, expected.logits) << "pass " << i;
        ASSERT_EQ(made.weights, expected.weights) << "pass " << i;
        taking.update_then_take();
        writing.update_with_copies();
      }
      EXPECT_EQ(writing.copies(), taking.copies());
    });
  }
}

// Either wait of such an update is taken away, and the double sees that nothing orders the update and
// a pass.
TEST(WorkingCopies, NeedBothWaits) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double sees races";
  const NetworkTrial trial(all_layouts(), 2);
  enum class Missing { none, read, written };
  for (const bool replay : {false, true}) {
    for (const auto order :
         {cuda_on_host::Order::eager, cuda_on_host::Order::latest, cuda_on_host::Order::random}) {
      for (const Missing missing : {Missing::none, Missing::read, Missing::written}) {
        cuda_on_host::reset(order, 1);
        Trained trained(trial, {.batch = 2, .storage = NumberType::fp16, .replay = replay});
        for (std::uint64_t i = 0; i < 2; ++i) trained.pass(i);
        trained.start_pass(trial);
        if (missing != Missing::read)
          trained.stream().wait_for(trained.network().working_copies_read());
        trained.update(trained.network().working_copies());
        if (missing != Missing::written)
          trained.network().use_working_copies(trained.stream().record());
        trained.start_pass(trial);
        runtime::wait_for(trained.stream().record(), Seconds{60}, "end");
        static_cast<void>(trained.network().outcome());
        EXPECT_EQ(cuda_on_host::races().empty(), missing == Missing::none)
            << ::testing::PrintToString(cuda_on_host::races()) << '\n'
            << static_cast<int>(missing) << ", graphs: " << replay;
      }
    }
  }
}

// On the double's clock, which counts the bytes that kernels say they touch: the masters are not read
// once more, and no kernel is started for each tensor.
TEST(WorkingCopies, SaveReadingTheMastersAgain) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double has a clock of bytes";
  const NetworkTrial trial(all_layouts(), 2);
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  Trained trained(trial, {.batch = 2, .storage = NumberType::fp16, .replay = false});
  trained.pass(1);
  trained.update_with_copies();  // makes the tables
  auto& stream = dynamic_cast<runtime::cuda::CudaStream&>(trained.stream());
  const auto begin = runtime::cuda::make_event_handle(true);
  const auto end = runtime::cuda::make_event_handle(true);
  const auto spent = [&](const char* clock, const auto& work) {
    runtime::wait_for(stream.record(), Seconds{60}, "begin");
    cuda_on_host::set_clock(clock);
    runtime::cuda::check(cudaEventRecord(begin.get(), stream.handle()), "begin");
    work();
    runtime::cuda::check(cudaEventRecord(end.get(), stream.handle()), "end");
    runtime::wait_for(stream.record(), Seconds{60}, "end");
    float ms = 0;
    runtime::cuda::check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "read the time");
    cuda_on_host::set_clock("");
    return static_cast<double>(ms);
  };
  const auto of = [&](const char* clock, const char* what, bool writing) {
    const double ms =
        spent(clock, [&] { writing ? trained.update_with_copies() : trained.update_then_take(); });
    RecordProperty(what, static_cast<int>(std::lround(ms)));
    return ms;
  };
  // A byte and a kernel take a millisecond each.
  const double saved_bytes =
      of("*=0+1e3", "bytes, update then casts", false) - of("*=0+1e3", "bytes, fused", true);
  const double saved_kernels =
      of("*=1e-3", "kernels, update then casts", false) - of("*=1e-3", "kernels, fused", true);
  const auto elements = static_cast<double>(trained.network().parameter_elements());
  const auto tensors = static_cast<double>(trained.network().parameters().size());
  EXPECT_NEAR(saved_kernels, tensors, 1e-3);
  // A fused update reads tables, too, which take less than one number in a hundred.
  EXPECT_LE(saved_bytes, 4 * elements);
  EXPECT_GE(saved_bytes, 3.5 * elements);
}

}  // namespace
}  // namespace paceline::test
