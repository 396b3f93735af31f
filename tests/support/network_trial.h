// A network with random weights, images and labels, and what a CpuNetwork and the reference
// make of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/base/random.h"
#include "runtime/network/batch.h"
#include "runtime/network/cpu_network.h"
#include "runtime/network/dropout.h"
#include "tests/support/reference_network.h"

namespace paceline::test {

// What a pass made.
struct Gradients {
  double loss = 0;
  Doubles logits;
  Doubles weights;
};

// By the sum of squares.
inline double norm(const Doubles& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}
inline double distance(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}
inline double relative_error(const Doubles& a, const Doubles& b) {
  return distance(a, b) / norm(b);
}

class NetworkTrial {
 public:
  NetworkTrial(models::Network network, int batch, std::uint64_t seed = 1)
      : network_(std::move(network)), batch_(batch) {
    Random random(seed);
    weights_ = runtime::initial_weights(network_, {.seed = seed});
    // Not 0 and 1, which hide errors.
    for (const auto& place : runtime::parameter_places(network_)) {
      if (place.role == runtime::ParameterRole::weight) continue;
      for (std::int64_t i = place.offset; i < place.offset + place.elements; ++i)
        weights_[static_cast<std::size_t>(i)] += static_cast<float>(0.3 * random.normal());
    }
    const std::int64_t pixels = batch * network_.input().elements();
    const std::int64_t tokens = count_tokens();
    for (std::int64_t i = 0; i < pixels; ++i)
      images_.push_back(static_cast<float>(
          tokens > 0 ? static_cast<double>(random.below(static_cast<std::size_t>(tokens)))
                     : random.normal()));
    const std::size_t classes = count_classes();
    for (int i = 0; i < batch * runtime::count_labels(network_); ++i)
      labels_.push_back(static_cast<std::int32_t>(random.below(classes)));
  }

  [[nodiscard]] const models::Network& network() const { return network_; }
  [[nodiscard]] int batch() const { return batch_; }
  [[nodiscard]] const std::vector<float>& images() const { return images_; }
  [[nodiscard]] const std::vector<std::int32_t>& labels() const { return labels_; }
  std::vector<float>& weights() { return weights_; }
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }

  // The reference of the same network; `seed` draws the masks of dropout.
  [[nodiscard]] ReferenceNetwork reference(std::uint64_t seed = 1) const {
    ReferenceNetwork result(network_, batch_);
    const std::vector<models::Shape> shapes = models::infer_shapes(network_);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      result.masks.emplace_back();
      const auto* dropout = std::get_if<models::Dropout>(&network_.layers()[i].kind);
      if (dropout == nullptr) continue;
      std::vector<float> mask(static_cast<std::size_t>(batch_ * shapes[i].elements()), 1.0F);
      runtime::drop_out(
          {.seed = seed, .layer = static_cast<int>(i), .probability = dropout->probability}, mask,
          mask);
      result.masks.back().assign(mask.begin(), mask.end());
    }
    return result;
  }
  [[nodiscard]] Gradients of_reference(std::uint64_t seed = 1) const {
    ReferenceNetwork reference = this->reference(seed);
    Gradients result;
    result.loss = reference.forward(doubles(weights_), doubles(images_), labels_);
    result.logits = reference.activation(network_.layers().back().inputs.front());
    result.weights = reference.backward();
    return result;
  }

  [[nodiscard]] Gradients of(runtime::CpuNetwork& trained, float loss_scale = 1,
                             std::uint64_t seed = 1) const {
    trained.set_weights(weights_);
    Gradients result;
    result.loss = trained.forward(images_, labels_, runtime::Pass::training, seed).loss;
    const std::vector<float> logits = trained.logits();
    result.logits.assign(logits.begin(), logits.end());
    std::vector<float> gradients(weights_.size(), 1e30F);
    trained.backward(loss_scale, gradients);
    for (const float g : gradients) result.weights.push_back(static_cast<double>(g) / loss_scale);
    return result;
  }
  [[nodiscard]] Gradients of_mode(
      models::NumberType storage, float loss_scale = 1,
      runtime::Arithmetic arithmetic = runtime::Arithmetic::best) const {
    runtime::CpuNetwork trained(network_,
                                {.batch = batch_, .storage = storage, .arithmetic = arithmetic});
    return of(trained, loss_scale);
  }

  [[nodiscard]] static Doubles doubles(const std::vector<float>& values) {
    return {values.begin(), values.end()};
  }

 private:
  [[nodiscard]] std::size_t count_classes() const {
    return static_cast<std::size_t>(runtime::count_classes(network_));
  }
  // The number of tokens that the network embeds. It is 0 for a network of images.
  [[nodiscard]] std::int64_t count_tokens() const {
    for (const models::Layer& layer : network_.layers()) {
      const auto* const embedding = std::get_if<models::Embedding>(&layer.kind);
      if (embedding != nullptr && embedding->of == models::Embedding::Of::tokens)
        return embedding->entries;
    }
    return 0;
  }

  models::Network network_;
  int batch_;
  std::vector<float> weights_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
};

// Whether a pass made what it should, each tensor by the norm of its error.
inline void expect_equal(const Gradients& made, const Gradients& expected, double tolerance,
                         const models::Network& network) {
  EXPECT_NEAR(made.loss, expected.loss, tolerance * std::max(1.0, std::abs(expected.loss)));
  EXPECT_LT(relative_error(made.logits, expected.logits), tolerance);
  for (const auto& place : runtime::parameter_places(network)) {
    const auto part = [&](const Doubles& all) {
      return Doubles(all.begin() + place.offset, all.begin() + place.offset + place.elements);
    };
    // A gradient may be 0, as that of a bias before a batch norm is.
    const double scale = norm(part(expected.weights)) + 0.1 * norm(expected.weights);
    EXPECT_LT(distance(part(made.weights), part(expected.weights)), tolerance * scale)
        << place.name;
  }
}

// The gradient is (loss(w + h) - loss(w - h)) / 2h for a few weights of each tensor, in double precision.
inline void expect_reference_differentiates(const NetworkTrial& trial) {
  const Gradients gradients = trial.of_reference();
  const Doubles weights = NetworkTrial::doubles(trial.weights());
  const Doubles images = NetworkTrial::doubles(trial.images());
  auto reference = trial.reference();
  for (const auto& place : runtime::parameter_places(trial.network())) {
    for (const std::int64_t i : {std::int64_t{0}, place.elements / 2, place.elements - 1}) {
      constexpr double step = 1e-5;
      const auto index = static_cast<std::size_t>(place.offset + i);
      const auto loss_at = [&](double change) {
        Doubles moved = weights;
        moved[index] += change;
        return reference.forward(moved, images, trial.labels());
      };
      const double difference = (loss_at(step) - loss_at(-step)) / (2 * step);
      EXPECT_NEAR(gradients.weights[index], difference, 1e-7) << place.name << " " << i;
    }
  }
}

}  // namespace paceline::test
