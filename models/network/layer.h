// The kinds of layers and their attributes. A closed set: a new kind makes the compiler list every
// reader (shape inference, work, YAML, and the runtime).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

namespace paceline::models {

// No size or count of a layer or an input is larger: products of a few of them stay in range.
inline constexpr std::int64_t largest_size = 1'000'000;

// A height and a width.
struct Extent {
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool operator==(const Extent&) const = default;
};

[[nodiscard]] constexpr Extent square(std::int64_t size) {
  return {size, size};
}

struct Convolution {
  std::int64_t channels = 1;  // of the output
  Extent kernel;
  Extent stride{1, 1};
  Extent padding{0, 0};  // on each side
  Extent dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  bool operator==(const Convolution&) const = default;
};

// A fully connected layer reads a vector, or an image as one.
struct FullyConnected {
  std::int64_t outputs = 1;
  bool bias = true;
  bool operator==(const FullyConnected&) const = default;
};

struct BatchNorm {
  bool operator==(const BatchNorm&) const = default;
};

struct Relu {
  bool operator==(const Relu&) const = default;
};

struct Pool {
  Extent kernel;
  Extent stride{1, 1};
  Extent padding{0, 0};
  bool ceil = false;  // round the output size up; a window must still start inside the padded input
  bool operator==(const Pool&) const = default;
};
struct MaxPool : Pool {
  bool operator==(const MaxPool&) const = default;
};
struct AveragePool : Pool {
  bool operator==(const AveragePool&) const = default;
};

// Average pooling to an output of this size, whatever the size of the input.
struct AdaptiveAveragePool {
  Extent output;
  bool operator==(const AdaptiveAveragePool&) const = default;
};

// Local response normalisation over `size` channels (Krizhevsky 2012).
struct Lrn {
  std::int64_t size = 5;
  bool operator==(const Lrn&) const = default;
};

struct Dropout {
  double probability = 0.5;
  bool operator==(const Dropout&) const = default;
};

// The sum of inputs of equal shape.
struct Add {
  bool operator==(const Add&) const = default;
};

// The inputs joined along the channels.
struct Concat {
  bool operator==(const Concat&) const = default;
};

struct Flatten {
  bool operator==(const Flatten&) const = default;
};

// The loss: it reads logits and gives one number.
struct SoftmaxCrossEntropy {
  bool operator==(const SoftmaxCrossEntropy&) const = default;
};

using LayerKind =
    std::variant<Convolution, FullyConnected, BatchNorm, Relu, MaxPool, AveragePool,
                 AdaptiveAveragePool, Lrn, Dropout, Add, Concat, Flatten, SoftmaxCrossEntropy>;

// The names of the kinds in YAML, in the order of LayerKind. Convolution is "convolution", MaxPool
// "max_pool" and so on.
inline constexpr std::array<std::string_view, std::variant_size_v<LayerKind>> layer_kind_names = {
    "convolution",
    "fully_connected",
    "batch_norm",
    "relu",
    "max_pool",
    "average_pool",
    "adaptive_average_pool",
    "lrn",
    "dropout",
    "add",
    "concat",
    "flatten",
    "softmax_cross_entropy"};

[[nodiscard]] inline std::string_view name(const LayerKind& kind) {
  return layer_kind_names[kind.index()];
}
// Add and concat take two or more inputs, all others one.
[[nodiscard]] inline bool takes_many(const LayerKind& kind) {
  return std::holds_alternative<Add>(kind) || std::holds_alternative<Concat>(kind);
}

}  // namespace paceline::models
