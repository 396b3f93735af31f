// The engines of the double do what they note (engines.h): a plan that takes one which its rules
// exclude gives other numbers.
#include <algorithm>
#include <cmath>

#include "tests/cuda/cudnn/draw.h"
#include "tests/cuda/cudnn/parts.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

constexpr std::int64_t channels = 1024;
constexpr std::int64_t filters = 8;
constexpr std::int64_t pixels = 4;

// A convolution of a 1x1 window over many channels, by the engine of this index.
Numbers product_by(std::int64_t engine, cudnnDataType_t type, const Numbers& x, const Numbers& w) {
  const WindowPart one{.pre = Sizes{0, 0}, .post = Sizes{0, 0}};
  const Made product =
      convolution(forward_names, {{forward_names.x, image(1, 1, channels, 1, pixels, type)},
                                  {forward_names.w, image(2, filters, channels, 1, 1, type)},
                                  {forward_names.y, image(3, 1, filters, 1, pixels, type)},
                                  {forward_names.window, make(one)}});
  const Made chosen = Maker(CUDNN_BACKEND_ENGINE_DESCRIPTOR)
                          .set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph({product}))
                          .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine)
                          .finalise();
  const Made configuration =
      Maker(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).set(CUDNN_ATTR_ENGINECFG_ENGINE, chosen).finalise();
  const Made plan = Maker(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
                        .finalise();
  EXPECT_CUDNN(plan.status);
  const Stream stream;
  const Handle handle(stream);
  const Bytes workspace(
      static_cast<std::size_t>(plan.raw->number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)));
  const std::vector<std::byte> x_bytes = packed({x, type});
  const std::vector<std::byte> w_bytes = packed({w, type});
  std::vector<std::byte> y_bytes(packed({Numbers(filters * pixels), type}));
  const Bytes x_there(x_bytes.size()), w_there(w_bytes.size()), y_there(y_bytes.size());
  EXPECT_OK(cudaMemcpy(x_there, x_bytes.data(), x_bytes.size(), cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(w_there, w_bytes.data(), w_bytes.size(), cudaMemcpyHostToDevice));
  EXPECT_OK(cudaDeviceSynchronize());
  const std::unique_ptr<Raw> pack =
      make_pack({{1, x_there}, {2, w_there}, {3, y_there}}, workspace);
  EXPECT_CUDNN(cudnnBackendExecute(handle, plan, *pack));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaMemcpy(y_bytes.data(), y_there, y_bytes.size(), cudaMemcpyDeviceToHost));
  return unpacked(type, y_bytes);
}

// Relative to the largest.
double difference(const Numbers& a, const Numbers& b) {
  double largest = 0;
  double apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max<double>(largest, std::abs(b[i]));
    apart = std::max<double>(apart, std::abs(a[i] - b[i]));
  }
  return apart / largest;
}

class CudnnEngines : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "these are the double's engines";
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  }
  Numbers by(std::int64_t engine, cudnnDataType_t type) {
    Draw draw(1);
    const Numbers x = draw.normal(channels * pixels, type);
    const Numbers w = draw.normal(channels * filters, type);
    return product_by(engine, type, x, w);
  }
};

TEST_F(CudnnEngines, RoundTheirOperands) {
  const Numbers exact = by(1, CUDNN_DATA_FLOAT);
  EXPECT_GT(difference(by(0, CUDNN_DATA_FLOAT), exact), 1e-5);
  EXPECT_LT(difference(by(0, CUDNN_DATA_FLOAT), exact), 1e-3);
  EXPECT_EQ(by(0, CUDNN_DATA_HALF), by(1, CUDNN_DATA_HALF));
}

TEST_F(CudnnEngines, RoundTheirSums) {
  const Numbers exact = by(1, CUDNN_DATA_BFLOAT16);
  EXPECT_EQ(by(0, CUDNN_DATA_BFLOAT16), exact);
  EXPECT_GT(difference(by(2, CUDNN_DATA_BFLOAT16), exact), 1e-3);
  EXPECT_LT(difference(by(2, CUDNN_DATA_BFLOAT16), exact), 3e-2);
}

TEST_F(CudnnEngines, DifferFromRunToRunOrNot) {
  EXPECT_EQ(by(0, CUDNN_DATA_FLOAT), by(0, CUDNN_DATA_FLOAT));
  const Numbers first = by(3, CUDNN_DATA_FLOAT);
  const Numbers second = by(3, CUDNN_DATA_FLOAT);
  EXPECT_NE(first, second);
  EXPECT_LT(difference(first, second), 1e-5);
}

// The planner's rules keep to those that give the same bits and sum in FP32.
TEST_F(CudnnEngines, AreChosenByTheRules) {
  using paceline::runtime::cudnn::Planner;
  const paceline::runtime::steps::Convolution c{
      .x = {2, 8, 4, 4}, .y = {2, 8, 4, 4}, .kernel = {1, 1}};
  const Planner planner(this_device());
  EXPECT_EQ(planner.plan(c, NumberType::fp16).engine, 0);
  EXPECT_EQ(planner.plan(c, NumberType::fp32).engine, 0);
  EXPECT_EQ(planner.plan(c, NumberType::fp32, {.tf32 = false}).engine, 1);
  EXPECT_EQ(planner.plan(c, NumberType::fp16, {.deterministic = false}).engine, 3);
  EXPECT_THROW(static_cast<void>(planner.plan(c, NumberType::fp16, {.workspace = 15})),
               std::exception);
}

}  // namespace
