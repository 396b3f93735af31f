// Convolutions by cuDNN against sums written out. Operands are small whole numbers, so that every sum
// is exact in FP32, in any order and by any engine that sums in FP32: results are equal to the bit.
#include <algorithm>

#include "tests/cuda/cudnn/draw.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using paceline::runtime::steps::Convolution;
using Product = Convolution::Product;

// The weights as images of KRSC order.
Images weights(const Convolution& c) {
  return {c.y.channels, c.x.channels / c.groups, c.kernel.height, c.kernel.width};
}

Convolution draw_convolution(Draw& draw, Product product) {
  Convolution c;
  c.product = product;
  c.groups = draw.between(0, 3) == 0 ? 2 : 1;
  const std::int64_t unit = 8;  // tensor cores take multiples of it
  c.x = {draw.between(1, 3), c.groups * unit * draw.between(1, 3), draw.between(3, 12),
         draw.between(3, 12)};
  c.kernel = {draw.between(1, 3), draw.between(1, 3)};
  c.stride = {draw.between(1, 2), draw.between(1, 2)};
  c.dilation = {draw.between(1, 4) == 1 ? 2 : 1, 1};
  c.padding = {draw.between(0, 2), draw.between(0, 2)};
  if ((c.kernel.height - 1) * c.dilation.height + 1 > c.x.height + 2 * c.padding.height)
    c.dilation.height = 1;
  const auto out = [](std::int64_t in, std::int64_t kernel, std::int64_t stride,
                      std::int64_t padding, std::int64_t dilation) {
    return (in + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
  };
  c.y = {c.x.batch, c.groups * unit * draw.between(1, 3),
         out(c.x.height, c.kernel.height, c.stride.height, c.padding.height, c.dilation.height),
         out(c.x.width, c.kernel.width, c.stride.width, c.padding.width, c.dilation.width)};
  return c;
}

// Calls visit(output's n, k, y, x; input's channel, y, x; weight's channel, r, s) for every product.
template <class Visit>
void for_each_product(const Convolution& c, Visit visit) {
  const Images w = weights(c);
  const std::int64_t filters = c.y.channels / c.groups;
  for (std::int64_t n = 0; n < c.y.batch; ++n)
    for (std::int64_t k = 0; k < c.y.channels; ++k)
      for (std::int64_t oy = 0; oy < c.y.height; ++oy)
        for (std::int64_t ox = 0; ox < c.y.width; ++ox)
          for (std::int64_t r = 0; r < w.height; ++r)
            for (std::int64_t s = 0; s < w.width; ++s) {
              const std::int64_t y =
                  oy * c.stride.height - c.padding.height + r * c.dilation.height;
              const std::int64_t x = ox * c.stride.width - c.padding.width + s * c.dilation.width;
              if (y < 0 || y >= c.x.height || x < 0 || x >= c.x.width) continue;
              for (std::int64_t i = 0; i < w.channels; ++i)
                visit(at(c.y, n, k, oy, ox), at(c.x, n, k / filters * w.channels + i, y, x),
                      at(w, k, i, r, s));
            }
}

// Random convolutions, with what draws their numbers.
template <class Body>
void for_each_drawn(Product product, std::uint64_t seed, Body body) {
  Draw draw(seed);
  for (int round = 0; round < 24 && !testing::Test::HasFailure(); ++round) {
    const NumberType storage = types[round % 3];
    const Convolution c = draw_convolution(draw, product);
    SCOPED_TRACE(paceline::runtime::steps::key(c, storage));
    cuda_on_host::reset(cuda_on_host::Order::random, static_cast<std::uint64_t>(round));
    body(c, storage, data_type(storage), draw);
  }
}

TEST(CudnnConvolution, SumsProductsAndAddsBiasAndRelu) {
  for_each_drawn(
      Product::forward, 1, [](Convolution c, NumberType storage, cudnnDataType_t type, Draw& draw) {
        c.bias = draw.flip();
        c.relu = draw.flip();
        const Numbers x = draw.whole(size_of(c.x));
        const Numbers w = draw.whole(size_of(weights(c)));
        const Numbers bias = draw.whole(static_cast<std::size_t>(c.y.channels));
        std::vector<double> sums(size_of(c.y));
        for_each_product(c, [&](std::size_t y_at, std::size_t x_at, std::size_t w_at) {
          sums[y_at] += double{x[x_at]} * w[w_at];
        });
        for (std::size_t i = 0; i < sums.size(); ++i) {
          if (c.bias) sums[i] += bias[i % bias.size()];
          if (c.relu) sums[i] = std::max(0.0, sums[i]);
        }
        Operands in = {{Role::x, {x, type}}, {Role::w, {w, type}}};
        if (c.bias) in[Role::bias] = {bias, type};
        const Operands out = execute(c, storage, in, {{Role::y, {Numbers(sums.size()), type}}});
        EXPECT_EQ(out.at(Role::y).numbers, rounded_all(type, sums));
      });
}

TEST(CudnnConvolution, GivesTheGradientOfItsInput) {
  for_each_drawn(Product::data_gradient, 2,
                 [](const Convolution& c, NumberType storage, cudnnDataType_t type, Draw& draw) {
                   const Numbers w = draw.whole(size_of(weights(c)));
                   const Numbers dy = draw.whole(size_of(c.y));
                   std::vector<double> sums(size_of(c.x));
                   for_each_product(c, [&](std::size_t y_at, std::size_t x_at, std::size_t w_at) {
                     sums[x_at] += double{dy[y_at]} * w[w_at];
                   });
                   const Operands out =
                       execute(c, storage, {{Role::w, {w, type}}, {Role::dy, {dy, type}}},
                               {{Role::dx, {Numbers(sums.size()), type}}});
                   EXPECT_EQ(out.at(Role::dx).numbers, rounded_all(type, sums));
                 });
}

TEST(CudnnConvolution, GivesTheGradientOfItsWeights) {
  for_each_drawn(Product::filter_gradient, 3,
                 [](const Convolution& c, NumberType storage, cudnnDataType_t type, Draw& draw) {
                   const Numbers x = draw.whole(size_of(c.x));
                   const Numbers dy = draw.whole(size_of(c.y));
                   std::vector<double> sums(size_of(weights(c)));
                   for_each_product(c, [&](std::size_t y_at, std::size_t x_at, std::size_t w_at) {
                     sums[w_at] += double{dy[y_at]} * x[x_at];
                   });
                   const Operands out =
                       execute(c, storage, {{Role::x, {x, type}}, {Role::dy, {dy, type}}},
                               {{Role::dw, {Numbers(sums.size()), type}}});
                   EXPECT_EQ(out.at(Role::dw).numbers, rounded_all(type, sums));
                 });
}

// Without tensor cores FP32 keeps its bits; with them operands may be rounded to ten.
TEST(CudnnConvolution, RoundsOperandsOnlyWhereItMay) {
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  const Convolution c{.x = {2, 8, 4, 4}, .y = {2, 8, 4, 4}, .kernel = {1, 1}};
  Draw draw(4);
  const Numbers x = draw.normal(size_of(c.x), CUDNN_DATA_FLOAT);
  const Numbers w = draw.normal(64, CUDNN_DATA_FLOAT);
  std::vector<double> sums(size_of(c.y));
  for_each_product(c, [&](std::size_t y_at, std::size_t x_at, std::size_t w_at) {
    sums[y_at] += double{x[x_at]} * w[w_at];
  });
  const auto largest_error = [&](bool tf32) {
    const Operands out = execute(
        c, NumberType::fp32, {{Role::x, {x, CUDNN_DATA_FLOAT}}, {Role::w, {w, CUDNN_DATA_FLOAT}}},
        {{Role::y, {Numbers(sums.size()), CUDNN_DATA_FLOAT}}}, {.tf32 = tf32});
    double largest = 0;
    for (std::size_t i = 0; i < sums.size(); ++i)
      largest = std::max(largest, std::abs(out.at(Role::y).numbers[i] - sums[i]));
    return largest;
  };
  EXPECT_LT(largest_error(false), 1e-5);
  EXPECT_LT(largest_error(true), 2e-2);
  if (cuda_on_host::cudnn::present()) EXPECT_GT(largest_error(true), 1e-4);
}

}  // namespace
