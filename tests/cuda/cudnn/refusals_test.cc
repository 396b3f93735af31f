// What cuDNN refuses, and by which status. None of it needs a device: the same tests run on the double
// (NAME.double) and on the toolkit's library (NAME.real), which says what is true.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>

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

TEST(CudnnLibrary, IsTheOneThatWasAskedFor) {
  const char* const asked = std::getenv("PACELINE_CUDNN");
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(std::string(asked), cuda_on_host::cudnn::present() ? "double" : "real");
}

TEST(CudnnDescriptor, TakesAttributesOfItsOwnByTypeAndCount) {
  const Raw tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::int64_t numbers[] = {1, 1, 1, 1};
  const cudnnDataType_t type[] = {CUDNN_DATA_HALF, CUDNN_DATA_HALF};
  constexpr auto data_type = CUDNN_ATTR_TENSOR_DATA_TYPE;
  EXPECT_EQ(tensor.set(data_type, CUDNN_TYPE_INT64, 1, numbers), other_type);
  EXPECT_EQ(tensor.set(data_type, static_cast<cudnnBackendAttributeType_t>(31), 1, numbers),
            other_type);
  EXPECT_EQ(tensor.set(data_type, CUDNN_TYPE_DATA_TYPE, 2, type), bad);
  EXPECT_EQ(tensor.set(data_type, CUDNN_TYPE_DATA_TYPE, 0, type), bad);
  EXPECT_EQ(tensor.set(data_type, CUDNN_TYPE_DATA_TYPE, -1, type), bad);
  EXPECT_EQ(tensor.set(data_type, CUDNN_TYPE_DATA_TYPE, 1, nullptr), bad);
  EXPECT_EQ(tensor.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, numbers), bad);
  EXPECT_EQ(
      tensor.set(static_cast<cudnnBackendAttributeName_t>(4095), CUDNN_TYPE_INT64, 1, numbers),
      bad);
  EXPECT_EQ(tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0, numbers), bad);
  EXPECT_EQ(tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, numbers), success);
}

TEST(CudnnDescriptor, IsFinalisedOnceAndThenRead) {
  const Made tensor = make(TensorPart{.dims = Sizes{4, 16, 8, 8}});
  ASSERT_CUDNN(tensor.status);
  EXPECT_EQ(tensor.raw->finalise(), bad);
  const std::int64_t uid = 7;
  EXPECT_EQ(tensor.raw->set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid), bad);
  std::int64_t sizes[8] = {};
  std::int64_t count = 0;
  constexpr auto dims = CUDNN_ATTR_TENSOR_DIMENSIONS;
  const auto get = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::int64_t most) {
    return cudnnBackendGetAttribute(tensor, name, type, most, &count, sizes);
  };
  EXPECT_CUDNN(get(dims, CUDNN_TYPE_INT64, 8));
  EXPECT_EQ(count, 4);
  EXPECT_EQ(sizes[1], 16);
  EXPECT_CUDNN(get(dims, CUDNN_TYPE_INT64, 2));
  EXPECT_EQ(count, 2);
  EXPECT_CUDNN(get(dims, CUDNN_TYPE_INT64, 0));
  EXPECT_EQ(count, 0);
  EXPECT_CUDNN(cudnnBackendGetAttribute(tensor, dims, CUDNN_TYPE_INT64, 0, &count, nullptr));
  EXPECT_EQ(count, 4);
  EXPECT_EQ(get(dims, CUDNN_TYPE_INT64, -1), bad);
  EXPECT_EQ(get(dims, CUDNN_TYPE_FLOAT, 4), other_type);
  EXPECT_EQ(get(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1), bad);
  const Raw other(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_EQ(cudnnBackendGetAttribute(other, dims, CUDNN_TYPE_INT64, 4, &count, sizes),
            CUDNN_STATUS_NOT_INITIALIZED);
}

TEST(CudnnDescriptor, IsOfAKnownTypeAndNotNull) {
  cudnnBackendDescriptor_t raw = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(static_cast<cudnnBackendDescriptorType_t>(63), &raw),
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  const std::int64_t number = 1;
  EXPECT_EQ(
      cudnnBackendSetAttribute(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number),
      null);
  EXPECT_EQ(cudnnBackendFinalize(nullptr), null);
  EXPECT_EQ(cudnnBackendDestroyDescriptor(nullptr), null);
}

TEST(CudnnDescriptor, IsRefusedEmptyWhereItNeedsSomething) {
  const std::pair<cudnnBackendDescriptorType_t, cudnnStatus_t> cases[] = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR, bad},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, bad},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, success},
      {CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, success},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, bad},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, bad},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, bad},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, success},
      {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, success},
      {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, bad},
      {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, bad},
      {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, bad},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, bad},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, bad},
      {CUDNN_BACKEND_ENGINE_DESCRIPTOR, null},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, unfinalised},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, success}};
  for (const auto& [type, status] : cases)
    EXPECT_EQ(Raw(type).finalise(), status) << "descriptor " << static_cast<int>(type);
}

TEST(CudnnTensor, HasSizesStridesAndAnAlignmentThatFit) {
  const auto status = [](const TensorPart& part) { return make(part).status; };
  EXPECT_EQ(status({}), success);
  EXPECT_EQ(status({.type = std::nullopt}), success);  // FP32
  EXPECT_EQ(status({.dims = std::nullopt}), bad);
  EXPECT_EQ(status({.has_strides = false}), bad);
  EXPECT_EQ(status({.alignment = std::nullopt}), bad);
  EXPECT_EQ(status({.alignment = 0}), bad);
  EXPECT_EQ(status({.alignment = -16}), bad);
  EXPECT_EQ(status({.alignment = 1}), bad);
  EXPECT_EQ(status({.alignment = 3}), bad);
  EXPECT_EQ(status({.alignment = 2}), success);
  EXPECT_EQ(status({.alignment = 1024}), success);
  EXPECT_EQ(status({.strides = Sizes{1, 2, 3}}), bad);
  EXPECT_EQ(status({.strides = Sizes{-1, 1, 128, 16}}), bad);
  EXPECT_EQ(status({.strides = Sizes{0, 1, 128, 16}}), success);
  EXPECT_EQ(status({.dims = Sizes{-1, 16, 8, 8}}), bad);
  EXPECT_EQ(status({.dims = Sizes{0, 16, 8, 8}}), success);
  EXPECT_EQ(status({.dims = Sizes(8, 1), .strides = Sizes(8, 1)}), success);
  EXPECT_EQ(status({.dims = Sizes(9, 1), .strides = Sizes(9, 1)}), bad);
  EXPECT_EQ(status({.by_value = true}), bad);
  const Sizes one(4, 1);
  EXPECT_EQ(status({.dims = one, .by_value = true}), success);
  EXPECT_EQ(status({.dims = one, .is_virtual = true, .by_value = true}), success);
}

TEST(CudnnWindow, HasAsManyNumbersAsDimensions) {
  const auto status = [](const WindowPart& part) { return make(part).status; };
  EXPECT_EQ(status({}), success);
  EXPECT_EQ(status({.mode = std::nullopt, .arithmetic = std::nullopt}), success);
  EXPECT_EQ(status({.pre = std::nullopt, .post = std::nullopt}), success);
  EXPECT_EQ(status({.dims = std::nullopt}), bad);
  EXPECT_EQ(status({.stride = std::nullopt}), bad);
  EXPECT_EQ(status({.dilation = std::nullopt}), bad);
  for (const std::int64_t dims : {0, 1, 3}) EXPECT_EQ(status({.dims = dims}), bad) << dims;
  EXPECT_EQ(status({.pre = Sizes{1, 1, 1}}), bad);
  EXPECT_EQ(status({.pre = Sizes{-1, 1}}), bad);
  EXPECT_EQ(status({.stride = Sizes{0, 1}}), bad);
  EXPECT_EQ(status({.dilation = Sizes{1, 0}}), bad);
}

// Of each product of a convolution: the status with one part changed or left out.
class Products {
 public:
  explicit Products(const ConvolutionNames& of)
      : names(of),
        parts{{of.x, image(1, 4, 16, 8, 8)},
              {of.w, image(2, 32, 16, 3, 3)},
              {of.y, image(3, 4, 32, 8, 8)},
              {of.window, make(WindowPart{})}} {}
  cudnnStatus_t with(cudnnBackendAttributeName_t name, const Made& part) const {
    Parts changed = parts;
    changed[name] = part;
    return convolution(names, changed).status;
  }
  ConvolutionNames names;
  Parts parts;
};

TEST(CudnnConvolution, NeedsTensorsThatFitItsWindow) {
  for (const ConvolutionNames& names : {forward_names, data_names, filter_names}) {
    SCOPED_TRACE(static_cast<int>(names.type));
    const Products of(names);
    EXPECT_EQ(convolution(names, of.parts).status, success);
    EXPECT_EQ(convolution(names, of.parts, false).status, success);
    for (const auto name : {names.x, names.w, names.y, names.window})
      EXPECT_EQ(of.with(name, {}), bad) << name;
    EXPECT_EQ(of.with(names.y, image(3, 4, 32, 7, 8)), bad);
    EXPECT_EQ(of.with(names.y, image(3, 4, 31, 8, 8)), bad);
    EXPECT_EQ(of.with(names.y, image(3, 3, 32, 8, 8)), bad);
    EXPECT_EQ(of.with(names.w, image(2, 32, 8, 3, 3)), success);  // two groups
    EXPECT_EQ(of.with(names.w, image(2, 32, 5, 3, 3)), bad);
    EXPECT_EQ(of.with(names.w, image(2, 32, 16, 13, 13)), bad);
    EXPECT_EQ(of.with(names.w, image(2, 32, 16, 3, 3, CUDNN_DATA_FLOAT)), success);
    EXPECT_EQ(of.with(names.x, make({.uid = 1}, false)), bad);
    EXPECT_EQ(of.with(names.window, make(WindowPart{}, false)), bad);
    EXPECT_EQ(of.with(names.window, make({.dims = 1,
                                          .pre = Sizes{1},
                                          .post = Sizes{1},
                                          .stride = Sizes{1},
                                          .dilation = Sizes{1}})),
              bad);
    EXPECT_EQ(of.with(names.x, image(1, 0, 16, 8, 8)), bad);
  }
}

TEST(CudnnConvolution, TakesItsFactorsAsFloatAndDouble) {
  const Raw operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  const float single = 1;
  const double twice = 1;
  constexpr auto alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA;
  EXPECT_CUDNN(operation.set(alpha, CUDNN_TYPE_FLOAT, 1, &single));
  EXPECT_CUDNN(operation.set(alpha, CUDNN_TYPE_DOUBLE, 1, &twice));
  const Made x = image(1, 4, 16, 8, 8);
  const cudnnBackendDescriptor_t two[] = {x, x};
  constexpr auto name = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X;
  EXPECT_EQ(operation.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 2, two), unsupported);
  const cudnnBackendDescriptor_t nothing = nullptr;
  EXPECT_EQ(operation.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &nothing), bad);
}

TEST(CudnnPointwise, NeedsTheTensorsOfItsMode) {
  constexpr auto x = CUDNN_ATTR_OPERATION_POINTWISE_XDESC;
  constexpr auto b = CUDNN_ATTR_OPERATION_POINTWISE_BDESC;
  constexpr auto y = CUDNN_ATTR_OPERATION_POINTWISE_YDESC;
  constexpr auto dx = CUDNN_ATTR_OPERATION_POINTWISE_DXDESC;
  constexpr auto dy = CUDNN_ATTR_OPERATION_POINTWISE_DYDESC;
  const auto one = [](std::int64_t uid) { return image(uid, 4, 32, 8, 8); };
  const auto status = [](cudnnPointwiseMode_t mode, const Parts& parts) {
    return pointwise(mode, parts).status;
  };
  EXPECT_EQ(status(CUDNN_POINTWISE_ADD, {{x, one(1)}, {b, one(2)}, {y, one(3)}}), success);
  EXPECT_EQ(status(CUDNN_POINTWISE_ADD, {{x, one(1)}, {y, one(3)}}), bad);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_FWD, {{x, one(1)}, {y, one(3)}}), success);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_FWD, {{y, one(3)}}), bad);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_FWD, {{x, one(1)}}), bad);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_BWD, {{x, one(1)}, {dx, one(2)}, {dy, one(3)}}), success);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_BWD, {{x, one(1)}, {dy, one(3)}}), bad);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_BWD, {{x, one(1)}, {dx, one(2)}}), bad);
  EXPECT_EQ(status(CUDNN_POINTWISE_RELU_BWD, {{dx, one(2)}, {dy, one(3)}}), bad);
  EXPECT_EQ(
      operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {{x, one(1)}, {y, one(3)}}).status,
      bad);
}

Made by_channel(std::int64_t uid, std::int64_t channels = 32) {
  return image(uid, 1, channels, 1, 1, CUDNN_DATA_FLOAT);
}
Made number_of_the_host(std::int64_t uid) {
  return make({.uid = uid,
               .dims = Sizes(4, 1),
               .type = CUDNN_DATA_FLOAT,
               .alignment = 4,
               .by_value = true});
}

Made norm(const Parts& parts, std::optional<cudnnBackendNormMode_t> mode = CUDNN_BATCH_NORM) {
  Maker maker(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  if (mode) maker.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, *mode);
  maker.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
            CUDNN_NORM_FWD_TRAINING);
  for (const auto& [name, part] : parts)
    if (part.raw != nullptr) maker.set(name, part);
  return maker.finalise();
}

TEST(CudnnNorm, NeedsStatisticsOfEachChannel) {
  const Parts parts = {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, image(1, 4, 32, 8, 8)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, image(3, 4, 32, 8, 8)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, by_channel(12)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, by_channel(13)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, by_channel(10)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, by_channel(11)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, number_of_the_host(20)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, number_of_the_host(21)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, by_channel(16)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, by_channel(17)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, by_channel(18)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, by_channel(19)}};
  EXPECT_EQ(norm(parts).status, success);
  EXPECT_EQ(norm(parts, std::nullopt).status, bad);
  const std::map<cudnnBackendAttributeName_t, cudnnStatus_t> without = {
      {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, bad},
      {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, bad},
      {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, bad}};
  for (const auto& [name, part] : parts) {
    Parts fewer = parts;
    fewer.erase(name);
    const auto at = without.find(name);
    EXPECT_EQ(norm(fewer).status, at == without.end() ? success : at->second) << name;
  }
  const auto with = [&](cudnnBackendAttributeName_t name, const Made& part) {
    Parts changed = parts;
    changed[name] = part;
    return norm(changed).status;
  };
  EXPECT_EQ(with(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, by_channel(10, 31)), other_shape);
  EXPECT_EQ(with(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, image(3, 4, 32, 8, 7)), other_shape);
  EXPECT_EQ(with(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, by_channel(20, 1)), bad);
}

TEST(CudnnNorm, NeedsGradientsOfItsShape) {
  constexpr auto type = CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
  const Parts parts = {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, image(1, 4, 32, 8, 8)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, image(7, 4, 32, 8, 8)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, image(5, 4, 32, 8, 8)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, by_channel(12)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, by_channel(13)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, by_channel(10)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, by_channel(14)},
                       {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, by_channel(15)}};
  EXPECT_EQ(operation(type, parts).status, success);
  const std::map<cudnnBackendAttributeName_t, cudnnStatus_t> without = {
      {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, bad},
      {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, other_shape},
      {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, bad},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, bad},
      {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, success}};
  for (const auto& [name, status] : without) {
    Parts fewer = parts;
    fewer.erase(name);
    EXPECT_EQ(operation(type, fewer).status, status) << name;
  }
  Parts changed = parts;
  changed[CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC] = image(5, 4, 32, 8, 7);
  EXPECT_EQ(operation(type, changed).status, other_shape);
}

struct PoolPart {
  std::optional<cudnnResampleMode_t> mode = CUDNN_RESAMPLE_MAXPOOL;
  std::optional<std::int64_t> dims = 2;
  Sizes window{3, 3};
};

Made pool_window(const PoolPart& p = {}) {
  Maker maker(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  if (p.mode) maker.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, *p.mode);
  if (p.dims) maker.set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, *p.dims);
  return maker.set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, CUDNN_NEG_INF_PAD)
      .set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, p.window)
      .set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, Sizes{1, 1})
      .set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, Sizes{1, 1})
      .set(CUDNN_ATTR_RESAMPLE_STRIDES, Sizes{2, 2})
      .finalise();
}

TEST(CudnnPool, NeedsTensorsThatFitItsWindow) {
  EXPECT_EQ(pool_window().status, success);
  EXPECT_EQ(pool_window({.mode = std::nullopt}).status, unsupported);
  EXPECT_EQ(pool_window({.dims = std::nullopt}).status, unsupported);
  EXPECT_EQ(pool_window({.dims = 3}).status, unsupported);
  EXPECT_EQ(pool_window({.window = {3}}).status, unsupported);
  constexpr auto pool = CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR;
  constexpr auto back = CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
  const Made x = image(1, 4, 32, 9, 9);
  const Made y = image(3, 4, 32, 5, 5);
  const Made index = image(22, 4, 32, 5, 5, CUDNN_DATA_INT8);
  const Parts parts = {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x},
                       {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y},
                       {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index},
                       {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, pool_window()}};
  const Parts parts_back = {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, x},
                            {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, y},
                            {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, index},
                            {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, pool_window()}};
  EXPECT_EQ(operation(pool, parts).status, success);
  EXPECT_EQ(operation(back, parts_back).status, success);
  for (const auto& [name, part] : parts) {
    Parts fewer = parts;
    fewer.erase(name);
    const bool may = name == CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC;
    EXPECT_EQ(operation(pool, fewer).status, may ? success : bad) << name;
  }
  for (const auto& [name, part] : parts_back) {
    Parts fewer = parts_back;
    fewer.erase(name);
    EXPECT_EQ(operation(back, fewer).status, bad) << name;
  }
  const auto with = [&](cudnnBackendAttributeName_t name, const Made& part) {
    Parts changed = parts;
    changed[name] = part;
    return operation(pool, changed).status;
  };
  EXPECT_EQ(with(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, image(3, 4, 32, 5, 4)), bad);
  EXPECT_EQ(with(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, image(3, 4, 31, 5, 5)), bad);
  EXPECT_EQ(with(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, image(22, 4, 32, 5, 4)), bad);
}

}  // namespace
