// The kinds of layers and their attributes. A closed set: a new kind makes the compiler list every
// reader (shape inference, work, YAML, and the runtime).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "models/base/to_size.h"
#include "models/network/shape.h"

namespace paceline::models {

// No size or count of a layer or an input is larger: products of a few of them stay in range.
inline constexpr std::int64_t largest_size = 1'000'000;
inline constexpr double largest_rotary_base = 1e12;

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

// Leaves out whole samples with this probability, and keeps the others (Huang 2016): one number a
// sample, in place of a dropout's mask.
struct StochasticDepth {
  double probability = 0.5;
  bool operator==(const StochasticDepth&) const = default;
};

// The sum of inputs of equal shape.
struct Add {
  bool operator==(const Add&) const = default;
};

// The product of two inputs: of equal shape, or the second has one number for each channel of the
// first, as a vector or as an image of 1x1 (squeeze-and-excitation, Hu 2018).
struct Multiply {
  bool operator==(const Multiply&) const = default;
};

// Multiplies each channel, or each feature of an element, by a number. Where they are learned they
// are one parameter tensor, which has the layer's name (the layer scale of Touvron 2021).
struct Scale {
  bool learned = true;
  bool operator==(const Scale&) const = default;
};

// The inputs joined along the channels.
struct Concat {
  bool operator==(const Concat&) const = default;
};

struct Flatten {
  bool operator==(const Flatten&) const = default;
};

// All elements in another order, in a shape of as many: windows cut out of an image and put back,
// shuffled channels, patches. A view keeps the order of the places and that of the channels, such
// as an image that becomes the sequence of its places, and moves nothing. Whether channels come
// first or last in memory is not said, so that a permutation between the two is no layer.
struct Rearrange {
  Shape output;
  bool view = false;
  bool operator==(const Rearrange&) const = default;
};

// A part of the input: fewer channels, places or elements. It is a view, and its gradient is copied
// into that of the whole.
struct Slice {
  Shape output;
  bool operator==(const Slice&) const = default;
};

// The input with zeros around it: an image or a sequence that is larger in no channel.
struct Pad {
  Shape output;
  bool operator==(const Pad&) const = default;
};

// Picks a row of a table for each number of a sequence: for what the number says (a token, or the
// segment that it is in), or for where it stands. The table is one parameter tensor, which has the
// layer's name; its gradient is dense. Of what positions read, the length alone matters, so that
// they may read any sequence.
struct Embedding {
  enum class Of { tokens, positions, segments };
  Of of = Of::tokens;
  std::int64_t entries = 1;
  std::int64_t features = 1;
  bool operator==(const Embedding&) const = default;
};
inline constexpr std::array<std::string_view, 3> embedding_names = {"tokens", "positions",
                                                                    "segments"};

// Puts a learned element before the first of a sequence (Devlin 2018). It is one parameter tensor,
// which has the layer's name.
struct ClassToken {
  bool operator==(const ClassToken&) const = default;
};

// A fully connected layer for each element of a sequence or place of an image, or for a vector.
struct Linear {
  std::int64_t outputs = 1;
  bool bias = true;
  bool operator==(const Linear&) const = default;
};

// A linear layer whose weight is the table of an embedding of tokens: one parameter tensor in two
// places. It counts at the embedding, where its gradient is complete. The layer's inputs are what
// it multiplies, and the embedding.
struct TiedLinear {
  bool bias = false;
  bool operator==(const TiedLinear&) const = default;
};

// Normalises each element of a sequence or place of an image, or a vector, over its features (Ba
// 2016). With `rms` it divides by the root of the mean square, and subtracts no mean (Zhang 2019).
struct LayerNorm {
  bool bias = true;
  bool rms = false;
  bool operator==(const LayerNorm&) const = default;
};

struct Gelu {
  bool operator==(const Gelu&) const = default;
};

// x sigmoid(x), of Llama's feed-forward layers (Elfwing 2018).
struct Silu {
  bool operator==(const Silu&) const = default;
};

struct Tanh {
  bool operator==(const Tanh&) const = default;
};

// softmax(q k^T / sqrt(d)) v in each head of d features (Vaswani 2017). It reads queries, keys and
// values, or one sequence that has the three side by side, and behind them the bias of its scores
// where it has one. `causal` masks what comes later; the whole square of scores is computed none
// the less. `dropout` is that of the softmax's output. With a `window` the elements attend to those
// of their own window of this many elements only, one window after the other in the sequence (Liu
// 2021); 0 is the whole sequence. A `learned_scale` multiplies the scores of each head by a
// parameter, `logit_scale` (Liu 2022). With fewer `key_value_heads` than heads, several heads of queries share
// one of keys and values (grouped queries, Ainslie 2023); 0 is what the width of keys and values says, and as
// many as heads where the three are side by side.
//
// `fused` is one kernel that keeps no scores (Dao 2022): where it is causal it computes half of the
// square. With a `sliding_window` an element of it attends to that many before and with it (Beltagy 2020); 0 is
// all of them.
//
// With `value_features` keys and values come from a latent vector (multi-head latent attention, DeepSeek-AI 2024,
// arXiv 2405.04434, 2.1). It then reads queries; keys and values, side by side in each head; and the features that
// all heads' keys share, which have positions. Values have `value_features` in each head, and queries the
// features of a key with the shared ones. It is fused. `head_norms` normalise queries and keys of each head, with
// two parameters, NAME.q_norm and NAME.k_norm (Qwen 3).
//
// Where positions are not learned, attention has them. With a `rotary_base` it turns pairs of features of queries and
// keys by angles (Su 2021, arXiv 2104.09864, 3.4.2): of features i and i + n / 2 by p base^(-2 i / n) at position p,
// where n is the first `rotary_features` of each head, or all of them where that is 0. With `alibi` it adds to the
// scores what grows with the distance (Press 2021, arXiv 2108.12409). What these move is not counted.
struct Attention {
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 0;
  bool causal = false;
  double dropout = 0;
  std::int64_t window = 0;
  bool learned_scale = false;
  bool fused = false;
  std::int64_t sliding_window = 0;
  std::int64_t value_features = 0;
  bool head_norms = false;
  double rotary_base = 0;
  std::int64_t rotary_features = 0;
  bool alibi = false;
  bool operator==(const Attention&) const = default;
};

// Chooses `active` of a number of experts for each element of a sequence, by a linear layer of as many
// outputs, and copies the element for each of them (Shazeer 2017, arXiv 1701.06538). Its output has
// `active` times as many elements, in the order of the experts. A `bias` balances the choice.
struct RouteTokens {
  std::int64_t experts = 1;
  std::int64_t active = 1;
  bool bias = false;
  bool operator==(const RouteTokens&) const = default;
};

// Each expert has a linear layer, which the elements go through that were routed to it. The weights of all experts
// are one tensor.
struct ExpertLinear {
  std::int64_t experts = 1;
  std::int64_t outputs = 1;
  bool operator==(const ExpertLinear&) const = default;
};

// Sums what the `active` experts of an element made of it, weighted by their scores: the reverse of RouteTokens.
struct CombineTokens {
  std::int64_t active = 1;
  bool operator==(const CombineTokens&) const = default;
};

// The bias of attention's scores by how far apart two elements of a window are, for each head: an
// image of heads x window x window, picked from a table of `entries` x heads that has the layer's
// name (Liu 2021). With `hidden` a network of two layers makes the table of the distances (Liu
// 2022), and has its tensors: NAME.0.weight, NAME.0.bias and NAME.2.weight. It is one bias for all
// samples and windows, and reads nothing of its input, which says only where it stands.
struct RelativePositionBias {
  std::int64_t entries = 1;
  std::int64_t heads = 1;
  std::int64_t window = 1;
  std::int64_t hidden = 0;
  bool operator==(const RelativePositionBias&) const = default;
};

// Picks a share of a sequence, rounded up to whole elements: what a masked language model predicts.
struct SelectTokens {
  double share = 1;
  bool operator==(const SelectTokens&) const = default;
};

// The first element of a sequence, as a vector.
struct FirstToken {
  bool operator==(const FirstToken&) const = default;
};

// The mean of all elements of a sequence, as a vector.
struct MeanToken {
  bool operator==(const MeanToken&) const = default;
};

// The loss: it reads logits, of one sample or of each element of a sequence, and gives one number.
struct SoftmaxCrossEntropy {
  bool operator==(const SoftmaxCrossEntropy&) const = default;
};

using LayerKind =
    std::variant<Convolution, FullyConnected, BatchNorm, Relu, MaxPool, AveragePool,
                 AdaptiveAveragePool, Lrn, Dropout, Add, Concat, Flatten, SoftmaxCrossEntropy,
                 Embedding, Linear, TiedLinear, LayerNorm, Gelu, Tanh, Attention, SelectTokens,
                 FirstToken, StochasticDepth, Multiply, Scale, Rearrange, Slice, Pad, ClassToken,
                 RelativePositionBias, MeanToken, Silu, RouteTokens, ExpertLinear, CombineTokens>;

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
    "softmax_cross_entropy",
    "embedding",
    "linear",
    "tied_linear",
    "layer_norm",
    "gelu",
    "tanh",
    "attention",
    "select_tokens",
    "first_token",
    "stochastic_depth",
    "multiply",
    "scale",
    "rearrange",
    "slice",
    "pad",
    "class_token",
    "relative_position_bias",
    "mean_token",
    "silu",
    "route_tokens",
    "expert_linear",
    "combine_tokens"};

[[nodiscard]] inline std::string_view name(const LayerKind& kind) {
  return layer_kind_names[kind.index()];
}
[[nodiscard]] inline std::string_view name(Embedding::Of of) {
  return embedding_names[to_size(of)];
}
// Add and concat take two or more inputs.
[[nodiscard]] inline bool takes_many(const LayerKind& kind) {
  return std::holds_alternative<Add>(kind) || std::holds_alternative<Concat>(kind);
}
// Whether a kind takes this number of inputs: attention one or three, and the bias of its scores, a
// tied linear layer and a product two, and all that do not take many take one.
[[nodiscard]] inline bool takes(const LayerKind& kind, std::size_t inputs) {
  if (takes_many(kind)) return inputs >= 2;
  if (std::holds_alternative<Attention>(kind)) return inputs >= 1 && inputs <= 4;
  const bool takes_two =
      std::holds_alternative<TiedLinear>(kind) || std::holds_alternative<Multiply>(kind);
  return inputs == (takes_two ? 2 : 1);
}

}  // namespace paceline::models
