// Graphs that cuDNN has engines for, and near ones that it has none for, tried on the toolkit's
// library and on the double: where the double offered more, code would pass on it and fail on a GPU.
#include <gtest/gtest.h>

#include "runtime/network/cudnn/device_description.h"
#include "tests/cuda/cudnn/parts.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

constexpr cudnnDataType_t half = CUDNN_DATA_HALF;
constexpr cudnnDataType_t real = CUDNN_DATA_FLOAT;

Made device() {
  return Maker(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
           paceline::runtime::cudnn::shipped_device("h100").properties)
      .finalise();
}

// Whether the heuristics give a configuration.
bool is_offered(const std::vector<Made>& operations) {
  const Made whole = graph(operations);
  EXPECT_CUDNN(whole.status);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const Made found = Maker(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                           .set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole)
                           .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
                           .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device())
                           .finalise();
    if (found.status != CUDNN_STATUS_SUCCESS) continue;
    const Raw configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = configuration;
    std::int64_t count = 0;
    EXPECT_CUDNN(cudnnBackendGetAttribute(found, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw));
    if (count > 0) return true;
  }
  return false;
}

Made batch(std::int64_t uid, cudnnDataType_t type = half, std::int64_t channels = 32,
           bool is_virtual = false) {
  return image(uid, 4, channels, 8, 8, type, is_virtual);
}
Made passing(std::int64_t uid, cudnnDataType_t type = real) {
  return batch(uid, type, 32, true);
}
Made nchw(std::int64_t uid) {
  return make({.uid = uid, .dims = Sizes{4, 32, 8, 8}, .strides = Sizes{2048, 64, 8, 1}});
}
Made by_channel(std::int64_t uid, std::int64_t channels = 32) {
  return image(uid, 1, channels, 1, 1, real);
}

Made relu(const Made& x, const Made& y) {
  return pointwise(CUDNN_POINTWISE_RELU_FWD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                              {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
}
Made relu_backward(const Made& x, const Made& dy, const Made& dx) {
  return pointwise(CUDNN_POINTWISE_RELU_BWD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                              {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy},
                                              {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx}});
}
Made sum(const Made& a, const Made& b, const Made& y) {
  return pointwise(CUDNN_POINTWISE_ADD, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a},
                                         {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                                         {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
}

Made norm(const Made& x, const Made& y, bool trains, std::int64_t channels = 32) {
  Maker maker(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  maker.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
           trains ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, by_channel(12, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, by_channel(13, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, by_channel(14, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, by_channel(15, channels));
  if (trains)
    maker.set(
        CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
        make({.uid = 16, .dims = Sizes(4, 1), .type = real, .alignment = 4, .by_value = true}));
  return maker.finalise();
}
Made norm_backward(const Made& x, const Made& dy, const Made& dx, std::int64_t channels = 32) {
  return Maker(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy)
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, dx)
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, by_channel(12, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, by_channel(13, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, by_channel(14, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, by_channel(17, channels))
      .set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, by_channel(18, channels))
      .finalise();
}
// Each of the three products, with a window of three by three.
Made product(const ConvolutionNames& names, const Made& x, const Made& w, const Made& y) {
  return convolution(
      names, {{names.x, x}, {names.w, w}, {names.y, y}, {names.window, make(WindowPart{})}});
}
Made filter(cudnnDataType_t type = half) {
  return image(2, 32, 32, 3, 3, type);
}

TEST(CudnnOffers, NormsOfPixelsOfWhole16Bytes) {
  for (const std::int64_t channels : {8, 36})
    EXPECT_EQ(
        is_offered({norm(batch(1, half, channels), batch(3, half, channels), true, channels)}),
        channels % 8 == 0)
        << channels;
  for (const std::int64_t channels : {6, 12})
    EXPECT_EQ(
        is_offered({norm(batch(1, real, channels), batch(3, real, channels), true, channels)}),
        channels % 4 == 0)
        << channels;
  EXPECT_FALSE(
      is_offered({norm_backward(batch(1, half, 36), batch(7, half, 36), batch(5, half, 36), 36)}));
}

TEST(CudnnOffers, NormsThatReadAndWriteOneType) {
  EXPECT_TRUE(is_offered({norm(batch(1), passing(10), true), relu(passing(10), batch(3))}));
  EXPECT_FALSE(is_offered({norm(batch(1), batch(3, real), true)}));
  EXPECT_TRUE(is_offered({norm(batch(1), passing(10), true),
                          sum(passing(10), batch(4), passing(11)), relu(passing(11), batch(3))}));
  EXPECT_FALSE(
      is_offered({norm(batch(1), passing(10), true), sum(passing(10), batch(4), batch(3))}));
  EXPECT_FALSE(is_offered({relu(batch(3), passing(10)), norm(passing(10), batch(1), true)}));
}

TEST(CudnnOffers, GradientsOfNormsBehindOneKindOfRelu) {
  const auto behind_relu = [](cudnnDataType_t type) {
    return std::vector<Made>{norm(batch(1), passing(10), false),
                             relu_backward(passing(10), batch(7), passing(11, type)),
                             norm_backward(batch(1), passing(11, type), batch(5))};
  };
  EXPECT_TRUE(is_offered(behind_relu(half)));
  EXPECT_FALSE(is_offered(behind_relu(real)));
  EXPECT_FALSE(is_offered({relu_backward(batch(3), batch(7), passing(11, half)),
                           norm_backward(batch(1), passing(11, half), batch(5))}));
  EXPECT_FALSE(
      is_offered({norm_backward(batch(1), batch(7), passing(11)), relu(passing(11), batch(5))}));
}

TEST(CudnnOffers, ConvolutionsWithWhatMayBeFused) {
  EXPECT_TRUE(is_offered({product(forward_names, batch(1), filter(), passing(10)),
                          sum(passing(10), batch(4), batch(3))}));
  EXPECT_TRUE(is_offered({product(data_names, passing(10), filter(), batch(7)),
                          relu_backward(batch(1), passing(10), batch(5))}));
  EXPECT_FALSE(is_offered({relu(batch(1), passing(10, half)),
                           product(filter_names, passing(10, half), filter(), batch(7))}));
  EXPECT_FALSE(is_offered({product(filter_names, batch(1), filter(real), batch(7))}));
  EXPECT_FALSE(is_offered({product(data_names, batch(5, real), filter(), batch(7))}));
}

TEST(CudnnOffers, PointwiseKernelsInNhwc) {
  EXPECT_TRUE(is_offered({sum(batch(1), batch(2), batch(3))}));
  EXPECT_TRUE(is_offered({sum(batch(1, half, 35), batch(2, half, 35), batch(3, half, 35))}));
  EXPECT_FALSE(is_offered({sum(nchw(1), nchw(2), nchw(3))}));
  EXPECT_FALSE(is_offered({sum(batch(1), nchw(2), batch(3))}));
  EXPECT_FALSE(is_offered({sum(batch(1, half, 1), batch(2, half, 1), batch(3, half, 1))}));
}

}  // namespace
