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
  float* mean = nullptr;      // of the batch
  float* variance = nullptr;  // of the batch, by n
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float epsilon = 1e-5F;
};

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
      vectors.variance[block.block] = static_cast<float>(sum / pixels);
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
    visitor.write(vectors.variance, channels);
    visitor.write(vectors.running_mean, channels);
    visitor.write(vectors.running_variance, channels);
  }
};

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, by the batch's statistics, or by the
// running ones in an evaluation. One element each.
struct BatchNormApply {
  Tensor x;
  BatchNormVectors vectors;
  bool by_running_statistics = false;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t c = i % x.channels;
    const float mean = by_running_statistics ? vectors.running_mean[c] : vectors.mean[c];
    const float variance =
        by_running_statistics ? vectors.running_variance[c] : vectors.variance[c];
    const float scale = vectors.gamma[c] / std::sqrt(variance + vectors.epsilon);
    y.set(i, scale * (x.at(i) - mean) + vectors.beta[c]);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(x.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(x.channels);
    reads(visitor, x);
    visitor.read(by_running_statistics ? vectors.running_mean : vectors.mean, channels);
    visitor.read(by_running_statistics ? vectors.running_variance : vectors.variance, channels);
    visitor.read(vectors.gamma, channels);
    visitor.read(vectors.beta, channels);
    writes(visitor, y);
  }
};

// The gradients of gamma and beta: sums of dy (x - mean) / sqrt(variance + epsilon), and of dy. They
// are kept beside for the gradient of x, too. One block for each channel.
struct BatchNormParameterGradients {
  static constexpr int phases = 2;
  static constexpr unsigned threads = 256;
  Tensor x;
  Tensor dy;
  BatchNormVectors vectors;
  double* sums = nullptr;  // of channels for gamma, then of channels for beta
  ParameterGradient gamma;
  ParameterGradient beta;

  PACELINE_HD void phase(int p, const Block& block) const {
    auto* parts = block.shared<double>();
    const std::int64_t c = block.block;
    if (p == 0) {
      const auto mean = static_cast<double>(vectors.mean[c]);
      double sum = 0;
      double products = 0;
      for (std::int64_t i = block.thread; i < x.pixels(); i += block.threads) {
        const auto d = static_cast<double>(dy.at(i * x.channels + c));
        sum += d;
        products += d * (static_cast<double>(x.at(i * x.channels + c)) - mean);
      }
      parts[block.thread] = sum;
      parts[threads + block.thread] = products;
    } else if (block.thread == 0) {
      const double sum = sum_of_threads(block, parts);
      const double products = sum_of_threads(block, parts + threads) /
                              std::sqrt(static_cast<double>(vectors.variance[c]) +
                                        static_cast<double>(vectors.epsilon));
      sums[c] = products;
      sums[x.channels + c] = sum;
      gamma.set(c, static_cast<float>(products));
      beta.set(c, static_cast<float>(sum));
    }
  }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(x.channels); }
  [[nodiscard]] std::size_t shared_bytes() const { return 2 * threads * sizeof(double); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(x.channels);
    reads(visitor, x);
    reads(visitor, dy);
    visitor.read(vectors.mean, channels);
    visitor.read(vectors.variance, channels);
    visitor.write(sums, 2 * channels);
    visitor.write(gamma.array + gamma.offset, channels);
    visitor.write(beta.array + beta.offset, channels);
  }
};

// The gradient of x. One element each.
struct BatchNormDataGradient {
  Tensor x;
  Tensor dy;
  BatchNormVectors vectors;
  const double* sums = nullptr;
  Contribution dx;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t c = i % x.channels;
    const auto pixels = static_cast<double>(x.pixels());
    const double inverse = 1 / std::sqrt(static_cast<double>(vectors.variance[c]) +
                                         static_cast<double>(vectors.epsilon));
    const double normalised =
        (static_cast<double>(x.at(i)) - static_cast<double>(vectors.mean[c])) * inverse;
    const double value = static_cast<double>(vectors.gamma[c]) * inverse *
                         (static_cast<double>(dy.at(i)) - sums[x.channels + c] / pixels -
                          normalised * sums[c] / pixels);
    dx.set(i, static_cast<float>(value));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(x.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto channels = static_cast<std::size_t>(x.channels);
    reads(visitor, x);
    reads(visitor, dy);
    visitor.read(vectors.mean, channels);
    visitor.read(vectors.variance, channels);
    visitor.read(vectors.gamma, channels);
    visitor.read(sums, 2 * channels);
    dx.access(visitor);
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
  Contribution dx;

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
    dx.access(visitor);
  }
};

}  // namespace paceline::runtime::cuda
