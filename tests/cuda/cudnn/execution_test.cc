// Plans in streams: what is waited for, captures, workspaces, and errors that come late.
#include "runtime/network/steps/operation.h"
#include "tests/cuda/cudnn/executable.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using cuda_on_host::Order;
using paceline::runtime::steps::Sum;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

// What a plan left in its workspace is gone when the next one begins.
TEST(CudnnExecution, FillsItsWorkspaceWithNan) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "cuDNN does not";
  cuda_on_host::reset(Order::eager, 1);
  Executable scale(scaling());
  const Scaled s;
  const auto size = static_cast<std::size_t>(scale.plan().workspace);
  const Bytes workspace(size);
  ASSERT_OK(cudaMemsetAsync(workspace, 0, size, scale.stream()));
  ASSERT_CUDNN(scale.run_with(s.memory(), workspace));
  std::vector<std::byte> left(size);
  ASSERT_OK(cudaMemcpyAsync(left.data(), workspace, size, cudaMemcpyDeviceToHost, scale.stream()));
  ASSERT_OK(cudaStreamSynchronize(scale.stream()));
  EXPECT_THAT(left, testing::Each(std::byte{0xff}));
}

// Pointwise graphs need no workspace, and may work in place.
TEST(CudnnExecution, SumsInPlaceWithoutAWorkspace) {
  in_every_order(3, [] {
    Executable sum(Sum{.x = shape, .terms = 2});
    if (cuda_on_host::cudnn::present()) EXPECT_EQ(sum.plan().workspace, 0);
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
