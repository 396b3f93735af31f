// The engines of the double do what they note (engines.h): a plan that takes one which its rules
// exclude gives other numbers.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "tests/cuda/cudnn/draw.h"
#include "tests/cuda/cudnn/parts.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

constexpr std::int64_t channels = 1024;
constexpr std::int64_t filters = 8;
constexpr std::int64_t pixels = 4;

// What the graph makes of x (tensor 1), w (2), a bias (4) if there is one, and its output (3), by the
// engine of this index.
Numbers result_of(const std::vector<Made>& operations, std::int64_t engine, cudnnDataType_t type,
                  const std::vector<Numbers>& in, std::size_t out) {
  const Made chosen = Maker(CUDNN_BACKEND_ENGINE_DESCRIPTOR)
                          .set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph(operations))
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
  constexpr std::int64_t uids[] = {1, 2, 4};
  std::vector<std::unique_ptr<Bytes>> held;
  std::map<std::int64_t, void*> memory;
  const auto hold = [&](std::int64_t uid, std::size_t bytes) {
    held.push_back(std::make_unique<Bytes>(bytes));
    memory[uid] = *held.back();
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::vector<std::byte> numbers = packed({in[i], type});
    hold(uids[i], numbers.size());
    EXPECT_OK(cudaMemcpy(memory[uids[i]], numbers.data(), numbers.size(), cudaMemcpyHostToDevice));
  }
  EXPECT_OK(cudaDeviceSynchronize());
  std::vector<std::byte> y = packed({Numbers(out), type});
  hold(3, y.size());
  const std::unique_ptr<Raw> pack = make_pack(memory, workspace);
  EXPECT_CUDNN(cudnnBackendExecute(handle, plan, *pack));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaMemcpy(y.data(), memory[3], y.size(), cudaMemcpyDeviceToHost));
  return unpacked(type, y);
}

Made product_to(const Made& y, std::int64_t from, std::int64_t to, cudnnDataType_t type) {
  const WindowPart one{.pre = Sizes{0, 0}, .post = Sizes{0, 0}};
  return convolution(forward_names, {{forward_names.x, image(1, 1, from, 1, pixels, type)},
                                     {forward_names.w, image(2, to, from, 1, 1, type)},
                                     {forward_names.y, y},
                                     {forward_names.window, make(one)}});
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
    return result_of({product_to(image(3, 1, filters, 1, pixels, type), channels, filters, type)},
                     engine, type, {x, w}, filters * pixels);
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

// 2049 has no FP16, and 2048 is left of it where the tensor between has that type.
TEST_F(CudnnEngines, RoundWhatPassesIn16Bits) {
  const auto last_of = [&](cudnnDataType_t passing_type) {
    const Made passing = image(10, 1, 8, 1, pixels, passing_type, true);
    const Made sum = pointwise(CUDNN_POINTWISE_ADD,
                               {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, passing},
                                {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, image(4, 1, 8, 1, 1)},
                                {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, image(3, 1, 8, 1, pixels)}});
    Numbers x(8 * pixels, 1);
    Numbers w(64);
    for (std::size_t k = 0; k < 8; ++k) {
      w[8 * k] = 2048;
      w[8 * k + 1] = 1;
    }
    return result_of({product_to(passing, 8, 8, CUDNN_DATA_HALF), sum}, 1, CUDNN_DATA_HALF,
                     {x, w, Numbers(8, -2047)}, 8 * pixels)
        .back();
  };
  EXPECT_EQ(last_of(CUDNN_DATA_FLOAT), 2);
  EXPECT_EQ(last_of(CUDNN_DATA_HALF), 1);
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
