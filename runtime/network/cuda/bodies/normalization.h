// Batch norm (Ioffe & Szegedy 2015) and local response normalisation (Krizhevsky 2012, 3.3).
//
// Batch norm's statistics, gamma and beta are FP32, and its sums are in double. A pass over the
// tensor for the statistics and one for the result: 3 reads or writes of the tensor forward, 5
// backward.
#pragma once

#include <cmath>

#include "runtime/network/cuda/bodies/tensor.h"

namespace paceline::runtime::cuda {

// Vectors of one batch norm, all in memory of the device.
struct BatchNormVectors {
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float* mean = nullptr;               // of the batch
  float* inverse_deviation = nullptr;  // 1 / sqrt(variance of the batch, by n, + epsilon)
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float epsilon = 1e-5F;

  // gamma (x - mean) / deviation + beta, by the batch's statistics.
  [[nodiscard]] PACELINE_HD float normed(float x, std::int64_t c) const {
    return gamma[c] * inverse_deviation[c] * (x - mean[c]) + beta[c];
  }
};

// 1 / sqrt(variance + epsilon).
PACELINE_HD inline float inverse_deviation_of(double variance, float epsilon) {
  return static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon)));
}

// Adds up a number for each thread: thread 0 gets the sum, the others nothing of use.
PACELINE_HD inline double sum_of_threads(const Block& block, const double* sums) {
  double sum = 0;
  for (unsigned t = 0; t < block.threads; ++t) sum += sums[t];
  return sum;
}

// Mean and variance of each channel over a batch, and the running statistics, whose variance is
// that of a sample (n - 1). One block for each channel.
struct BatchNormStatistics {
  static constexpr int phases = 4;
  static constexpr unsigned threads = 256;
  Tensor x;
  BatchNormVectors vectors;
  double momentum = 0.1;

  PACELINE_HD void phase(int p, const Block& block) const {
    auto* sums = block.shared<double>();
    double* mean = sums + threads;
    const auto pixels = static_cast<double>(x.pixels());
    if (p == 0 || p == 2) {
      double sum = 0;
      for (std::int64_t i = block.thread; i < x.pixels(); i += block.threads) {
        const auto value = static_cast<double>(x.at(i * x.channels + block.block));
        sum += p == 0 ? value : (value - *mean) * (value - *mean);
      }
      sums[block.thread] = sum;
      return;
    }
    if (block.thread != 0) return;
    const double sum = sum_of_threads(block, sums);
    if (p == 1) {
      *mean = sum / pixels;
      vectors.mean[block.block] = static_cast<float>(*mean);
      mix(vectors.running_mean[block.block], *mean);
    } else {
      vectors.inverse_deviation[block.block] = inverse_deviation_of(sum / pixels, vectors.epsilon);
      mix(vectors.running_variance[block.block], pixels > 1 ? sum / (pixels - 1) : sum);
    }
  }
  PACELINE_HD void mix(float& running, double of_batch) const {
    running =
        static_cast<float>((1 - momentum) * static_cast<double>(running) + momentum * of_batch);
  }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(x.channels); }
  [[nodiscard]] std::size_t shared_bytes() const { return (threads + 1) * sizeof(double); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(x.channels);
    reads(visitor, x);
    visitor.write(vectors.mean, channels);
    visitor.write(vectors.inverse_deviation, channels);
    visitor.write(vectors.running_mean, channels);
    visitor.write(vectors.running_variance, channels);
  }
};

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, by the batch's statistics, or by the
// running ones in an evaluation; then the residual is added, if there is one, and with `relu` what is
// not positive is 0. Rounded to y's type before the residual is added, and behind it.
struct BatchNormApply {
  Tensor x;
  BatchNormVectors vectors;
  bool by_running_statistics = false;
  const void* residual = nullptr;  // of y's type and shape; may be null
  bool relu = false;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    const std::int64_t first = i % x.channels;
    float values[n];
    x.load(i, values);
#pragma unroll
    for (unsigned k = 0; k < n; ++k) values[k] = normed(values[k], first + k);
    if (residual != nullptr) {
      float terms[n];
      load_numbers(residual, y.type, i, terms);
#pragma unroll
      for (unsigned k = 0; k < n; ++k) values[k] = rounded(y.type, values[k]) + terms[k];
    }
    if (relu) {
#pragma unroll
      for (unsigned k = 0; k < n; ++k) values[k] = positive(values[k]);
    }
    y.store(i, values);
  }
  [[nodiscard]] PACELINE_HD float normed(float value, std::int64_t c) const {
    if (!by_running_statistics) return vectors.normed(value, c);
    const float inverse =
        inverse_deviation_of(static_cast<double>(vectors.running_variance[c]), vectors.epsilon);
    return vectors.gamma[c] * inverse * (value - vectors.running_mean[c]) + vectors.beta[c];
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return x.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return x.has_wide_pixels() && y.is_aligned() && cuda::is_aligned(residual);
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(x.channels);
    reads(visitor, x);
    visitor.read(by_running_statistics ? vectors.running_mean : vectors.mean, channels);
    visitor.read(by_running_statistics ? vectors.running_variance : vectors.inverse_deviation,
                 channels);
    visitor.read(vectors.gamma, channels);
    visitor.read(vectors.beta, channels);
    if (residual != nullptr) visitor.read(static_cast<const std::byte*>(residual), y.bytes());
    writes(visitor, y);
  }
};

// The gradient of batch norm's output: dy, or with `relu` dy where the output, computed again from x,
// is positive.
struct NormOutputGradient {
  Tensor x;
  Tensor dy;
  BatchNormVectors vectors;
  bool relu = false;

  [[nodiscard]] PACELINE_HD double at(std::int64_t i, std::int64_t c) const {
    return of(x.at(i), dy.at(i), c);
  }
  // The same of an element of x and its element of dy.
  [[nodiscard]] PACELINE_HD double of(float value, float gradient, std::int64_t c) const {
    if (relu && !(rounded(x.type, vectors.normed(value, c)) > 0)) return 0;
    return static_cast<double>(gradient);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(x.channels);
    reads(visitor, x);
    reads(visitor, dy);
    visitor.read(vectors.mean, channels);
    visitor.read(vectors.inverse_deviation, channels);
    visitor.read(vectors.gamma, channels);
    if (relu) visitor.read(vectors.beta, channels);
  }
};

// The gradients of gamma and beta: sums of dy (x - mean) / sqrt(variance + epsilon), and of dy. They
// are kept beside for the gradient of x, too. One block for each channel.
struct BatchNormParameterGradients {
  static constexpr int phases = 2;
  static constexpr unsigned threads = 256;
  NormOutputGradient from;
  double* sums = nullptr;  // of channels for gamma, then of channels for beta
  ParameterGradient gamma;
  ParameterGradient beta;

  PACELINE_HD void phase(int p, const Block& block) const {
    const Tensor& x = from.x;
    auto* parts = block.shared<double>();
    const std::int64_t c = block.block;
    if (p == 0) {
      const auto mean = static_cast<double>(from.vectors.mean[c]);
      double sum = 0;
      double products = 0;
      for (std::int64_t i = block.thread; i < x.pixels(); i += block.threads) {
        const double d = from.at(i * x.channels + c, c);
        sum += d;
        products += d * (static_cast<double>(x.at(i * x.channels + c)) - mean);
      }
      parts[block.thread] = sum;
      parts[threads + block.thread] = products;
    } else if (block.thread == 0) {
      const double sum = sum_of_threads(block, parts);
      const double products = sum_of_threads(block, parts + threads) *
                              static_cast<double>(from.vectors.inverse_deviation[c]);
      sums[c] = products;
      sums[x.channels + c] = sum;
      gamma.set(c, static_cast<float>(products));
      beta.set(c, static_cast<float>(sum));
    }
  }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(from.x.channels); }
  [[nodiscard]] std::size_t shared_bytes() const { return 2 * threads * sizeof(double); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(from.x.channels);
    from.access(visitor);
    visitor.write(sums, 2 * channels);
    gamma.access(visitor, channels);
    beta.access(visitor, channels);
  }
};

// The gradient of x.
struct BatchNormDataGradient {
  NormOutputGradient from;
  const double* sums = nullptr;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    float values[n];
    float gradients[n];
    from.x.load(i, values);
    from.dy.load(i, gradients);
    const std::int64_t first = i % from.x.channels;
#pragma unroll
    for (unsigned k = 0; k < n; ++k) values[k] = of(values[k], gradients[k], first + k);
    dx.store(i, values);
  }
  [[nodiscard]] PACELINE_HD float of(float value, float gradient, std::int64_t c) const {
    const auto pixels = static_cast<double>(from.x.pixels());
    const auto inverse = static_cast<double>(from.vectors.inverse_deviation[c]);
    const double normalised =
        (static_cast<double>(value) - static_cast<double>(from.vectors.mean[c])) * inverse;
    return static_cast<float>(static_cast<double>(from.vectors.gamma[c]) * inverse *
                              (from.of(value, gradient, c) - sums[from.x.channels + c] / pixels -
                               normalised * sums[c] / pixels));
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return from.x.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return from.x.has_wide_pixels() && from.dy.is_aligned() && dx.is_aligned();
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    from.access(visitor);
    visitor.read(sums, 2 * static_cast<std::size_t>(from.x.channels));
    writes(visitor, dx);
  }
};

// y = x (k + alpha * sum of x^2 over `size` channels)^-beta, with k = 2, alpha = 1e-4, beta = 0.75.
struct Lrn {
  static constexpr double k = 2;
  static constexpr double alpha = 1e-4;
  static constexpr double beta = 0.75;

  // k + alpha * sum of x^2 over the channels around c of the pixel that begins at `pixel`.
  static PACELINE_HD double scale(const Tensor& x, std::int64_t pixel, std::int64_t c,
                                  std::int64_t half) {
    double sum = 0;
    for (std::int64_t o = c - half; o <= c + half; ++o) {
      if (o < 0 || o >= x.channels) continue;
      const auto value = static_cast<double>(x.at(pixel + o));
      sum += value * value;
    }
    return k + alpha * sum;
  }
};

struct LrnForward {
  Tensor x;
  std::int64_t half = 2;  // channels on each side
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t c = i % x.channels;
    y.set(i, static_cast<float>(static_cast<double>(x.at(i)) *
                                std::pow(Lrn::scale(x, i - c, c, half), -Lrn::beta)));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(x.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    writes(visitor, y);
  }
};

// dx_c = dy_c s_c^-beta - 2 alpha beta x_c * sum over channels o around c of dy_o x_o s_o^(-beta-1),
// s the scale.
struct LrnDataGradient {
  Tensor x;
  Tensor dy;
  std::int64_t half = 2;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t c = i % x.channels;
    double sum = 0;
    for (std::int64_t o = c - half; o <= c + half; ++o) {
      if (o < 0 || o >= x.channels) continue;
      sum += static_cast<double>(dy.at(i - c + o)) * static_cast<double>(x.at(i - c + o)) *
             std::pow(Lrn::scale(x, i - c, o, half), -Lrn::beta - 1);
    }
    const double own =
        static_cast<double>(dy.at(i)) * std::pow(Lrn::scale(x, i - c, c, half), -Lrn::beta);
    dx.set(i, static_cast<float>(own -
                                 2 * Lrn::alpha * Lrn::beta * static_cast<double>(x.at(i)) * sum));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(x.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    reads(visitor, dy);
    writes(visitor, dx);
  }
};

}  // namespace paceline::runtime::cuda
