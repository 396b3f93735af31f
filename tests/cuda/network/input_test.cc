// Batches that are brought to a device beside the pass before.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/device/cuda/cuda_stream.h"
#include "tests/cuda/device/rig.h"
#include "tests/cuda/network/rig.h"

namespace paceline::test {
namespace {

using runtime::ConstArrayView;

constexpr int batch = 3;
constexpr std::uint64_t seeds = 5;

// Batches in pinned memory, as a loader has them.
class Batches {
 public:
  explicit Batches(int count) {
    for (int i = 0; i < count; ++i) {
      trials_.push_back(
          std::make_unique<NetworkTrial>(branches(), batch, static_cast<std::uint64_t>(1 + i)));
    }
  }
  [[nodiscard]] const NetworkTrial& at(int i) const {
    return *trials_.at(static_cast<std::size_t>(i));
  }
  [[nodiscard]] int count() const { return static_cast<int>(trials_.size()); }

 private:
  std::vector<std::unique_ptr<NetworkTrial>> trials_;
};

// Trains on all batches, as training does: the next one is brought when a pass is started. `slots` of
// pinned memory are written in turn, each as soon as the token of what was brought from it is done.
std::vector<double> losses_of(OnDevice& on_device, const Batches& batches, std::size_t slots) {
  std::vector<Memory> memory;
  std::vector<Token> read(slots);
  for (std::size_t i = 0; i < slots; ++i)
    memory.push_back(on_device.device().allocate(batches.at(0).images().size() * sizeof(float),
                                                 MemoryKind::pinned));
  const auto bring = [&](int i) {
    const std::size_t slot = static_cast<std::size_t>(i) % slots;
    runtime::wait_for(read[slot], Seconds{60}, "write a batch");
    const ArrayView view = memory[slot].array(NumberType::fp32);
    std::ranges::copy(batches.at(i).images(), runtime::host_floats(view).begin());
    read[slot] = on_device.network().bring(view, batches.at(i).labels());
  };
  std::vector<double> losses;
  bring(0);
  for (int i = 0; i < batches.count(); ++i) {
    on_device.network().start_pass(Pass::training, 1);
    on_device.network().compute_gradients(1, on_device.gradients(), nullptr);
    if (i + 1 < batches.count()) bring(i + 1);
    losses.push_back(on_device.network().outcome().loss);
  }
  return losses;
}

TEST(Input, OfTheNextPassMayBeBroughtBesideOne) {
  const Batches batches(5);
  std::vector<double> expected;
  for (int i = 0; i < batches.count(); ++i) {
    OnDevice alone(batches.at(0), {.batch = batch});
    expected.push_back(
        alone.network()
            .forward(batches.at(i).images(), batches.at(i).labels(), Pass::training, 1)
            .loss);
  }
  in_every_order(seeds, [&](std::uint64_t) {
    for (const std::size_t slots : {1U, 2U, 3U}) {
      OnDevice on_device(batches.at(0), {.batch = batch});
      EXPECT_EQ(losses_of(on_device, batches, slots), expected);
    }
    EXPECT_THAT(cuda_on_host::races(), ::testing::IsEmpty());
  });
}

// On the double's clock, where a copy takes less than a pass: only the first copy is waited for.
TEST(Input, TakesNoTimeWhereAPassTakesLonger) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double has a clock of its own";
  const Batches batches(6);
  constexpr double copy_s = 400e-6;
  const auto seconds = [&](bool ahead, const char* clock) {
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
    OnDevice on_device(batches.at(0), {.batch = batch, .replay = false});
    std::vector<Memory> memory;
    for (int i = 0; i < batches.count(); ++i)
      memory.push_back(on_device.device().allocate(batches.at(0).images().size() * sizeof(float),
                                                   MemoryKind::pinned));
    auto& stream = dynamic_cast<runtime::cuda::CudaStream&>(on_device.stream());
    const auto begin = cuda::make_event_handle(true);
    const auto end = cuda::make_event_handle(true);
    const auto bring = [&](int i) {
      static_cast<void>(on_device.network().bring(
          memory[static_cast<std::size_t>(i)].array(NumberType::fp32), batches.at(i).labels()));
    };
    runtime::wait_for(stream.record(), Seconds{60}, "begin");
    cuda_on_host::set_clock(clock);
    cuda::check(cudaEventRecord(begin.get(), stream.handle()), "begin");
    for (int i = 0; i < batches.count(); ++i) {
      if (i == 0 || !ahead) bring(i);
      on_device.network().start_pass(Pass::training, 1);
      Token last;
      on_device.network().compute_gradients(1, on_device.gradients(),
                                            [&](int, const Token& token) { last = token; });
      if (ahead && i + 1 < batches.count()) bring(i + 1);
      stream.wait_for(last);
      runtime::wait_for(stream.record(), Seconds{60},
                        "compute");  // as training waits for gradients
    }
    cuda::check(cudaEventRecord(end.get(), stream.handle()), "end");
    runtime::wait_for(stream.record(), Seconds{60}, "end");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "read the time");
    cuda_on_host::set_clock("");
    return static_cast<double>(ms) * 1e-3;
  };
  // Images alone have more than 500 bytes.
  const char* const with_copies = "bodies=0; copy host to device=400e-6; *=50e-6";
  const double ahead = seconds(true, with_copies);
  const double behind = seconds(false, with_copies);
  // Each pass but the first finds its images there. Labels and parameters are copied in both.
  EXPECT_NEAR(behind - ahead, (batches.count() - 1) * copy_s, 1e-4);
}

}  // namespace
}  // namespace paceline::test
