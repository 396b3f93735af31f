// What is refused when a plan is executed, and what ends a test on the double where cuDNN would go on
// with wrong memory.
#include "models/base/error.h"
#include "tests/cuda/cudnn/executable.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using cuda_on_host::Order;
using testing::HasSubstr;

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
  EXPECT_THAT(in_workspace(s.y), HasSubstr("overlaps the workspace"));
  EXPECT_THAT(in_workspace(static_cast<std::byte*>(static_cast<void*>(s.x)) + 8),
              HasSubstr("not aligned"));
  {
    void* freed = nullptr;
    ASSERT_OK(cudaMalloc(&freed, bytes));
    ASSERT_OK(cudaFree(freed));
    EXPECT_THAT(with(Role::x, freed), HasSubstr("freed"));
  }
  EXPECT_EQ(with(Role::x, s.x), "");
  const auto pack = [&](const std::vector<std::int64_t>& uids) {
    std::vector<void*> pointers(uids.size(), s.x);
    const Raw raw(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const auto size = static_cast<std::int64_t>(uids.size());
    EXPECT_CUDNN(raw.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, size, uids.data()));
    EXPECT_CUDNN(
        raw.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, size, pointers.data()));
    EXPECT_CUDNN(raw.finalise());
    return misuse(
        [&] { static_cast<void>(cudnnBackendExecute(scale.handle(), scale.loaded(), raw)); });
  };
  EXPECT_THAT(pack({1, 2, 2, 3}), HasSubstr("names tensor 2 twice"));

  Executable cut(Convolution{.x = shape, .y = shape, .kernel = {1, 1}, .relu = true});
  std::map<Role, void*> memory = s.memory();
  memory[static_cast<Role>(1000)] = s.x;
  EXPECT_THAT(misuse([&] { static_cast<void>(cut.run(memory)); }),
              HasSubstr("is virtual, and stands in a variant pack"));
}

TEST(CudnnExecution, EndsATestThatGivesANumberOfTheDevice) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "only the double sees misuse";
  cuda_on_host::reset(Order::eager, 1);
  Executable normed(BatchNorm{.x = shape});
  const Floats x(count), y(count), c(8), d(8), e(8), f(8), g(8), h(8);
  float momentum = 0;
  std::map<Role, void*> memory = {{Role::x, x},
                                  {Role::y, y},
                                  {Role::scale, c},
                                  {Role::shift, d},
                                  {Role::mean, e},
                                  {Role::inverse_deviation, f},
                                  {Role::running_mean, g},
                                  {Role::next_running_mean, g},
                                  {Role::running_variance, h},
                                  {Role::next_running_variance, h},
                                  {Role::epsilon, c},
                                  {Role::momentum, &momentum}};
  EXPECT_THAT(misuse([&] { static_cast<void>(normed.run(memory)); }),
              HasSubstr("is by value, and byte 0 of the 32 bytes that cudaMalloc gave"));
  float epsilon = 1;
  memory[Role::epsilon] = &epsilon;
  EXPECT_EQ(misuse([&] { static_cast<void>(normed.run(memory)); }), "");
  // Running statistics may stand where they stood, and not where others do.
  memory[Role::next_running_mean] = h;
  EXPECT_THAT(misuse([&] { static_cast<void>(normed.run(memory)); }), HasSubstr("overlaps"));
}

TEST(CudnnExecution, IsOfTheHandlesArchitecture) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "a GPU has one architecture";
  cuda_on_host::reset(Order::eager, 1);
  const paceline::runtime::cudnn::DeviceDescription a100 =
      paceline::runtime::cudnn::shipped_device("a100-80g");
  const Plan plan = Planner(a100).plan(scaling(), NumberType::fp32);
  const Raw device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const auto set_text = [](const Raw& raw, cudnnBackendAttributeName_t name,
                           const std::string& text) {
    ASSERT_CUDNN(
        raw.set(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), text.data()));
  };
  set_text(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, a100.properties);
  ASSERT_CUDNN(device.finalise());
  const Raw loaded(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw = device;
  ASSERT_CUDNN(
      loaded.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw));
  set_text(loaded, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, plan.serialised);
  ASSERT_CUDNN(loaded.finalise());
  const Stream stream;
  const Handle handle(stream);
  const Scaled s;
  const Bytes workspace(static_cast<std::size_t>(plan.workspace));
  const std::unique_ptr<Raw> pack = make_pack({{1, s.x}, {2, s.w}, {3, s.y}}, workspace);
  EXPECT_EQ(cudnnBackendExecute(handle, loaded, *pack), CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH);
}

TEST(CudnnHandle, IsNotMadeInACapture) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "what a GPU does is not known";
  cuda_on_host::reset(Order::eager, 1);
  const Stream stream;
  ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudnnHandle_t handle = nullptr;
  EXPECT_EQ(cudnnCreate(&handle), CUDNN_STATUS_INTERNAL_ERROR);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
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

}  // namespace
