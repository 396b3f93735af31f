// A CUDA device keeps the promises of the device seam, and its failures are one clear line.
#include "runtime/device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <thread>

#include "runtime/device/copies.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "tests/cuda/device/rig.h"

namespace paceline::test {
namespace {

using runtime::Add;
using runtime::Cast;
using runtime::Fill;
using runtime::Kernel;
using runtime::Token;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Seconds long_enough{60};

std::vector<float> values_of(Device& device, Stream& stream, const ArrayView& array) {
  return runtime::to_host(device, stream, array);
}

// Faults are injected into the doubles only.
#define ONLY_ON_DOUBLES() \
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the doubles have faults"

TEST(CudaDevice, SaysWhatItIs) {
  in_every_order(1, [](std::uint64_t) {
    ASSERT_GT(CudaDevice::count(), 0);
    const CudaDevice device;
    EXPECT_EQ(device.name(), "cuda");
    EXPECT_EQ(device.index(), 0);
    EXPECT_THAT(device.description(), HasSubstr(", sm_"));
    EXPECT_EQ(device.fastest(), MemoryKind::device);
    EXPECT_TRUE(device.takes().contains(MemoryKind::pinned));
    EXPECT_FALSE(device.takes().contains(MemoryKind::host));
  });
}

TEST(CudaDevice, SaysThatThereIsNone) {
  ONLY_ON_DOUBLES();
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  const auto make = [](int index) {
    return run_error_of([index] {
      CudaDevice device(index);
      return 0;
    });
  };
  cuda_on_host::set_devices(2);
  EXPECT_EQ(CudaDevice::count(), 2);
  EXPECT_EQ(make(2), "cannot use CUDA device 2: there are 2, numbered from 0");
  EXPECT_EQ(make(-1), "cannot use CUDA device -1: there are 2, numbered from 0");
  cuda_on_host::set_devices(0);
  EXPECT_EQ(CudaDevice::count(), 0);
  EXPECT_EQ(make(0), "cannot use a CUDA device: no CUDA device was found");
  cuda_on_host::set_devices(1);
  cuda_on_host::fail("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
  EXPECT_EQ(make(0), "cannot use a CUDA device: no CUDA device was found");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cuda_on_host::fail("cudaGetDeviceCount", 1, cudaErrorSystemDriverMismatch);
  EXPECT_THAT(make(0), HasSubstr("cannot count CUDA devices: "));
}

TEST(CudaDevice, AllocatesEveryKindOfAnySize) {
  in_every_order(1, [](std::uint64_t) {
    CudaDevice device;
    for (const MemoryKind kind : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device}) {
      for (const std::size_t bytes : {0UL, 1UL, 4097UL}) {
        const Memory memory = device.allocate(bytes, kind);
        EXPECT_EQ(memory.size(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0U);
        if (bytes > 0) EXPECT_EQ(memory.kind(), kind);
        if (kind != MemoryKind::device) std::ranges::fill(memory.bytes(), std::byte{1});
      }
    }
  });
}

TEST(CudaDevice, SaysThatItsMemoryIsFull) {
  ONLY_ON_DOUBLES();
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  cuda_on_host::limit_memory(1000);
  CudaDevice device;
  EXPECT_EQ(run_error_of([&] { return device.allocate(1001, MemoryKind::device).size(); }),
            "cannot allocate 1001 bytes of memory of CUDA device 0: out of memory "
            "(cudaErrorMemoryAllocation)");
  EXPECT_EQ(device.allocate(1000, MemoryKind::device).size(), 1000U);
}

TEST(CudaStream, RunsKernelsInOrder) {
  in_every_order(10, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    EXPECT_TRUE(stream->record().is_done());
    const Memory memory = device.allocate(800, MemoryKind::device);
    const ArrayView a = memory.array(NumberType::fp32).part(0, 100);
    const ArrayView b = memory.array(NumberType::fp32).part(100, 100);
    stream->start(Fill{a, 1});
    stream->start(Fill{b, 2});
    stream->start(Add{a, b});
    stream->start(Add{b, a});
    const Token token = stream->record();
    EXPECT_TRUE(token.wait(long_enough));
    EXPECT_TRUE(token.is_done());
    EXPECT_TRUE(token.wait(Seconds{0}));
    EXPECT_EQ(values_of(device, *stream, a), std::vector<float>(100, 4));
    EXPECT_EQ(values_of(device, *stream, b), std::vector<float>(100, 3));
  });
}

TEST(CudaStream, IsDoneOnceTestedOftenEnough) {
  in_every_order(10, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    const Memory pinned = device.allocate(400, MemoryKind::pinned);
    stream->start(Fill{pinned.array(NumberType::fp32), 7});
    const Token token = stream->record();
    while (!token.is_done()) std::this_thread::yield();
    EXPECT_EQ(runtime::host_floats(pinned.array(NumberType::fp32))[99], 7);
  });
}

// Tokens are points: a later one covers an earlier one, and one that was recorded twice is one.
TEST(CudaStream, TokensMayBeTestedInAnyOrder) {
  in_every_order(10, [](std::uint64_t seed) {
    CudaDevice device;
    const auto stream = device.make_stream();
    const Memory memory = device.allocate(400, MemoryKind::device);
    std::vector<Token> tokens;
    for (int i = 0; i < 100; ++i) {
      stream->start(Fill{memory.array(NumberType::fp32), static_cast<float>(i)});
      tokens.push_back(stream->record());
      EXPECT_EQ(stream->record().point(), tokens.back().point());
    }
    Random random(seed);
    for (int i = 0; i < 50; ++i) {
      const std::size_t at = random.below(tokens.size());
      EXPECT_TRUE(tokens[at].wait(long_enough));
      for (std::size_t k = 0; k <= at; ++k) ASSERT_TRUE(tokens[k].is_done()) << k;
    }
  });
}

// Events are used again, also where nobody tests the tokens.
TEST(CudaStream, KeepsFewEvents) {
  ONLY_ON_DOUBLES();
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  CudaDevice device;
  const auto stream = device.make_stream();
  const Memory memory = device.allocate(4, MemoryKind::device);
  for (int i = 0; i < 1000; ++i) {
    stream->start(Fill{memory.array(NumberType::fp32), 1});
    static_cast<void>(stream->record());
  }
  EXPECT_LT(cuda_on_host::calls("cudaEventCreateWithFlags"), 64);
}

TEST(CudaStream, WaitsForAnotherStreamWithoutTheHost) {
  in_every_order(20, [](std::uint64_t) {
    CudaDevice device;
    const auto one = device.make_stream();
    const auto two = device.make_stream();
    const Memory memory = device.allocate(800, MemoryKind::device);
    const ArrayView a = memory.array(NumberType::fp32).part(0, 100);
    const ArrayView b = memory.array(NumberType::fp32).part(100, 100);
    const long before = cuda_on_host::calls("cudaEventQuery");
    two->wait_for(Token());
    for (int i = 0; i < 5; ++i) {
      one->start(Fill{a, static_cast<float>(i)});
      two->wait_for(one->record());
      two->start(Cast{a, b});
      one->wait_for(two->record());
    }
    EXPECT_EQ(cuda_on_host::calls("cudaEventQuery"), before);
    EXPECT_EQ(values_of(device, *two, b), std::vector<float>(100, 4));
  });
}

TEST(CudaStream, IsFoundNotToWait) {
  ONLY_ON_DOUBLES();
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  CudaDevice device;
  const auto one = device.make_stream();
  const auto two = device.make_stream();
  const Memory memory = device.allocate(400, MemoryKind::device);
  one->start(Fill{memory.array(NumberType::fp32), 1});
  two->start(Fill{memory.array(NumberType::fp32), 2});
  EXPECT_THAT(cuda_on_host::races(), SizeIs(1));
}

// A source that is not of this device is waited for by the host.
class Elsewhere final : public Token::Source {
 public:
  bool is_done(std::uint64_t) override { return waits > 0; }
  bool wait(std::uint64_t, Seconds longest) override {
    ++waits;
    patience = longest;
    return true;
  }
  int waits = 0;
  Seconds patience;
};

TEST(CudaStream, WaitsForOtherSourcesOnTheHost) {
  in_every_order(1, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    Elsewhere elsewhere;
    stream->wait_for(Token(elsewhere, 1));
    EXPECT_EQ(elsewhere.waits, 1);
    EXPECT_EQ(elsewhere.patience.value(), runtime::device_patience.value());
  });
}

TEST(CudaStream, WaitsForStreamsOfOtherDevices) {
  if (CudaDevice::count() < 2) GTEST_SKIP() << "there is one device";
  in_every_order(10, [](std::uint64_t) {
    CudaDevice zero(0);
    CudaDevice one(1);
    const auto from = zero.make_stream();
    const auto to = one.make_stream();
    const Memory pinned = zero.allocate(400, MemoryKind::pinned);
    const Memory own = one.allocate(400, MemoryKind::device);
    from->start(Fill{pinned.array(NumberType::fp32), 3});
    to->wait_for(from->record());
    to->start(Cast{pinned.array(NumberType::fp32), own.array(NumberType::fp32)});
    EXPECT_EQ(values_of(one, *to, own.array(NumberType::fp32)), std::vector<float>(100, 3));
  });
}

// An executor of its own device, whose points are events on a stream of its own.
class OwnStream final : public runtime::cuda::CudaTokenSource {
 public:
  OwnStream() : handle_(runtime::cuda::make_stream_handle()), points_(0, "copy") {}
  Token copy(const Memory& from, const Memory& to) {
    runtime::cuda::check(
        cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDefault, handle_.get()),
        "copy");
    return {*this, points_.record(handle_.get())};
  }
  [[nodiscard]] int device_index() const override { return 0; }
  void make_wait(cudaStream_t stream, std::uint64_t point) override {
    points_.make_wait(stream, point);
  }
  bool is_done(std::uint64_t point) override { return points_.is_done(point); }
  bool wait(std::uint64_t point, Seconds longest) override { return points_.wait(point, longest); }

 private:
  runtime::cuda::StreamHandle handle_;
  runtime::cuda::EventPoints points_;
};

TEST(CudaStream, WaitsForExecutorsOfItsDeviceWithoutTheHost) {
  in_every_order(20, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    const Memory from = device.allocate(400, MemoryKind::pinned);
    std::ranges::fill(runtime::host_floats(from.array(NumberType::fp32)), 5.0F);
    const Memory to = device.allocate(400, MemoryKind::device);
    OwnStream executor;
    const long before = cuda_on_host::calls("cudaEventQuery");
    const Token copied = executor.copy(from, to);
    stream->wait_for(copied);
    EXPECT_EQ(cuda_on_host::calls("cudaEventQuery"), before);
    EXPECT_EQ(values_of(device, *stream, to.array(NumberType::fp32)), std::vector<float>(100, 5));
    EXPECT_TRUE(copied.wait(long_enough));
  });
}

// The copies wait for the kernels before them, and are done when they return.
TEST(CudaCopies, GoBothWays) {
  in_every_order(10, [](std::uint64_t) {
    CudaDevice device;
    const auto stream = device.make_stream();
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
      const Memory memory = device.allocate(12, kind);
      const ArrayView array = memory.array(NumberType::fp32);
      runtime::copy_from_host(device, *stream, std::vector<float>{1, 2, 3}, array);
      stream->start(Add{array.part(0, 1), array.part(2, 1)});
      EXPECT_EQ(values_of(device, *stream, array), (std::vector<float>{1, 2, 4}));
      stream->start(Fill{array, 7});
      runtime::copy_from_host(device, *stream, std::vector<float>{5}, array.part(1, 1));
      EXPECT_EQ(values_of(device, *stream, array), (std::vector<float>{7, 5, 7}));
    }
  });
}

// What fails later comes out of tokens, in one line, and again at each.
TEST(CudaFaults, OfTheDeviceComeOutOfTokens) {
  ONLY_ON_DOUBLES();
  for (int operation = 1; operation <= 3; ++operation) {
    cuda_on_host::reset(cuda_on_host::Order::latest, 1);
    CudaDevice device;
    const auto stream = device.make_stream();
    const Memory memory = device.allocate(400, MemoryKind::device);
    cuda_on_host::fail_device(0, operation, cudaErrorIllegalAddress);
    const std::string expected =
        "cannot run kernels on CUDA device 0: an illegal memory access was encountered "
        "(cudaErrorIllegalAddress)";
    for (int i = 0; i < 3; ++i) stream->start(Fill{memory.array(NumberType::fp32), 1});
    const Token token = stream->record();
    EXPECT_EQ(run_error_of([&] { return token.wait(long_enough); }), expected);
    EXPECT_EQ(run_error_of([&] { return token.is_done(); }), expected);
  }
}

// Each call of CUDA fails in turn: what was tried is said in one line, nothing hangs, and nothing
// stays behind.
TEST(CudaFaults, OfEachCallAreOneLine) {
  ONLY_ON_DOUBLES();
  const auto work = [] {
    CudaDevice device;
    const auto one = device.make_stream();
    const auto two = device.make_stream();
    const Memory memory = device.allocate(400, MemoryKind::device);
    const ArrayView array = memory.array(NumberType::fp32);
    const runtime::UpdateTable table({{.offset = 0, .elements = 100, .has_own_rate = true}}, true,
                                     1);
    one->start(Fill{array, 1});
    two->wait_for(one->record());
    two->start(runtime::UpdateParameters{.table = &table,
                                         .rule = {.learning_rate = 1},
                                         .weights = array,
                                         .gradients = array,
                                         .momentum = array,
                                         .mean_square = {},
                                         .copies = nullptr});
    return values_of(device, *two, array).size();
  };
  int failures = 0;
  for (const char* function :
       {"cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaMalloc", "cudaHostAlloc",
        "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaEventRecord",
        "cudaEventQuery", "cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaLaunchKernelExC",
        "cudaGetDevice"}) {
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
    EXPECT_EQ(run_error_of(work), "no error");
    const long calls = cuda_on_host::calls(function);
    for (int number = 1; number <= calls; ++number) {
      cuda_on_host::reset(cuda_on_host::Order::eager, 1);
      cuda_on_host::fail(function, number, cudaErrorUnknown);
      const std::string error = run_error_of(work);
      // A destructor's own failure is nobody's.
      if (error == "no error") continue;
      ++failures;
      EXPECT_THAT(error, testing::MatchesRegex("cannot [^\n]*: unknown error .cudaErrorUnknown."))
          << function << " " << number;
      EXPECT_THAT(cuda_on_host::leaks(), IsEmpty()) << function << " " << number;
    }
  }
  EXPECT_GT(failures, 30);
}

}  // namespace
}  // namespace paceline::test
