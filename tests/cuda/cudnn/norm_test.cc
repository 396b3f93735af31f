// Batch norm by cuDNN against the formulas of Ioffe 2015, algorithm 1 and the gradients behind it.
#include <algorithm>
#include <cmath>

#include "tests/cuda/cudnn/draw.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using paceline::runtime::steps::BatchNorm;
using paceline::runtime::steps::Pass;
using Exact = std::vector<double>;

constexpr float epsilon = 1e-3F;
constexpr float momentum = 0.25F;
constexpr cudnnDataType_t real = CUDNN_DATA_FLOAT;

// Of each channel.
struct Statistics {
  Exact mean, variance, inverse;
};

Statistics statistics_of(const Numbers& x, std::size_t channels) {
  Statistics s{Exact(channels), Exact(channels), Exact(channels)};
  const double count = static_cast<double>(x.size() / channels);
  for (std::size_t i = 0; i < x.size(); ++i) s.mean[i % channels] += x[i] / count;
  for (std::size_t i = 0; i < x.size(); ++i)
    s.variance[i % channels] += std::pow(x[i] - s.mean[i % channels], 2) / count;
  for (std::size_t c = 0; c < channels; ++c) s.inverse[c] = 1 / std::sqrt(s.variance[c] + epsilon);
  return s;
}

struct Case {
  Images shape;
  NumberType storage;
  cudnnDataType_t type;
  std::size_t channels;
  Numbers x, scale, shift;
};

template <class Body>
void for_each_drawn(std::uint64_t seed, Body body) {
  Draw draw(seed);
  for (int round = 0; round < 18 && !testing::Test::HasFailure(); ++round) {
    Case c{.shape = draw.images(),
           .storage = types[round % 3],
           .type = {},
           .channels = {},
           .x = {},
           .scale = {},
           .shift = {}};
    c.shape.batch += 2;
    c.type = data_type(c.storage);
    c.channels = static_cast<std::size_t>(c.shape.channels);
    c.x = draw.normal(size_of(c.shape), c.type, 0.5, 2);
    c.scale = draw.normal(c.channels, real, 1, 0.5);
    c.shift = draw.normal(c.channels, real);
    SCOPED_TRACE(testing::Message() << "round " << round);
    cuda_on_host::reset(cuda_on_host::Order::random, static_cast<std::uint64_t>(round));
    body(c, draw);
  }
}

TEST(CudnnBatchNorm, NormsAddsAndCutsAndMovesItsStatistics) {
  for_each_drawn(1, [](const Case& c, Draw& draw) {
    // cuDNN has no engine for an add without a ReLU behind it.
    const bool relu = draw.flip();
    const BatchNorm norm{.x = c.shape, .residual = relu && draw.flip(), .relu = relu};
    const Statistics s = statistics_of(c.x, c.channels);
    const Numbers residual = draw.normal(c.x.size(), c.type);
    const Numbers old_mean = draw.normal(c.channels, real);
    const Numbers old_variance = draw.normal(c.channels, real, 4, 0.5);
    Exact y(c.x.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t k = i % c.channels;
      y[i] = (c.x[i] - s.mean[k]) * s.inverse[k] * c.scale[k] + c.shift[k];
      if (norm.residual) y[i] += residual[i];
      if (norm.relu) y[i] = std::max(0.0, y[i]);
    }
    const double count = static_cast<double>(c.x.size() / c.channels);
    Exact mean(c.channels);
    Exact variance(c.channels);
    for (std::size_t k = 0; k < c.channels; ++k) {
      mean[k] = (1 - momentum) * old_mean[k] + momentum * s.mean[k];
      variance[k] =
          (1 - momentum) * old_variance[k] + momentum * s.variance[k] * count / (count - 1);
    }
    Operands in = {{Role::x, {c.x, c.type}},
                   {Role::scale, {c.scale, real}},
                   {Role::shift, {c.shift, real}},
                   {Role::running_mean, {old_mean, real}},
                   {Role::running_variance, {old_variance, real}},
                   {Role::epsilon, {{epsilon}, real}},
                   {Role::momentum, {{momentum}, real}}};
    if (norm.residual) in[Role::residual] = {residual, c.type};
    const Operand by_channel{Numbers(c.channels), real};
    const Operands out = execute(norm, c.storage, in,
                                 {{Role::y, {Numbers(y.size()), c.type}},
                                  {Role::mean, by_channel},
                                  {Role::inverse_deviation, by_channel},
                                  {Role::next_running_mean, by_channel},
                                  {Role::next_running_variance, by_channel}});
    expect_near(out.at(Role::y).numbers, y, c.type);
    expect_near(out.at(Role::mean).numbers, s.mean, real);
    expect_near(out.at(Role::inverse_deviation).numbers, s.inverse, real);
    expect_near(out.at(Role::next_running_mean).numbers, mean, real);
    expect_near(out.at(Role::next_running_variance).numbers, variance, real);
  });
}

TEST(CudnnBatchNorm, GivesGradientsAlsoBehindARelu) {
  for_each_drawn(2, [](const Case& c, Draw& draw) {
    const BatchNorm norm{.pass = Pass::backward, .x = c.shape, .relu = draw.flip()};
    const Statistics s = statistics_of(c.x, c.channels);
    const Numbers dy = draw.normal(c.x.size(), c.type);
    const Numbers mean(s.mean.begin(), s.mean.end());
    const Numbers inverse(s.inverse.begin(), s.inverse.end());
    const double count = static_cast<double>(c.x.size() / c.channels);
    const auto normed = [&](std::size_t i) {
      return (c.x[i] - s.mean[i % c.channels]) * s.inverse[i % c.channels];
    };
    Exact gradient(dy.begin(), dy.end());
    Exact scale_gradient(c.channels);
    Exact shift_gradient(c.channels);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t k = i % c.channels;
      if (norm.relu && normed(i) * c.scale[k] + c.shift[k] <= 0) gradient[i] = 0;
      scale_gradient[k] += gradient[i] * normed(i);
      shift_gradient[k] += gradient[i];
    }
    Exact dx(dy.size());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const std::size_t k = i % c.channels;
      dx[i] = c.scale[k] * s.inverse[k] *
              (gradient[i] - (shift_gradient[k] + normed(i) * scale_gradient[k]) / count);
    }
    Operands in = {{Role::x, {c.x, c.type}},
                   {Role::dy, {dy, c.type}},
                   {Role::mean, {mean, real}},
                   {Role::inverse_deviation, {inverse, real}},
                   {Role::scale, {c.scale, real}}};
    if (norm.relu) in[Role::shift] = {c.shift, real};
    const Operands out = execute(norm, c.storage, in,
                                 {{Role::dx, {Numbers(dx.size()), c.type}},
                                  {Role::scale_gradient, {Numbers(c.channels), real}},
                                  {Role::shift_gradient, {Numbers(c.channels), real}}});
    expect_near(out.at(Role::dx).numbers, dx, c.type);
    expect_near(out.at(Role::scale_gradient).numbers, scale_gradient, real, 1e-4);
    expect_near(out.at(Role::shift_gradient).numbers, shift_gradient, real, 1e-4);
  });
}

}  // namespace
