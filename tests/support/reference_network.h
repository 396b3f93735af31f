// A network in double precision, by the plainest loops: the judge of runtime/network.
//
// Weights and gradients are flat in the order of runtime::parameter_places. Activations are
// (N, C, H, W), and those of sequences (N, elements, features). Forward and backward of each linear layer share one enumeration of its products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/network/network.h"
#include "models/network/shape_inference.h"
#include "runtime/network/computed_kinds.h"
#include "runtime/network/trainable_network.h"

namespace paceline::test {

using Doubles = std::vector<double>;

class ReferenceNetwork {
 public:
  ReferenceNetwork(const models::Network& network, int batch)
      : network_(network),
        batch_(batch),
        shapes_(models::infer_shapes(network)),
        places_(runtime::parameter_places(network)) {}

  // What dropout layers multiply by, (layer) to (N, C, H, W); 1 where it is not set.
  std::vector<Doubles> masks;
  // Instead of a batch's statistics, for evaluation: means, then variances.
  Doubles statistics;
  double epsilon = 1e-5;

  [[nodiscard]] const Doubles& activation(int layer) const {
    return values_[static_cast<std::size_t>(layer + 1)];
  }

  // The mean loss.
  double forward(const Doubles& weights, const Doubles& images,
                 const std::vector<std::int32_t>& labels) {
    weights_ = weights;
    labels_ = labels;
    values_.assign(network_.layers().size() + 1, {});
    values_[0] = images;
    statistics_used_ = 0;
    for (layer_ = 0; layer_ < layers(); ++layer_) {
      value(layer_).assign(elements(shape(layer_)), 0);
      std::visit(
          [this](const auto& kind) {
            if constexpr (runtime::is_computed<std::decay_t<decltype(kind)>>) forward(kind);
          },
          here().kind);
    }
    return values_.back()[0];
  }

  // The gradient of the mean loss by the weights.
  Doubles backward() {
    gradients_.clear();
    for (const Doubles& v : values_) gradients_.emplace_back(v.size(), 0.0);
    weight_gradients_.assign(weights_.size(), 0);
    gradients_.back()[0] = 1;
    for (layer_ = layers() - 1; layer_ >= 0; --layer_)
      std::visit(
          [this](const auto& kind) {
            if constexpr (runtime::is_computed<std::decay_t<decltype(kind)>>) backward(kind);
          },
          here().kind);
    return weight_gradients_;
  }

 private:
  using Shape = models::Shape;
  [[nodiscard]] int layers() const { return static_cast<int>(network_.layers().size()); }
  [[nodiscard]] const models::Layer& here() const {
    return network_.layers()[static_cast<std::size_t>(layer_)];
  }
  [[nodiscard]] const Shape& shape(int layer) const {
    return layer < 0 ? network_.input() : shapes_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] std::size_t elements(const Shape& s) const {
    return static_cast<std::size_t>(batch_ * s.elements());
  }
  Doubles& value(int layer) { return values_[static_cast<std::size_t>(layer + 1)]; }
  Doubles& gradient(int layer) { return gradients_[static_cast<std::size_t>(layer + 1)]; }
  [[nodiscard]] int input() const { return here().inputs.front(); }
  [[nodiscard]] const Shape& in() const { return shape(input()); }
  [[nodiscard]] const Shape& out() const { return shape(layer_); }

  static std::size_t at(const Shape& s, std::int64_t n, std::int64_t c, std::int64_t y,
                        std::int64_t x) {
    if (s.is_sequence) return static_cast<std::size_t>((n * s.height + y) * s.channels + c);
    return static_cast<std::size_t>(((n * s.channels + c) * s.height + y) * s.width + x);
  }
  // Where the parameter of the layer at hand starts.
  [[nodiscard]] std::size_t offset(runtime::ParameterRole role) const {
    return offset(layer_, role);
  }
  [[nodiscard]] std::size_t offset(int layer, runtime::ParameterRole role) const {
    for (const auto& place : places_)
      if (place.layer == layer && place.role == role) return static_cast<std::size_t>(place.offset);
    return 0;
  }

  // Calls f(n, c, y, x) for each element.
  template <class F>
  void for_each(const Shape& s, F f) const {
    for (std::int64_t n = 0; n < batch_; ++n)
      for (std::int64_t c = 0; c < s.channels; ++c)
        for (std::int64_t y = 0; y < s.height; ++y)
          for (std::int64_t x = 0; x < s.width; ++x) f(n, c, y, x);
  }

  // Calls f(output, input, weight, output channel) for each product.
  template <class F>
  void for_each_product(const models::Convolution& conv, F f) const {
    const std::int64_t group_in = in().channels / conv.groups;
    const std::int64_t group_out = conv.channels / conv.groups;
    for_each(out(), [&](auto n, auto c, auto y, auto x) {
      for (std::int64_t i = 0; i < group_in; ++i)
        for (std::int64_t ky = 0; ky < conv.kernel.height; ++ky)
          for (std::int64_t kx = 0; kx < conv.kernel.width; ++kx) {
            const auto iy =
                y * conv.stride.height + ky * conv.dilation.height - conv.padding.height;
            const auto ix = x * conv.stride.width + kx * conv.dilation.width - conv.padding.width;
            if (iy < 0 || iy >= in().height || ix < 0 || ix >= in().width) continue;
            const auto weight =
                ((c * group_in + i) * conv.kernel.height + ky) * conv.kernel.width + kx;
            f(at(out(), n, c, y, x), at(in(), n, c / group_out * group_in + i, iy, ix),
              static_cast<std::size_t>(weight), static_cast<std::size_t>(c));
          }
    });
  }
  [[nodiscard]] models::Convolution as_convolution(const models::FullyConnected& f) const {
    return {.channels = f.outputs, .kernel = {in().height, in().width}, .bias = f.bias};
  }

  void forward(const models::Convolution& conv) {
    const double* weights = weights_.data() + offset(runtime::ParameterRole::weight);
    const double* bias = weights_.data() + offset(runtime::ParameterRole::bias);
    if (conv.bias)
      for_each(out(), [&](auto n, auto c, auto y, auto x) {
        value(layer_)[at(out(), n, c, y, x)] = bias[c];
      });
    for_each_product(conv, [&](auto o, auto i, auto w, auto) {
      value(layer_)[o] += value(input())[i] * weights[w];
    });
  }
  void backward(const models::Convolution& conv) {
    const std::size_t weights = offset(runtime::ParameterRole::weight);
    const std::size_t bias = offset(runtime::ParameterRole::bias);
    if (conv.bias)
      for_each(out(), [&](auto n, auto c, auto y, auto x) {
        weight_gradients_[bias + static_cast<std::size_t>(c)] +=
            gradient(layer_)[at(out(), n, c, y, x)];
      });
    for_each_product(conv, [&](auto o, auto i, auto w, auto) {
      gradient(input())[i] += gradient(layer_)[o] * weights_[weights + w];
      weight_gradients_[weights + w] += gradient(layer_)[o] * value(input())[i];
    });
  }
  void forward(const models::FullyConnected& f) { forward(as_convolution(f)); }
  void backward(const models::FullyConnected& f) { backward(as_convolution(f)); }

  struct Channel {
    double mean = 0;
    double variance = 0;
    double count = 0;
    [[nodiscard]] double inverse_deviation(double epsilon) const {
      return 1 / std::sqrt(variance + epsilon);
    }
  };
  std::vector<Channel> channels(const Doubles& x) const {
    std::vector<Channel> result(static_cast<std::size_t>(in().channels));
    const auto of = [&](std::int64_t c) -> Channel& { return result[static_cast<std::size_t>(c)]; };
    for_each(in(), [&](auto n, auto c, auto y, auto w) {
      of(c).mean += x[at(in(), n, c, y, w)];
      of(c).count += 1;
    });
    for (Channel& c : result) c.mean /= c.count;
    for_each(in(), [&](auto n, auto c, auto y, auto w) {
      of(c).variance += std::pow(x[at(in(), n, c, y, w)] - of(c).mean, 2);
    });
    for (Channel& c : result) c.variance /= c.count;
    return result;
  }

  void forward(const models::BatchNorm&) {
    std::vector<Channel> all = channels(value(input()));
    if (!statistics.empty())
      for (Channel& c : all) {
        c.mean = statistics[statistics_used_];
        c.variance = statistics[statistics_used_++ + statistics.size() / 2];
      }
    const double* gamma = weights_.data() + offset(runtime::ParameterRole::gamma);
    const double* beta = weights_.data() + offset(runtime::ParameterRole::beta);
    for_each(in(), [&](auto n, auto c, auto y, auto x) {
      const Channel& channel = all[static_cast<std::size_t>(c)];
      const std::size_t i = at(in(), n, c, y, x);
      value(layer_)[i] =
          gamma[c] * (value(input())[i] - channel.mean) * channel.inverse_deviation(epsilon) +
          beta[c];
    });
  }
  // dx = gamma / s (dy - mean(dy) - x^ mean(dy x^)), x^ = (x - mean) / s (Ioffe 2015).
  void backward(const models::BatchNorm&) {
    const std::vector<Channel> all = channels(value(input()));
    const std::size_t gamma = offset(runtime::ParameterRole::gamma);
    const std::size_t beta = offset(runtime::ParameterRole::beta);
    const auto normalised = [&](std::size_t i, const Channel& c) {
      return (value(input())[i] - c.mean) * c.inverse_deviation(epsilon);
    };
    for_each(in(), [&](auto n, auto c, auto y, auto x) {
      const auto k = static_cast<std::size_t>(c);
      const std::size_t i = at(in(), n, c, y, x);
      weight_gradients_[beta + k] += gradient(layer_)[i];
      weight_gradients_[gamma + k] += gradient(layer_)[i] * normalised(i, all[k]);
    });
    for_each(in(), [&](auto n, auto c, auto y, auto x) {
      const auto k = static_cast<std::size_t>(c);
      const std::size_t i = at(in(), n, c, y, x);
      gradient(input())[i] += weights_[gamma + k] * all[k].inverse_deviation(epsilon) *
                              (gradient(layer_)[i] - weight_gradients_[beta + k] / all[k].count -
                               normalised(i, all[k]) * weight_gradients_[gamma + k] / all[k].count);
    });
  }

  void forward(const models::Relu&) {
    std::transform(value(input()).begin(), value(input()).end(), value(layer_).begin(),
                   [](double x) { return std::max(x, 0.0); });
  }
  void backward(const models::Relu&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      if (value(layer_)[i] > 0) gradient(input())[i] += gradient(layer_)[i];
  }

  // Calls f(output, inputs inside of the image) for each window.
  template <class F>
  void for_each_window(const models::Pool& pool, F f) const {
    for_each(out(), [&](auto n, auto c, auto y, auto x) {
      std::vector<std::size_t> window;
      for (std::int64_t ky = 0; ky < pool.kernel.height; ++ky)
        for (std::int64_t kx = 0; kx < pool.kernel.width; ++kx) {
          const auto iy = y * pool.stride.height + ky - pool.padding.height;
          const auto ix = x * pool.stride.width + kx - pool.padding.width;
          if (iy >= 0 && iy < in().height && ix >= 0 && ix < in().width)
            window.push_back(at(in(), n, c, iy, ix));
        }
      f(at(out(), n, c, y, x), window);
    });
  }
  [[nodiscard]] std::size_t largest(const std::vector<std::size_t>& window) {
    return *std::max_element(window.begin(), window.end(), [&](std::size_t a, std::size_t b) {
      return value(input())[a] < value(input())[b];
    });
  }
  void forward(const models::MaxPool& pool) {
    for_each_window(pool, [&](std::size_t o, const auto& window) {
      value(layer_)[o] = value(input())[largest(window)];
    });
  }
  void backward(const models::MaxPool& pool) {
    for_each_window(pool, [&](std::size_t o, const auto& window) {
      gradient(input())[largest(window)] += gradient(layer_)[o];
    });
  }
  // PyTorch's avg_pool2d divides by the number of elements of an output's window that lie in the
  // padded input. Calls f(output, inputs in the image, divisor).
  template <class F>
  void for_each_mean(const models::AveragePool& pool, F f) {
    const auto height = in().height + 2 * pool.padding.height;
    const auto width = in().width + 2 * pool.padding.width;
    std::vector<double> divisors(value(layer_).size());
    for_each(out(), [&](auto n, auto c, auto y, auto x) {
      double& divisor = divisors[at(out(), n, c, y, x)];
      for (std::int64_t ky = 0; ky < pool.kernel.height; ++ky)
        for (std::int64_t kx = 0; kx < pool.kernel.width; ++kx)
          if (y * pool.stride.height + ky < height && x * pool.stride.width + kx < width) ++divisor;
    });
    for_each_window(pool, [&](std::size_t o, const auto& window) { f(o, window, divisors[o]); });
  }
  void forward(const models::AveragePool& pool) {
    for_each_mean(pool, [&](std::size_t o, const auto& window, double divisor) {
      for (const std::size_t i : window) value(layer_)[o] += value(input())[i] / divisor;
    });
  }
  void backward(const models::AveragePool& pool) {
    for_each_mean(pool, [&](std::size_t o, const auto& window, double divisor) {
      for (const std::size_t i : window) gradient(input())[i] += gradient(layer_)[o] / divisor;
    });
  }

  // Calls f(output, input, elements of the window).
  template <class F>
  void for_each_part(const models::AdaptiveAveragePool& pool, F f) const {
    const auto first = [](auto i, auto size, auto count) { return i * size / count; };
    const auto end = [](auto i, auto size, auto count) {
      return static_cast<std::int64_t>(
          std::ceil(static_cast<double>((i + 1) * size) / static_cast<double>(count)));
    };
    for_each(out(), [&](auto n, auto c, auto y, auto x) {
      const auto top = first(y, in().height, pool.output.height);
      const auto bottom = end(y, in().height, pool.output.height);
      const auto left = first(x, in().width, pool.output.width);
      const auto right = end(x, in().width, pool.output.width);
      for (auto iy = top; iy < bottom; ++iy)
        for (auto ix = left; ix < right; ++ix)
          f(at(out(), n, c, y, x), at(in(), n, c, iy, ix),
            static_cast<double>((bottom - top) * (right - left)));
    });
  }
  void forward(const models::AdaptiveAveragePool& pool) {
    for_each_part(
        pool, [&](auto o, auto i, double size) { value(layer_)[o] += value(input())[i] / size; });
  }
  void backward(const models::AdaptiveAveragePool& pool) {
    for_each_part(pool, [&](auto o, auto i, double size) {
      gradient(input())[i] += gradient(layer_)[o] / size;
    });
  }

  // k + alpha * sum of squares (Krizhevsky 2012, 3.3).
  double lrn_scale(const models::Lrn& lrn, std::int64_t n, std::int64_t c, std::int64_t y,
                   std::int64_t x) {
    double sum = 0;
    const std::int64_t last = std::min(c + lrn.size / 2, in().channels - 1);
    for (std::int64_t j = std::max<std::int64_t>(0, c - lrn.size / 2); j <= last; ++j)
      sum += std::pow(value(input())[at(in(), n, j, y, x)], 2);
    return 2 + 1e-4 * sum;
  }
  void forward(const models::Lrn& lrn) {
    for_each(in(), [&](auto n, auto c, auto y, auto x) {
      const std::size_t i = at(in(), n, c, y, x);
      value(layer_)[i] = value(input())[i] * std::pow(lrn_scale(lrn, n, c, y, x), -0.75);
    });
  }
  void backward(const models::Lrn& lrn) {
    for_each(in(), [&](auto n, auto c, auto y, auto x) {
      const std::size_t i = at(in(), n, c, y, x);
      const double scale = lrn_scale(lrn, n, c, y, x);
      const double g = gradient(layer_)[i];
      gradient(input())[i] += g * std::pow(scale, -0.75);
      const std::int64_t last = std::min(c + lrn.size / 2, in().channels - 1);
      for (std::int64_t j = std::max<std::int64_t>(0, c - lrn.size / 2); j <= last; ++j) {
        const std::size_t k = at(in(), n, j, y, x);
        gradient(input())[k] -=
            g * value(input())[i] * 0.75 * std::pow(scale, -1.75) * 1e-4 * 2 * value(input())[k];
      }
    });
  }

  [[nodiscard]] double mask(std::size_t i) const {
    const auto layer = static_cast<std::size_t>(layer_);
    return layer < masks.size() && !masks[layer].empty() ? masks[layer][i] : 1;
  }
  void forward(const models::Dropout&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      value(layer_)[i] = value(input())[i] * mask(i);
  }
  void backward(const models::Dropout&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      gradient(input())[i] += gradient(layer_)[i] * mask(i);
  }

  void forward(const models::Add&) {
    for (const int from : here().inputs)
      for (std::size_t i = 0; i < value(layer_).size(); ++i) value(layer_)[i] += value(from)[i];
  }
  void backward(const models::Add&) {
    for (const int from : here().inputs)
      for (std::size_t i = 0; i < value(layer_).size(); ++i)
        gradient(from)[i] += gradient(layer_)[i];
  }

  // Calls f(input layer, its element, output element).
  template <class F>
  void for_each_joined(F f) const {
    std::int64_t start = 0;
    for (const int from : here().inputs) {
      for_each(shape(from), [&](auto n, auto c, auto y, auto x) {
        f(from, at(shape(from), n, c, y, x), at(out(), n, start + c, y, x));
      });
      start += shape(from).channels;
    }
  }
  void forward(const models::Concat&) {
    for_each_joined([&](int from, auto i, auto o) { value(layer_)[o] = value(from)[i]; });
  }
  void backward(const models::Concat&) {
    for_each_joined([&](int from, auto i, auto o) { gradient(from)[i] += gradient(layer_)[o]; });
  }

  void forward(const models::Flatten&) { value(layer_) = value(input()); }
  void backward(const models::Flatten&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      gradient(input())[i] += gradient(layer_)[i];
  }

  // Calls f(output, row's first element of the table, feature).
  template <class F>
  void for_each_picked(const models::Embedding& embedding, F f) const {
    const std::size_t table = offset(runtime::ParameterRole::weight);
    for_each(out(), [&](auto n, auto c, auto y, auto x) {
      const bool is_token = embedding.of == models::Embedding::Of::tokens;
      const double row = is_token ? values_[0][at(in(), n, 0, y, x)] : static_cast<double>(y);
      f(at(out(), n, c, y, x),
        table + static_cast<std::size_t>(row) * static_cast<std::size_t>(embedding.features) +
            static_cast<std::size_t>(c));
    });
  }
  void forward(const models::Embedding& embedding) {
    for_each_picked(embedding,
                    [&](std::size_t o, std::size_t w) { value(layer_)[o] = weights_[w]; });
  }
  void backward(const models::Embedding& embedding) {
    for_each_picked(embedding, [&](std::size_t o, std::size_t w) {
      weight_gradients_[w] += gradient(layer_)[o];
    });
  }

  // Calls f(output, input, weight, output feature) for each product; `weight` is where the weights start.
  template <class F>
  void for_each_row_product(std::size_t weight, F f) const {
    for_each(out(), [&](auto n, auto c, auto y, auto x) {
      for (std::int64_t i = 0; i < in().channels; ++i)
        f(at(out(), n, c, y, x), at(in(), n, i, y, x),
          weight + static_cast<std::size_t>(c * in().channels + i));
    });
  }
  void forward_rows(std::size_t weight, bool has_bias) {
    const double* bias = weights_.data() + offset(runtime::ParameterRole::bias);
    if (has_bias)
      for_each(out(), [&](auto n, auto c, auto y, auto x) {
        value(layer_)[at(out(), n, c, y, x)] = bias[c];
      });
    for_each_row_product(weight, [&](auto o, auto i, auto w) {
      value(layer_)[o] += value(input())[i] * weights_[w];
    });
  }
  void backward_rows(std::size_t weight, bool has_bias) {
    const std::size_t bias = offset(runtime::ParameterRole::bias);
    if (has_bias)
      for_each(out(), [&](auto n, auto c, auto y, auto x) {
        weight_gradients_[bias + static_cast<std::size_t>(c)] +=
            gradient(layer_)[at(out(), n, c, y, x)];
      });
    for_each_row_product(weight, [&](auto o, auto i, auto w) {
      gradient(input())[i] += gradient(layer_)[o] * weights_[w];
      weight_gradients_[w] += gradient(layer_)[o] * value(input())[i];
    });
  }
  void forward(const models::Linear& l) {
    forward_rows(offset(runtime::ParameterRole::weight), l.bias);
  }
  void backward(const models::Linear& l) {
    backward_rows(offset(runtime::ParameterRole::weight), l.bias);
  }
  void forward(const models::TiedLinear& l) {
    forward_rows(offset(here().inputs.back(), runtime::ParameterRole::weight), l.bias);
  }
  void backward(const models::TiedLinear& l) {
    backward_rows(offset(here().inputs.back(), runtime::ParameterRole::weight), l.bias);
  }

  // Calls f(first element, mean, 1 / deviation) for each row of features. The mean of a root mean square norm is 0.
  template <class F>
  void for_each_row(bool has_mean, F f) const {
    const auto features = static_cast<std::size_t>(in().channels);
    const Doubles& x = values_[static_cast<std::size_t>(input() + 1)];
    for (std::size_t first = 0; first < x.size(); first += features) {
      double mean = 0;
      double variance = 0;
      for (std::size_t i = first; has_mean && i < first + features; ++i)
        mean += x[i] / static_cast<double>(features);
      for (std::size_t i = first; i < first + features; ++i)
        variance += std::pow(x[i] - mean, 2) / static_cast<double>(features);
      f(first, mean, 1 / std::sqrt(variance + 1e-5));
    }
  }
  void forward(const models::LayerNorm& norm) {
    const std::size_t gamma = offset(runtime::ParameterRole::gamma);
    const std::size_t beta = norm.bias ? offset(runtime::ParameterRole::beta) : 0;
    const auto features = static_cast<std::size_t>(in().channels);
    for_each_row(!norm.rms, [&](std::size_t first, double mean, double inverse) {
      for (std::size_t i = 0; i < features; ++i)
        value(layer_)[first + i] =
            weights_[gamma + i] * (value(input())[first + i] - mean) * inverse +
            (norm.bias ? weights_[beta + i] : 0);
    });
  }
  void backward(const models::LayerNorm& norm) {
    const std::size_t gamma = offset(runtime::ParameterRole::gamma);
    const std::size_t beta = norm.bias ? offset(runtime::ParameterRole::beta) : 0;
    const auto features = static_cast<std::size_t>(in().channels);
    for_each_row(!norm.rms, [&](std::size_t first, double mean, double inverse) {
      const auto normalised = [&](std::size_t i) {
        return (value(input())[first + i] - mean) * inverse;
      };
      double sum = 0;
      double moment = 0;
      for (std::size_t i = 0; i < features; ++i) {
        const double g = gradient(layer_)[first + i];
        if (norm.bias) weight_gradients_[beta + i] += g;
        weight_gradients_[gamma + i] += g * normalised(i);
        if (!norm.rms) sum += g * weights_[gamma + i] / static_cast<double>(features);
        moment += g * weights_[gamma + i] * normalised(i) / static_cast<double>(features);
      }
      for (std::size_t i = 0; i < features; ++i)
        gradient(input())[first + i] +=
            inverse *
            (gradient(layer_)[first + i] * weights_[gamma + i] - sum - normalised(i) * moment);
    });
  }

  static double normal_share(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
  void forward(const models::Gelu&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      value(layer_)[i] = value(input())[i] * normal_share(value(input())[i]);
  }
  void backward(const models::Gelu&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i) {
      const double x = value(input())[i];
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
      gradient(input())[i] += gradient(layer_)[i] * (normal_share(x) + x * density);
    }
  }

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  void forward(const models::Silu&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      value(layer_)[i] = value(input())[i] * sigmoid(value(input())[i]);
  }
  void backward(const models::Silu&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i) {
      const double share = sigmoid(value(input())[i]);
      gradient(input())[i] += gradient(layer_)[i] * share * (1 + value(input())[i] * (1 - share));
    }
  }

  void forward(const models::Multiply&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      value(layer_)[i] = value(here().inputs[0])[i] * value(here().inputs[1])[i];
  }
  void backward(const models::Multiply&) {
    for (std::size_t i = 0; i < value(layer_).size(); ++i)
      for (const std::size_t of : {0, 1})
        gradient(here().inputs[of])[i] += gradient(layer_)[i] * value(here().inputs[1 - of])[i];
  }

  // One of queries, keys and values: the layer that has it, and its first feature there.
  struct Operand {
    int layer = 0;
    std::int64_t first = 0;
  };
  // Calls f(sample, row, first output feature, queries, keys, values, softmax of the row) for each row of each
  // head; the operands are those of the head.
  template <class F>
  void for_each_attending(const models::Attention& attention, F f) {
    const bool is_one = here().inputs.size() == 1;
    const std::int64_t width = out().channels / attention.heads;
    std::int64_t shared =
        attention.key_value_heads > 0 ? attention.key_value_heads : attention.heads;
    if (!is_one) shared = shape(here().inputs[1]).channels / width;
    for (std::int64_t n = 0; n < batch_; ++n)
      for (std::int64_t h = 0; h < attention.heads; ++h)
        for (std::int64_t row = 0; row < out().height; ++row) {
          const std::int64_t of_shared = h / (attention.heads / shared) * width;
          Operand q{here().inputs[0], h * width};
          Operand k{here().inputs[is_one ? 0 : 1], of_shared};
          Operand v{here().inputs[is_one ? 0 : 2], of_shared};
          if (is_one) {
            k.first += attention.heads * width;
            v.first += (attention.heads + shared) * width;
          }
          const std::int64_t seen = attention.causal ? row + 1 : out().height;
          Doubles softmax(static_cast<std::size_t>(seen));
          double sum = 0;
          for (std::int64_t j = 0; j < seen; ++j) {
            double score = 0;
            for (std::int64_t i = 0; i < width; ++i)
              score += operand(q, n, row, i) * turned(attention, k, n, j, i, j - row);
            softmax[static_cast<std::size_t>(j)] =
                std::exp(score / std::sqrt(static_cast<double>(width)));
            sum += softmax[static_cast<std::size_t>(j)];
          }
          for (double& share : softmax) share /= sum;
          f(n, row, h * width, width, q, k, v, softmax);
        }
  }
  double& operand(const Operand& of, std::int64_t n, std::int64_t row, std::int64_t i) {
    return value(of.layer)[at(shape(of.layer), n, of.first + i, row, 0)];
  }
  // Feature i of an operand after rotary positions have turned it on by `positions`. A product of a query and a key
  // depends on their distance alone.
  double turned(const models::Attention& attention, const Operand& of, std::int64_t n,
                std::int64_t row, std::int64_t i, std::int64_t positions) {
    const std::int64_t width = out().channels / attention.heads;
    const std::int64_t all = attention.rotary_features > 0 ? attention.rotary_features : width;
    if (attention.rotary_base == 0 || i >= all) return operand(of, n, row, i);
    const bool is_first = i < all / 2;
    const double pair = static_cast<double>(is_first ? i : i - all / 2);
    const double angle = static_cast<double>(positions) *
                         std::pow(attention.rotary_base, -2 * pair / static_cast<double>(all));
    const double other = operand(of, n, row, is_first ? i + all / 2 : i - all / 2);
    return operand(of, n, row, i) * std::cos(angle) + (is_first ? -other : other) * std::sin(angle);
  }
  double& operand_gradient(const Operand& of, std::int64_t n, std::int64_t row, std::int64_t i) {
    return gradient(of.layer)[at(shape(of.layer), n, of.first + i, row, 0)];
  }
  void forward(const models::Attention& attention) {
    for_each_attending(attention, [&](auto n, auto row, auto first, auto width, const Operand&,
                                      const Operand&, const Operand& v, const Doubles& softmax) {
      for (std::size_t j = 0; j < softmax.size(); ++j)
        for (std::int64_t i = 0; i < width; ++i)
          value(layer_)[at(out(), n, first + i, row, 0)] +=
              softmax[j] * operand(v, n, static_cast<std::int64_t>(j), i);
    });
  }
  void backward(const models::Attention& attention) {
    for_each_attending(attention, [&](auto n, auto row, auto first, auto width, const Operand& q,
                                      const Operand& k, const Operand& v, const Doubles& softmax) {
      const auto of_output = [&](std::int64_t i) {
        return gradient(layer_)[at(out(), n, first + i, row, 0)];
      };
      Doubles slopes(softmax.size());
      double mean = 0;
      for (std::size_t j = 0; j < softmax.size(); ++j) {
        for (std::int64_t i = 0; i < width; ++i) {
          slopes[j] += of_output(i) * operand(v, n, static_cast<std::int64_t>(j), i);
          operand_gradient(v, n, static_cast<std::int64_t>(j), i) += softmax[j] * of_output(i);
        }
        mean += softmax[j] * slopes[j];
      }
      for (std::size_t j = 0; j < softmax.size(); ++j) {
        const double slope =
            softmax[j] * (slopes[j] - mean) / std::sqrt(static_cast<double>(width));
        for (std::int64_t i = 0; i < width; ++i) {
          const auto other = static_cast<std::int64_t>(j);
          operand_gradient(q, n, row, i) += slope * turned(attention, k, n, other, i, other - row);
          operand_gradient(k, n, other, i) += slope * turned(attention, q, n, row, i, row - other);
        }
      }
    });
  }

  [[nodiscard]] double sum_of_exponentials(std::size_t sample) {
    const auto classes = static_cast<std::size_t>(in().channels);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(value(input())[sample * classes + c]);
    return sum;
  }
  void forward(const models::SoftmaxCrossEntropy&) {
    const auto classes = static_cast<std::size_t>(in().channels);
    double loss = 0;
    for (std::size_t n = 0; n < labels_.size(); ++n)
      loss += std::log(sum_of_exponentials(n)) -
              value(input())[n * classes + static_cast<std::size_t>(labels_[n])];
    value(layer_)[0] = loss / static_cast<double>(labels_.size());
  }
  void backward(const models::SoftmaxCrossEntropy&) {
    const auto classes = static_cast<std::size_t>(in().channels);
    for (std::size_t n = 0; n < labels_.size(); ++n)
      for (std::size_t c = 0; c < classes; ++c) {
        const bool is_label = c == static_cast<std::size_t>(labels_[n]);
        gradient(input())[n * classes + c] +=
            gradient(layer_)[0] / static_cast<double>(labels_.size()) *
            (std::exp(value(input())[n * classes + c]) / sum_of_exponentials(n) -
             (is_label ? 1 : 0));
      }
  }

  const models::Network& network_;
  int batch_;
  std::vector<Shape> shapes_;
  std::vector<runtime::ParameterPlace> places_;
  int layer_ = 0;
  std::size_t statistics_used_ = 0;
  Doubles weights_;
  Doubles weight_gradients_;
  std::vector<std::int32_t> labels_;
  std::vector<Doubles> values_;
  std::vector<Doubles> gradients_;
};

}  // namespace paceline::test
