// What cuDNN refuses of graphs, devices, plans and variant packs, and by which status (refusals_test.cc).
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/network/cudnn/device_description.h"
#include "tests/cuda/cudnn/parts.h"
#include "tests/support/cuda_on_host/cudnn_control.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

constexpr cudnnStatus_t success = CUDNN_STATUS_SUCCESS;
constexpr cudnnStatus_t bad = CUDNN_STATUS_BAD_PARAM;
constexpr cudnnStatus_t unfinalised = CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
constexpr cudnnStatus_t other_type = CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
constexpr cudnnStatus_t null = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
constexpr cudnnStatus_t other_shape = CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
constexpr cudnnStatus_t unsupported = CUDNN_STATUS_NOT_SUPPORTED;

// A convolution, and one with a ReLU behind it.
struct Fused {
  Made x = image(1, 4, 16, 8, 8);
  Made w = image(2, 32, 16, 3, 3);
  Made y = image(3, 4, 32, 8, 8);
  Made passing = image(10, 4, 32, 8, 8, CUDNN_DATA_FLOAT, true);
  Made window = make(WindowPart{});
  [[nodiscard]] Made product(const Made& to) const {
    return convolution(forward_names, {{forward_names.x, x},
                                       {forward_names.w, w},
                                       {forward_names.y, to},
                                       {forward_names.window, window}});
  }
  [[nodiscard]] static Made relu(const Made& from, const Made& to) {
    return pointwise(CUDNN_POINTWISE_RELU_FWD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from},
                                                {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to}});
  }
};

TEST(CudnnGraph, HasOneTensorForEachIdAndOneWriter) {
  const Fused f;
  EXPECT_EQ(graph({f.product(f.y)}).status, success);
  EXPECT_EQ(graph({f.product(f.passing), f.relu(f.passing, f.y)}).status, success);
  EXPECT_EQ(graph({f.relu(f.passing, f.y), f.product(f.passing)}).status, success);
  EXPECT_EQ(graph({}).status, bad);
  const Made once = f.product(f.y);
  EXPECT_EQ(graph({once, once}).status, bad);
  EXPECT_EQ(graph({f.product(f.passing), f.relu(f.passing, image(1, 4, 32, 8, 8))}).status, bad);
  EXPECT_EQ(
      graph({f.product(f.passing), f.relu(image(10, 4, 32, 8, 8, CUDNN_DATA_HALF, true), f.y)})
          .status,
      bad);
  EXPECT_EQ(
      graph({f.product(f.passing), f.relu(image(10, 4, 32, 8, 8, CUDNN_DATA_FLOAT), f.y)}).status,
      bad);
  EXPECT_EQ(graph({f.product(f.passing), f.relu(f.passing, f.y), f.relu(f.passing, f.y)}).status,
            bad);
  const Made other = image(11, 4, 32, 8, 8, CUDNN_DATA_FLOAT, true);
  EXPECT_EQ(graph({f.relu(f.passing, other), f.relu(other, f.passing)}).status, bad);
  const Raw operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  const cudnnBackendDescriptor_t unfinished[] = {operation};
  const cudnnBackendDescriptor_t nothing[] = {nullptr};
  const Raw empty(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  constexpr auto ops = CUDNN_ATTR_OPERATIONGRAPH_OPS;
  EXPECT_EQ(empty.set(ops, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, unfinished), unfinalised);
  EXPECT_EQ(empty.set(ops, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, nothing), null);
}

std::string properties(const std::string& device) {
  return paceline::runtime::cudnn::shipped_device(device).properties;
}
Made described(const std::string& text) {
  return Maker(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text)
      .finalise();
}
std::string without(std::string text, const std::string& what, const std::string& by = "") {
  const std::size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos);
  return text.replace(place, what.size(), by);
}

TEST(CudnnDevice, HasAllPropertiesAsNumbers) {
  const std::string h100 = properties("h100");
  EXPECT_EQ(described(h100).status, success);
  EXPECT_EQ(described("{}").status, bad);
  EXPECT_EQ(described("junk").status, bad);
  EXPECT_EQ(described("").status, bad);
  EXPECT_EQ(described(without(h100, "\"warpSize\":32,")).status, bad);
  EXPECT_EQ(described(without(h100, "\"warpSize\":32", "\"warpSize\":\"32\"")).status, bad);
  EXPECT_EQ(described(without(h100, "{", "{\"more\":1,")).status, success);
  EXPECT_EQ(described(h100).raw->text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), h100);
}

Made heuristics(const std::optional<Made>& graph, const Made& device) {
  Maker maker(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  if (graph) maker.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph);
  return maker.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A)
      .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device)
      .finalise();
}
// The first configuration that is offered.
Made first_of(const Made& heuristics) {
  Made configuration{std::make_shared<Raw>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)};
  cudnnBackendDescriptor_t raw = configuration;
  std::int64_t count = 0;
  EXPECT_CUDNN(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw));
  EXPECT_EQ(count, 1);
  return configuration;
}

// How many configurations are given, of up to a hundred.
std::int64_t offered(const std::vector<Made>& operations, const Made& device) {
  const Made whole = graph(operations);
  if (whole.status != success) return -1;
  const Made found = heuristics(whole, device);
  if (found.status != success) return 0;
  std::vector<Made> configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int i = 0; i < 100; ++i) {
    configurations.push_back({std::make_shared<Raw>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)});
    raw.push_back(configurations.back());
  }
  std::int64_t count = 0;
  EXPECT_CUDNN(cudnnBackendGetAttribute(found, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 100, &count, raw.data()));
  return count;
}

TEST(CudnnHeuristics, OfferNothingForWhatNoEngineDoes) {
  const Made h100 = described(properties("h100"));
  Fused f;
  EXPECT_GT(offered({f.product(f.y)}, h100), 0);
  EXPECT_EQ(offered({f.product(f.passing)}, h100), 0);  // nobody reads what it writes
  EXPECT_EQ(offered({f.product(image(3, 4, 32, 8, 8, CUDNN_DATA_FLOAT))}, h100), 0);
  f.w = image(2, 32, 16, 3, 3, CUDNN_DATA_FLOAT);
  EXPECT_EQ(offered({f.product(f.y)}, h100), 0);
  f = Fused();
  f.window = make({.arithmetic = CUDNN_DATA_INT8});
  EXPECT_EQ(offered({f.product(f.y)}, h100), 0);
  const Parts channels = {
      {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, image(1, 4, 32, 8, 8)},
      {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, image(3, 4, 32, 8, 8)},
      {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, image(12, 1, 32, 1, 1, CUDNN_DATA_FLOAT)},
      {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, image(13, 1, 32, 1, 1, CUDNN_DATA_FLOAT)},
      {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, image(10, 1, 32, 1, 1, CUDNN_DATA_FLOAT)},
      {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, image(11, 1, 32, 1, 1, CUDNN_DATA_FLOAT)}};
  Maker inference(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  inference.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
           CUDNN_NORM_FWD_INFERENCE);
  for (const auto& [name, part] : channels) inference.set(name, part);
  const Made whole = graph({inference.finalise()});
  EXPECT_EQ(whole.status, success);
  EXPECT_EQ(heuristics(whole, h100).status, unsupported);
}

// cuDNN offers something for these. They are mistakes nevertheless.
TEST(CudnnHeuristics, OfTheDoubleOfferNothingForMistakes) {
  if (!cuda_on_host::cudnn::present()) GTEST_SKIP() << "cuDNN takes them";
  const Made h100 = described(properties("h100"));
  const Fused f;
  const auto add = [](const Made& x, const Made& b, const Made& y) {
    return pointwise(CUDNN_POINTWISE_ADD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                           {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                                           {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
  };
  const Made product = f.product(f.passing);
  EXPECT_GT(offered({product, add(f.passing, image(4, 1, 32, 1, 1), f.y)}, h100), 0);
  EXPECT_EQ(offered({product, add(f.passing, image(4, 1, 31, 1, 1), f.y)}, h100), 0);
  EXPECT_EQ(offered({product, f.relu(f.passing, image(3, 4, 32, 8, 7))}, h100), 0);
  EXPECT_EQ(offered({f.relu(f.passing, f.y)}, h100), 0);  // nobody writes what it reads
  EXPECT_EQ(offered({f.product(f.y), f.relu(image(21, 4, 32, 8, 8), image(22, 4, 32, 8, 8))}, h100),
            0);
  EXPECT_EQ(offered({f.relu(f.y, f.y)}, h100), -1);
  const Made twice = convolution(forward_names, {{forward_names.x, f.x},
                                                 {forward_names.w, image(1, 32, 16, 3, 3)},
                                                 {forward_names.y, f.y},
                                                 {forward_names.window, f.window}});
  EXPECT_EQ(offered({twice}, h100), -1);
}

TEST(CudnnPlan, IsMadeOfAConfigurationOrOfItsText) {
  const Fused f;
  const Made h100 = described(properties("h100"));
  const Made offered = heuristics(graph({f.product(f.y)}), h100);
  ASSERT_CUDNN(offered.status);
  EXPECT_EQ(heuristics(std::nullopt, h100).status, bad);
  EXPECT_EQ(heuristics(Maker(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR).as_it_is(), h100).status,
            unfinalised);
  const Made configuration = first_of(offered);
  EXPECT_EQ(configuration.raw->finalise(), bad);
  std::int64_t count = 0;
  cudnnBackendDescriptor_t wrong = *configuration.raw;
  const Raw tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  wrong = tensor;
  EXPECT_CUDNN(cudnnBackendGetAttribute(offered, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &wrong));
  EXPECT_EQ(count, 0);  // it is no configuration

  Maker made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const Made plan = made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
                        .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, h100)
                        .finalise();
  ASSERT_CUDNN(plan.status);
  const std::int64_t bytes = 4;
  EXPECT_EQ(plan.raw->set(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes),
            bad);
  const std::string text = plan.raw->text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  const auto load = [](const std::string& serialised, const Made& device) {
    return Maker(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device)
        .set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, serialised)
        .finalise();
  };
  const Made loaded = load(text, h100);
  EXPECT_EQ(loaded.status, success);
  EXPECT_EQ(loaded.raw->text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), text);
  EXPECT_EQ(loaded.raw->number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE),
            plan.raw->number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  EXPECT_EQ(load(text, described(properties("h200"))).status, success);
  EXPECT_EQ(load(text, described(properties("a100-80g"))).status,
            CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH);
  EXPECT_EQ(load(text.substr(0, text.size() / 2), h100).status, bad);
  EXPECT_EQ(load("{}", h100).status, bad);
  EXPECT_EQ(load("", h100).status, bad);
  EXPECT_EQ(Maker(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, h100)
                .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
                .set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, text)
                .finalise()
                .status,
            bad);
}

TEST(CudnnEngine, IsOneOfTheGraphsEngines) {
  const Fused f;
  const Made h100 = described(properties("h100"));
  const Made whole = graph({f.product(f.y)});
  const auto engine = [&](const std::optional<Made>& of, std::optional<std::int64_t> index) {
    Maker maker(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (of) maker.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, *of);
    if (index) maker.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, *index);
    return maker.set(CUDNN_ATTR_ENGINE_DEVICEPROP, h100).finalise();
  };
  EXPECT_EQ(engine(whole, 0).status, success);
  EXPECT_EQ(engine(whole, 9999).status, unsupported);
  EXPECT_EQ(engine(whole, std::nullopt).status, unsupported);
  EXPECT_EQ(engine(std::nullopt, 0).status, null);
  const Made chosen = engine(whole, 0);
  const Made configuration =
      Maker(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).set(CUDNN_ATTR_ENGINECFG_ENGINE, chosen).finalise();
  EXPECT_EQ(configuration.status, success);
  EXPECT_EQ(Maker(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
                .finalise()
                .status,
            success);
  EXPECT_EQ(Maker(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                     Maker(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).as_it_is())
                .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, h100)
                .finalise()
                .status,
            unfinalised);
}

TEST(CudnnPack, HasAsManyPointersAsIds) {
  struct Pack {
    Sizes uids;
    Sizes pointers;
  };
  const auto status = [](const Pack& pack) {
    Maker maker(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (!pack.uids.empty()) maker.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, pack.uids);
    if (!pack.pointers.empty())
      maker.put(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pack.pointers.size(),
                pack.pointers.data());
    return maker.finalise().status;
  };
  EXPECT_EQ(status({{1, 2}, {16, 32}}), success);
  EXPECT_EQ(status({{1, 2}, {16, 32, 48}}), bad);
  EXPECT_EQ(status({{1}, {}}), bad);
  EXPECT_EQ(status({{}, {16}}), bad);
  const Raw pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  std::int64_t number = 16;
  EXPECT_EQ(pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_INT64, 1, &number), unsupported);
  ASSERT_CUDNN(pack.finalise());
  std::int64_t count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
                                     &count, &number),
            unsupported);
}

TEST(CudnnHandle, IsNotNull) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudnnCreate(nullptr), bad);
  EXPECT_EQ(cudnnSetStream(nullptr, nullptr), bad);
  EXPECT_EQ(cudnnGetStream(nullptr, &stream), bad);
  EXPECT_EQ(cudnnDestroy(nullptr), success);
  EXPECT_EQ(cudnnBackendExecute(nullptr, nullptr, nullptr), bad);
}

TEST(CudnnStatus, HasAName) {
  EXPECT_STREQ(cudnnGetErrorString(success), "CUDNN_STATUS_SUCCESS");
  EXPECT_STREQ(cudnnGetErrorString(other_shape), "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH");
  EXPECT_STREQ(cudnnGetErrorString(static_cast<cudnnStatus_t>(8191)), "CUDNN_UNKNOWN_STATUS");
  EXPECT_EQ(cudnnGetVersion(), std::size_t{CUDNN_VERSION});
}

}  // namespace
