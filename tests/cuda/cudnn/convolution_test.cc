// Convolutions by cuDNN against sums written out. Operands are small whole numbers, so that every sum
// is exact in FP32, in any order and by any engine that sums in FP32: results are equal to the bit.
#include "models/base/random.h"
#include "tests/cuda/cudnn/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using paceline::models::Extent;
using paceline::models::NumberType;
using paceline::runtime::steps::Convolution;
using paceline::runtime::steps::Images;
using paceline::runtime::steps::Role;
using Product = Convolution::Product;

using Numbers = std::vector<float>;

std::size_t size_of(const Images& i) {
  return static_cast<std::size_t>(i.batch * i.channels * i.height * i.width);
}
// Where a number of an image stands, in NHWC order.
std::size_t at(const Images& i, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
  return static_cast<std::size_t>(((n * i.height + y) * i.width + x) * i.channels + c);
}
// The weights as images of KRSC order.
Images weights(const Convolution& c) {
  return {c.y.channels, c.x.channels / c.groups, c.kernel.height, c.kernel.width};
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool flip() { return between(0, 1) == 1; }
  Numbers numbers(std::size_t count, std::int64_t largest = 3) {
    Numbers all(count);
    for (float& number : all) number = static_cast<float>(between(-largest, largest));
    return all;
  }

 private:
  paceline::Random random_;
};

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

Numbers rounded_all(cudnnDataType_t type, const std::vector<double>& sums) {
  Numbers all;
  for (const double sum : sums) all.push_back(rounded(type, sum));
  return all;
}

constexpr NumberType types[] = {NumberType::fp16, NumberType::bf16, NumberType::fp32};

TEST(CudnnConvolution, SumsProductsAndAddsBiasAndRelu) {
  Draw draw(1);
  for (int round = 0; round < 24; ++round) {
    const NumberType storage = types[round % 3];
    const cudnnDataType_t type = data_type(storage);
    Convolution c = draw_convolution(draw, Product::forward);
    c.bias = draw.flip();
    c.relu = c.bias && draw.flip();
    SCOPED_TRACE(paceline::runtime::steps::key(c, storage));
    const Numbers x = draw.numbers(size_of(c.x));
    const Numbers w = draw.numbers(size_of(weights(c)));
    const Numbers bias = draw.numbers(static_cast<std::size_t>(c.y.channels));
    std::vector<double> sums(size_of(c.y));
    for_each_product(c, [&](std::size_t to, std::size_t from, std::size_t weight) {
      sums[to] += double{x[from]} * w[weight];
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (c.bias) sums[i] += bias[i % bias.size()];
      if (c.relu) sums[i] = std::max(0.0, sums[i]);
    }
    cuda_on_host::reset(cuda_on_host::Order::random, static_cast<std::uint64_t>(round));
    Operands in = {{Role::x, {x, type}}, {Role::w, {w, type}}};
    if (c.bias) in[Role::bias] = {bias, type};
    const Operands out = execute(c, storage, in, {{Role::y, {Numbers(sums.size()), type}}});
    EXPECT_EQ(out.at(Role::y).numbers, rounded_all(type, sums));
    if (HasFailure()) return;
  }
}

}  // namespace
