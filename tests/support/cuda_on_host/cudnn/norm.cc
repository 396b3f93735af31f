// Batch norm (Ioffe 2015, algorithm 1), forward and backward. Sums over the batch are FP64.
#include <cmath>
#include <utility>

#include "tests/support/cuda_on_host/cudnn/interpreter.h"

namespace cuda_on_host::cudnn {
namespace {

using Numbers = std::map<std::int64_t, float>;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// The sum over all pixels of what `term` gives for (pixel's numbers, channel), by channel.
template <class Term>
std::vector<double> sums_by_channel(const Values& x, Term term) {
  std::vector<double> sums(at(x.c));
  for (std::int64_t i = 0; i < x.pixels() * x.c; ++i) sums[at(i % x.c)] += term(i, i % x.c);
  return sums;
}

Values by_channel(const Tensor& tensor, const std::vector<double>& numbers) {
  Values values = Values::of(tensor);
  for (std::size_t c = 0; c < numbers.size(); ++c) values.data[c] = static_cast<float>(numbers[c]);
  return values;
}

// Running statistics: the variance is that of the population, estimated from the batch.
void move_running(const Node& node, const Numbers& numbers, const std::vector<double>& mean,
                  const std::vector<double>& variance, double count, AllValues& values) {
  if (!node.has(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC)) return;
  const double factor =
      numbers.at(node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC).uid);
  const auto move = [&](int before, int after, const std::vector<double>& batch, double scale) {
    const Values& old = values.at(node.tensor(before).uid);
    std::vector<double> next(batch.size());
    for (std::size_t c = 0; c < next.size(); ++c)
      next[c] = (1 - factor) * old.data[c] + factor * scale * batch[c];
    values[node.tensor(after).uid] = by_channel(node.tensor(after), next);
  };
  move(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
       CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, mean, 1);
  move(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
       CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, variance,
       count > 1 ? count / (count - 1) : 1);
}

}  // namespace

void compute_norm(const Node& node, const Numbers& numbers, AllValues& values) {
  const Tensor& x_tensor = node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
  const Tensor& mean_tensor = node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC);
  const Tensor& inverse_tensor = node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
  const Values& x = values.at(x_tensor.uid);
  if (node.writes(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC)) {
    const auto count = static_cast<double>(x.pixels());
    std::vector<double> mean =
        sums_by_channel(x, [&](std::int64_t i, std::int64_t) { return double{x.data[at(i)]}; });
    for (double& m : mean) m /= count;
    std::vector<double> variance = sums_by_channel(x, [&](std::int64_t i, std::int64_t c) {
      const double d = x.data[at(i)] - mean[at(c)];
      return d * d;
    });
    for (double& v : variance) v /= count;
    const double epsilon = numbers.at(node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC).uid);
    std::vector<double> inverse(variance.size());
    for (std::size_t c = 0; c < inverse.size(); ++c)
      inverse[c] = 1 / std::sqrt(variance[c] + epsilon);
    move_running(node, numbers, mean, variance, count, values);
    values[mean_tensor.uid] = by_channel(mean_tensor, mean);
    values[inverse_tensor.uid] = by_channel(inverse_tensor, inverse);
  }
  const Values& mean = values.at(mean_tensor.uid);
  const Values& inverse = values.at(inverse_tensor.uid);
  const Values& scale = values.at(node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC).uid);
  const Values& shift = values.at(node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC).uid);
  const Tensor& y_tensor = node.tensor(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
  Values y = Values::of(y_tensor);
  for (std::size_t i = 0; i < y.data.size(); ++i) {
    const std::size_t c = i % at(y.c);
    y.data[i] = (x.data[i] - mean.data[c]) * inverse.data[c] * scale.data[c] + shift.data[c];
  }
  values[y_tensor.uid] = std::move(y);
}

void compute_norm_backward(const Node& node, AllValues& values) {
  const auto of = [&](int attribute) -> const Values& {
    return values.at(node.tensor(attribute).uid);
  };
  const Values& x = of(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
  const Values& dy = of(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC);
  const Values& mean = of(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC);
  const Values& inverse = of(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
  const Values& scale = of(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC);
  const auto normed = [&](std::size_t i, std::size_t c) {
    return (double{x.data[i]} - mean.data[c]) * inverse.data[c];
  };
  const std::vector<double> shift_gradient =
      sums_by_channel(x, [&](std::int64_t i, std::int64_t) { return double{dy.data[at(i)]}; });
  const std::vector<double> scale_gradient = sums_by_channel(
      x, [&](std::int64_t i, std::int64_t c) { return dy.data[at(i)] * normed(at(i), at(c)); });
  const auto count = static_cast<double>(x.pixels());
  const Tensor& dx_tensor = node.tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC);
  Values dx = Values::of(dx_tensor);
  for (std::size_t i = 0; i < dx.data.size(); ++i) {
    const std::size_t c = i % at(dx.c);
    const double centred =
        dy.data[i] - (shift_gradient[c] + normed(i, c) * scale_gradient[c]) / count;
    dx.data[i] = static_cast<float>(scale.data[c] * inverse.data[c] * centred);
  }
  const Tensor& dscale = node.tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
  const Tensor& dshift = node.tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
  values[dscale.uid] = by_channel(dscale, scale_gradient);
  values[dshift.uid] = by_channel(dshift, shift_gradient);
  values[dx_tensor.uid] = std::move(dx);
}

}  // namespace cuda_on_host::cudnn
