// Plans in streams: what is waited for, captures, errors that come late, and what ends a test on the
// double where cuDNN would go on with wrong memory.
#include <cstring>
#include <functional>
#include <stdexcept>

#include "models/base/error.h"
#include "tests/cuda/cudnn/draw.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using cuda_on_host::Order;
using paceline::runtime::cudnn::Plan;
using paceline::runtime::cudnn::Planner;
using paceline::runtime::steps::BatchNorm;
using paceline::runtime::steps::Convolution;
using paceline::runtime::steps::Operation;
using paceline::runtime::steps::Sum;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Images shape{2, 8, 4, 4};
constexpr std::size_t count = 256;
constexpr std::size_t bytes = count * sizeof(float);

Operation scaling() {  // y = w x, pixel by pixel
  return Convolution{.x = shape, .y = shape, .kernel = {1, 1}};
}

Plan plan_of(const Operation& operation) {
  return Planner(this_device()).plan(operation, NumberType::fp32);
}

// The plan of an operation and what it is executed with.
class Executable {
 public:
  explicit Executable(const Operation& operation)
      : plan_(plan_of(operation)),
        handle_(stream_),
        loaded_(load_plan(handle_, plan_.serialised)),
        workspace_(static_cast<std::size_t>(std::max<std::int64_t>(plan_.workspace, 1))) {}

  cudnnStatus_t run(const std::map<Role, void*>& memory) {
    return run_with(memory, plan_.workspace > 0 ? static_cast<void*>(workspace_) : nullptr);
  }
  cudnnStatus_t run_with(const std::map<Role, void*>& memory, void* workspace) {
    std::map<std::int64_t, void*> by_uid;
    for (const auto& [role, pointer] : memory) by_uid[static_cast<std::int64_t>(role)] = pointer;
    const std::unique_ptr<Raw> pack = make_pack(by_uid, workspace);
    return cudnnBackendExecute(handle_, *loaded_, *pack);
  }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] cudnnHandle_t handle() const { return handle_; }
  [[nodiscard]] const Raw& loaded() const { return *loaded_; }

 private:
  Plan plan_;
  Stream stream_;
  Handle handle_;
  std::unique_ptr<Raw> loaded_;
  Bytes workspace_;
};

// x and y of a plan that scales by the identity, and its weights.
struct Scaled {
  Floats x{count};
  Floats y{count};
  Floats w{64};
  [[nodiscard]] std::map<Role, void*> memory() const {
    return {{Role::x, x}, {Role::y, y}, {Role::w, w}};
  }
};

void put(float* device, const Numbers& numbers, cudaStream_t stream) {
  EXPECT_OK(cudaMemcpyAsync(device, numbers.data(), numbers.size() * sizeof(float),
                            cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
}
Numbers identity() {
  Numbers w(64);
  for (std::size_t i = 0; i < 8; ++i) w[9 * i] = 1;
  return w;
}
Numbers counted(float first) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<float>(i);
  return numbers;
}

// What the double says as it ends a test; empty if it does not.
std::string misuse(const std::function<void()>& action) {
  cuda_on_host::throw_on_misuse(true);
  std::string what;
  try {
    action();
  } catch (const std::logic_error& error) {
    what = error.what();
  }
  cuda_on_host::throw_on_misuse(false);
  return what;
}

TEST(CudnnExecution, RunsInItsStreamBehindWhatItWaitsFor) {
  in_every_order(20, [] {
    Executable scale(scaling());
    const Scaled s;
    const Stream other;
    const Event copied, scaled;
    put(s.w, identity(), other);
    const PinnedFloats in(count), out(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(i);
    ASSERT_OK(cudaMemcpyAsync(s.x, in, bytes, cudaMemcpyHostToDevice, other));
    ASSERT_OK(cudaEventRecord(copied, other));
    ASSERT_OK(cudaStreamWaitEvent(scale.stream(), copied, 0));
    ASSERT_CUDNN(scale.run(s.memory()));
    ASSERT_OK(cudaEventRecord(scaled, scale.stream()));
    ASSERT_OK(cudaStreamWaitEvent(other, scaled, 0));
    ASSERT_OK(cudaMemcpyAsync(out, s.y, bytes, cudaMemcpyDeviceToHost, other));
    ASSERT_OK(cudaStreamSynchronize(other));
    EXPECT_EQ(Numbers(out + 0, out + count), counted(0));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudnnExecution, RacesWhereAWaitIsMissing) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "only the double sees races";
  for (const bool before : {true, false}) {
    cuda_on_host::reset(Order::latest, 1);
    Executable scale(scaling());
    const Scaled s;
    const Stream other;
    put(s.w, identity(), other);
    put(s.x, counted(0), other);
    const Event done;
    if (before) {
      ASSERT_OK(cudaMemsetAsync(s.x, 0, bytes, other));
      ASSERT_CUDNN(scale.run(s.memory()));
    } else {
      ASSERT_CUDNN(scale.run(s.memory()));
      ASSERT_OK(cudaMemsetAsync(s.y, 0, bytes, other));
    }
    EXPECT_THAT(cuda_on_host::races(), testing::ElementsAre(HasSubstr("cuDNN's convolution")));
  }
}

// Two plans share a workspace: in one stream they may, in two they race.
TEST(CudnnExecution, WritesItsWorkspace) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "only the double sees races";
  cuda_on_host::reset(Order::eager, 1);
  Executable one(scaling());
  Executable two(scaling());
  ASSERT_GT(one.plan().workspace, 0);
  const Scaled s, t;
  const Bytes shared(static_cast<std::size_t>(one.plan().workspace));
  put(s.w, identity(), one.stream());
  put(s.x, counted(0), one.stream());
  put(t.w, identity(), one.stream());
  put(t.x, counted(0), one.stream());
  ASSERT_CUDNN(one.run_with(s.memory(), shared));
  ASSERT_CUDNN(one.run_with(t.memory(), shared));
  EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  ASSERT_OK(cudaStreamSynchronize(one.stream()));
  ASSERT_CUDNN(one.run_with(s.memory(), shared));
  ASSERT_CUDNN(two.run_with(t.memory(), shared));
  EXPECT_THAT(cuda_on_host::races(), Not(IsEmpty()));
}

TEST(CudnnExecution, IsCapturedAndReplayed) {
  in_every_order(10, [] {
    Executable scale(scaling());
    const Scaled s;
    put(s.w, identity(), scale.stream());
    put(s.x, counted(1), scale.stream());
    put(s.y, counted(-7), scale.stream());
    ASSERT_CUDNN(scale.run(s.memory()));  // one eager step
    ASSERT_OK(cudaStreamSynchronize(scale.stream()));
    ASSERT_OK(cudaStreamBeginCapture(scale.stream(), cudaStreamCaptureModeThreadLocal));
    ASSERT_CUDNN(scale.run(s.memory()));
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(scale.stream(), &graph));
    std::size_t nodes = 0;
    ASSERT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_GE(nodes, 1U);
    cudaGraphExec_t executable = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
    ASSERT_OK(cudaGraphDestroy(graph));
    for (const float first : {2.F, 3.F}) {
      put(s.x, counted(first), scale.stream());
      ASSERT_OK(cudaGraphLaunch(executable, scale.stream()));
      EXPECT_EQ(fetch(s.y, count, scale.stream()), counted(first));
    }
    ASSERT_OK(cudaGraphExecDestroy(executable));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

// Numbers by value are taken when a plan is executed, and not when it runs.
TEST(CudnnExecution, TakesNumbersOfTheHostAtOnce) {
  in_every_order(5, [] {
    const BatchNorm norm{.x = shape};
    Executable normed(norm);
    const Floats x(count), y(count);
    const Floats by_channel[] = {Floats(8), Floats(8), Floats(8), Floats(8), Floats(8), Floats(8)};
    for (const Floats& numbers : by_channel) put(numbers, Numbers(8, 1), normed.stream());
    put(x, counted(0), normed.stream());
    float epsilon = 1e-5F;
    float momentum = 0.5F;
    // The running statistics are moved where they stand.
    ASSERT_CUDNN(normed.run({{Role::x, x},
                             {Role::y, y},
                             {Role::scale, by_channel[0]},
                             {Role::shift, by_channel[1]},
                             {Role::mean, by_channel[2]},
                             {Role::inverse_deviation, by_channel[3]},
                             {Role::running_mean, by_channel[4]},
                             {Role::next_running_mean, by_channel[4]},
                             {Role::running_variance, by_channel[5]},
                             {Role::next_running_variance, by_channel[5]},
                             {Role::epsilon, &epsilon},
                             {Role::momentum, &momentum}}));
    epsilon = 1e9F;
    momentum = 0;
    const Numbers mean = fetch(by_channel[2], 8, normed.stream());
    const Numbers running = fetch(by_channel[4], 8, normed.stream());
    const Numbers deviation = fetch(by_channel[3], 8, normed.stream());
    for (std::size_t c = 0; c < 8; ++c) {
      EXPECT_NEAR(mean[c], 124 + static_cast<double>(c), 1e-3);
      EXPECT_NEAR(running[c], 0.5 + 0.5 * mean[c], 1e-3);
      EXPECT_GT(deviation[c], 0.01);
    }
  });
}

// Nothing can be given back to a device that is broken: the next reset() forgets it.
TEST(CudnnExecution, FailsByItsStatusAndLateByTheDevice) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "faults are the double's";
  cuda_on_host::reset(Order::latest, 1);
  const Plan plan = plan_of(scaling());
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Handle handle(stream);
  const std::unique_ptr<Raw> loaded = load_plan(handle, plan.serialised);
  std::map<std::int64_t, void*> memory;
  for (const Role role : {Role::x, Role::w, Role::y})
    ASSERT_OK(cudaMalloc(&memory[static_cast<std::int64_t>(role)], bytes));
  void* workspace = nullptr;
  ASSERT_OK(cudaMalloc(&workspace, static_cast<std::size_t>(plan.workspace)));
  const std::unique_ptr<Raw> pack = make_pack(memory, workspace);
  const auto run = [&] { return cudnnBackendExecute(handle, *loaded, *pack); };
  cuda_on_host::fail("cudnnBackendExecute", 2, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
  EXPECT_CUDNN(run());
  EXPECT_EQ(run(), CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER);
  EXPECT_CUDNN(run());
  EXPECT_OK(cudaStreamSynchronize(stream));
  cuda_on_host::fail_device(0, 1, cudaErrorIllegalAddress);
  EXPECT_CUDNN(run());
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(run(), CUDNN_STATUS_EXECUTION_FAILED);
}

TEST(CudnnDescriptor, FailsWhereATestSaysSo) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "faults are the double's";
  cuda_on_host::reset(Order::eager, 1);
  constexpr cudnnStatus_t error = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  cudnnHandle_t handle = nullptr;
  cuda_on_host::fail("cudnnCreate", 1, error);
  EXPECT_EQ(cudnnCreate(&handle), error);
  for (const char* const function :
       {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize"}) {
    cuda_on_host::fail(function, 1, error);
    try {
      const Planner planner(paceline::runtime::cudnn::shipped_device("h100"));
      ADD_FAILURE() << function << " did not fail";
    } catch (const paceline::RunError& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("HOST_ALLOCATION_FAILED")) << function;
      EXPECT_THAT(failure.what(), HasSubstr(function)) << "the reason";
    }
  }
}

TEST(CudnnExecution, IsRefusedWithoutMemoryForATensor) {
  cuda_on_host::reset(Order::eager, 1);
  Executable scale(scaling());
  const Scaled s;
  std::map<Role, void*> fewer = s.memory();
  fewer.erase(Role::w);
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(scale.run(fewer)), CUDNN_STATUS_BAD_PARAM);
  fewer[Role::w] = nullptr;
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(scale.run(fewer)), CUDNN_STATUS_BAD_PARAM);
  const Raw unfinished(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(cudnnBackendExecute(scale.handle(), scale.loaded(), unfinished)),
            CUDNN_STATUS_BAD_PARAM);
}

TEST(CudnnExecution, EndsATestThatGivesItWrongMemory) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "only the double sees misuse";
  cuda_on_host::reset(Order::eager, 1);
  Executable scale(scaling());
  const Scaled s;
  const auto with = [&](Role role, void* pointer) {
    return misuse([&] {
      std::map<Role, void*> memory = s.memory();
      memory[role] = pointer;
      static_cast<void>(scale.run(memory));
    });
  };
  EXPECT_EQ(with(Role::y, s.y), "");
  EXPECT_THAT(with(Role::bias, s.y), HasSubstr("stands in a variant pack, and not in the plan"));
  EXPECT_THAT(with(Role::x, s.x + 1), HasSubstr("is not aligned to 16 bytes"));
  EXPECT_THAT(with(Role::x, s.x + 4), HasSubstr("16 too many"));
  EXPECT_THAT(with(Role::y, s.x), HasSubstr("is written, and overlaps"));
  Numbers pageable(count + 4);
  auto* const aligned =
      reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(pageable.data()) + 15) / 16 * 16);
  EXPECT_THAT(with(Role::x, aligned), HasSubstr("pageable"));
  const auto in_workspace = [&](void* workspace) {
    return misuse([&] { static_cast<void>(scale.run_with(s.memory(), workspace)); });
  };
  const Bytes small(static_cast<std::size_t>(scale.plan().workspace) - 1);
  EXPECT_THAT(in_workspace(nullptr), HasSubstr("was given none"));
  EXPECT_THAT(in_workspace(small), HasSubstr("1 too many"));
  EXPECT_THAT(in_workspace(static_cast<std::byte*>(static_cast<void*>(s.x)) + 8),
              HasSubstr("not aligned"));
  {
    void* freed = nullptr;
    ASSERT_OK(cudaMalloc(&freed, bytes));
    ASSERT_OK(cudaFree(freed));
    EXPECT_THAT(with(Role::x, freed), HasSubstr("freed"));
  }
  EXPECT_EQ(with(Role::x, s.x), "");
}

TEST(CudnnExecution, EndsATestThatUsesWhatIsGone) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "only the double sees misuse";
  cuda_on_host::reset(Order::eager, 1);
  const int handles = cuda_on_host::cudnn::live_handles();
  const int descriptors = cuda_on_host::cudnn::live_descriptors();
  {
    Executable scale(scaling());
    EXPECT_EQ(cuda_on_host::cudnn::live_handles(), handles + 1);
    EXPECT_GT(cuda_on_host::cudnn::live_descriptors(), descriptors);
    const Scaled s;
    ASSERT_OK(cudaSetDevice(1));
    EXPECT_THAT(misuse([&] { static_cast<void>(scale.run(s.memory())); }),
                HasSubstr("a cuDNN handle of device 0 is used on device 1"));
    {
      const Stream elsewhere;
      EXPECT_EQ(cudnnSetStream(scale.handle(), elsewhere), CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH);
    }
    ASSERT_OK(cudaSetDevice(0));
  }
  EXPECT_EQ(cuda_on_host::cudnn::live_handles(), handles);
  EXPECT_EQ(cuda_on_host::cudnn::live_descriptors(), descriptors);
  cudnnHandle_t handle = nullptr;
  ASSERT_CUDNN(cudnnCreate(&handle));
  ASSERT_CUDNN(cudnnDestroy(handle));
  EXPECT_THAT(misuse([&] { static_cast<void>(cudnnDestroy(handle)); }), HasSubstr("destroyed"));
  cudnnBackendDescriptor_t tensor = nullptr;
  ASSERT_CUDNN(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor));
  ASSERT_CUDNN(cudnnBackendDestroyDescriptor(tensor));
  EXPECT_THAT(misuse([&] { static_cast<void>(cudnnBackendFinalize(tensor)); }),
              HasSubstr("destroyed"));
  cuda_on_host::set_devices(0);
  EXPECT_EQ(cudnnCreate(&handle), CUDNN_STATUS_NOT_INITIALIZED);
}

// Pointwise graphs need no workspace, and may work in place.
TEST(CudnnExecution, SumsInPlaceWithoutAWorkspace) {
  in_every_order(3, [] {
    Executable sum(Sum{.x = shape, .terms = 2});
    const Floats a(count), b(count);
    put(a, counted(0), sum.stream());
    put(b, counted(5), sum.stream());
    const Role second = static_cast<Role>(static_cast<int>(Role::term) + 1);
    ASSERT_CUDNN(sum.run({{Role::term, a}, {second, b}, {Role::y, a}}));
    const Numbers y = fetch(a, count, sum.stream());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(y[i], 5 + 2 * static_cast<float>(i));
  });
}

}  // namespace
