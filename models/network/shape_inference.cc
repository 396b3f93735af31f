// Tests: tests/models/network_test.cc, tests/models/network_work_test.cc.
#include "models/network/shape_inference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;

[[noreturn]] void fail(const Layer& layer, const std::string& problem, const std::string& remedy) {
  throw InputError(fmt::format("layer '{}': {}", layer.name, problem), remedy);
}

struct Window {
  Extent kernel;
  Extent stride;
  Extent padding;
  Extent dilation{1, 1};
  bool ceil = false;
};

std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, std::int64_t dilation, bool ceil) {
  const std::int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (room < 0) return 0;
  std::int64_t count = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
  if (ceil && (count - 1) * stride >= size + padding) --count;
  return count;
}

Shape windowed(const Layer& layer, const Shape& in, std::int64_t channels, const Window& w) {
  if (!in.is_image)
    fail(layer, fmt::format("{} needs an image, and reads {}", name(layer.kind), described(in)),
         "put it before flatten");
  const std::int64_t height = windows(in.height, w.kernel.height, w.stride.height, w.padding.height,
                                      w.dilation.height, w.ceil);
  const std::int64_t width =
      windows(in.width, w.kernel.width, w.stride.width, w.padding.width, w.dilation.width, w.ceil);
  if (height < 1 || width < 1) {
    std::string kernel = fmt::format("kernel {}x{}", w.kernel.height, w.kernel.width);
    if (w.dilation != square(1)) {
      kernel += fmt::format(", dilated to {}x{},", w.dilation.height * (w.kernel.height - 1) + 1,
                            w.dilation.width * (w.kernel.width - 1) + 1);
    }
    fail(layer,
         fmt::format("{} is larger than its padded input {}x{}", kernel,
                     in.height + 2 * w.padding.height, in.width + 2 * w.padding.width),
         "use a smaller kernel or dilation, more padding, or fewer strides before it");
  }
  return Shape::image(channels, height, width);
}

struct Inference {
  const Network& network;
  const Layer& layer;
  const std::vector<Shape>& in;

  Shape operator()(const Convolution& c) const {
    const std::int64_t channels = in[0].channels;
    if (in[0].is_image && (channels % c.groups != 0 || c.channels % c.groups != 0)) {
      fail(layer,
           fmt::format("{} groups do not divide {} input and {} output channels", c.groups,
                       channels, c.channels),
           "choose groups that divide both");
    }
    return windowed(layer, in[0], c.channels, {c.kernel, c.stride, c.padding, c.dilation});
  }
  Shape operator()(const FullyConnected& f) const {
    if (in[0].is_sequence)
      fail(layer, fmt::format("fully_connected reads {}", described(in[0])),
           "write linear, which every element goes through, or put flatten before it");
    return Shape::vector(f.outputs);
  }
  Shape operator()(const MaxPool& p) const { return pooled(p); }
  Shape operator()(const AveragePool& p) const { return pooled(p); }
  Shape operator()(const AdaptiveAveragePool& p) const {
    if (!in[0].is_image)
      fail(layer,
           fmt::format("adaptive_average_pool needs an image, and reads {}", described(in[0])),
           "put it before flatten");
    return Shape::image(in[0].channels, p.output.height, p.output.width);
  }
  Shape operator()(const Lrn&) const {
    if (!in[0].is_image)
      fail(layer, fmt::format("lrn needs an image, and reads {}", described(in[0])),
           "put it before flatten");
    return in[0];
  }
  Shape operator()(const Add&) const {
    for (const Shape& shape : in) {
      if (shape != in[0])
        fail(layer, fmt::format("adds {} and {}", to_text(in[0]), to_text(shape)),
             "inputs of add must have one shape");
    }
    return in[0];
  }
  Shape operator()(const Multiply&) const {
    const bool is_whole = in[1] == in[0];
    const bool is_factor =
        in[0].channels == in[1].channels && in[1].height == 1 && in[1].width == 1;
    if (!is_whole && !is_factor)
      fail(layer, fmt::format("multiplies {} by {}", to_text(in[0]), to_text(in[1])),
           "the second input has the shape of the first, or a number for each of its channels");
    return in[0];
  }
  Shape operator()(const Rearrange& r) const {
    if (in[0].elements() != r.output.elements())
      fail(layer, fmt::format("rearranges {} to {}", to_text(in[0]), to_text(r.output)),
           "an output must have as many elements");
    return r.output;
  }
  Shape operator()(const Slice& s) const {
    if (in[0].elements() <= s.output.elements())
      fail(layer, fmt::format("a slice {} of {}", to_text(s.output), to_text(in[0])),
           "an output must have fewer elements");
    return s.output;
  }
  Shape operator()(const Pad& p) const {
    const bool same_kind =
        in[0].is_image == p.output.is_image && in[0].is_sequence == p.output.is_sequence;
    if (!same_kind || in[0].channels != p.output.channels || in[0].height > p.output.height ||
        in[0].width > p.output.width)
      fail(layer, fmt::format("pads {} to {}", to_text(in[0]), to_text(p.output)),
           "an output may be larger in height, width or elements only");
    return p.output;
  }
  Shape operator()(const ClassToken&) const {
    need_sequence();
    return Shape::sequence(in[0].height + 1, in[0].channels);
  }
  Shape operator()(const RelativePositionBias& b) const {
    return Shape::image(b.heads, b.window, b.window);
  }
  Shape operator()(const Concat&) const {
    Shape sum = in[0];
    sum.channels = 0;
    for (const Shape& shape : in) {
      if (shape.is_image != in[0].is_image || shape.is_sequence != in[0].is_sequence ||
          shape.height != in[0].height || shape.width != in[0].width) {
        fail(layer, fmt::format("concatenates {} and {}", to_text(in[0]), to_text(shape)),
             "inputs of concat may differ in channels only");
      }
      sum.channels += shape.channels;
    }
    return sum;
  }
  Shape operator()(const Flatten&) const { return Shape::vector(in[0].elements()); }
  Shape operator()(const SoftmaxCrossEntropy&) const {
    if (in[0].is_image)
      fail(layer, fmt::format("reads an image {}", to_text(in[0])),
           "put flatten or fully_connected before it");
    return Shape::vector(1);
  }
  Shape operator()(const Embedding& e) const {
    const bool is_read = e.of != Embedding::Of::positions;
    if (!in[0].is_sequence || (is_read && in[0].channels != 1))
      fail(
          layer,
          fmt::format("embedding needs a sequence{}, and reads {}", is_read ? " of numbers" : "",
                      described(in[0])),
          is_read ? "let it read the network's input, which has tokens" : "let it read a sequence");
    if (!is_read && in[0].height > e.entries)
      fail(layer,
           fmt::format("a sequence of {}, and a table of {} positions", in[0].height, e.entries),
           fmt::format("use at most {}", e.entries));
    return Shape::sequence(in[0].height, e.features);
  }
  Shape operator()(const Linear& l) const { return for_each_element(l.outputs); }
  Shape operator()(const TiedLinear&) const {
    const auto& table = std::get<Embedding>(network.layers()[to_size(layer.inputs[1])].kind);
    const Shape out = for_each_element(table.entries);
    if (in[0].channels != table.features)
      fail(layer,
           fmt::format("reads {} features, and its table has {}", in[0].channels, table.features),
           "put a linear layer between them");
    return out;
  }
  Shape operator()(const LayerNorm&) const { return for_each_element(in[0].channels); }
  Shape operator()(const RouteTokens& r) const {
    need_sequence();
    return Shape::sequence(in[0].height * r.active, in[0].channels);
  }
  Shape operator()(const ExpertLinear& e) const {
    need_sequence();
    return Shape::sequence(in[0].height, e.outputs);
  }
  Shape operator()(const CombineTokens& c) const {
    need_sequence();
    if (in[0].height % c.active != 0)
      fail(layer, fmt::format("{} elements of {} experts each", in[0].height, c.active),
           "let it have the active experts of the route_tokens before it");
    return Shape::sequence(in[0].height / c.active, in[0].channels);
  }
  Shape operator()(const Attention& a) const {
    if (a.value_features > 0) return of_latent(a);
    const bool has_bias = in.size() % 2 == 0;
    const std::size_t sequences = in.size() - (has_bias ? 1 : 0);
    for (const Shape& shape : std::span(in).first(sequences)) {
      if (!shape.is_sequence || shape.height != in[0].height)
        fail(layer, fmt::format("attention reads {}", described(shape)),
             "let it read three sequences of as many elements, or one that has them side by side");
    }
    const std::int64_t window = a.window == 0 ? in[0].height : a.window;
    if (in[0].height % window != 0)
      fail(layer, fmt::format("windows of {} do not divide {} elements", window, in[0].height),
           "choose windows that do");
    if (has_bias && in.back() != Shape::image(a.heads, window, window))
      fail(layer, fmt::format("the bias of its scores is {}", described(in.back())),
           fmt::format("let it read a relative_position_bias, {}, or queries, keys and values",
                       described(Shape::image(a.heads, window, window))));
    if (!a.fused && a.sliding_window > 0)
      fail(layer, "a sliding window whose attention is not fused", "add fused: true");
    if (a.fused && (has_bias || a.dropout > 0 || a.window > 0 || a.learned_scale))
      fail(layer, "fused attention with a bias, a dropout, windows or a scale of its scores",
           "leave those out, or fused: true");
    const std::int64_t features = sequences == 1 ? of_packed(a) : of_queries(a);
    check_rotary(a, features / a.heads);
    return Shape::sequence(in[0].height, features);
  }
  Shape operator()(const SelectTokens& s) const {
    need_sequence();
    // A product of a share as 0.15 may come out just above the whole number that is meant.
    const double picked = std::ceil(s.share * static_cast<double>(in[0].height) - 1e-6);
    return Shape::sequence(std::max<std::int64_t>(1, static_cast<std::int64_t>(picked)),
                           in[0].channels);
  }
  Shape operator()(const FirstToken&) const {
    need_sequence();
    return Shape::vector(in[0].channels);
  }
  Shape operator()(const MeanToken&) const {
    need_sequence();
    return Shape::vector(in[0].channels);
  }
  template <class SameShape>
  Shape operator()(const SameShape&) const {
    return in[0];
  }

 private:
  // The output of attention whose keys and values come from a latent vector.
  [[nodiscard]] Shape of_latent(const Attention& a) const {
    if (!a.fused || in.size() != 3 || a.key_value_heads != 0)
      fail(layer, "value_features without fused: true and three inputs, or with key_value_heads",
           "write inputs: [queries, keys_and_values, shared_features] and fused: true");
    for (const Shape& shape : in)
      if (!shape.is_sequence || shape.height != in[0].height)
        fail(layer, fmt::format("attention reads {}", described(shape)),
             "let it read three sequences of as many elements");
    check_heads(a.heads, in[0].channels);
    check_heads(a.heads, in[1].channels);
    const std::int64_t query = in[0].channels / a.heads;
    const std::int64_t own = in[1].channels / a.heads - a.value_features;
    if (own < 1 || own + in[2].channels != query)
      fail(layer,
           fmt::format("a query has {} features, and a key {} and {} that are shared", query, own,
                       in[2].channels),
           "let the features of a key and the shared ones be those of a query");
    return Shape::sequence(in[0].height, a.heads * a.value_features);
  }
  // Features of the queries, and so of the output, where queries, keys and values are side by side: h
  // heads of queries, and twice the heads of keys and values.
  [[nodiscard]] std::int64_t of_packed(const Attention& a) const {
    const std::int64_t features = in[0].channels;
    if (a.key_value_heads == 0) {
      if (features % 3 != 0)
        fail(layer, fmt::format("{} features are no three sequences", features),
             "let it read queries, keys and values side by side");
      check_heads(a.heads, features / 3);
      return features / 3;
    }
    check_groups(a.heads, a.key_value_heads);
    const std::int64_t all = a.heads + 2 * a.key_value_heads;
    if (features % all != 0)
      fail(layer,
           fmt::format("{} features are no {} heads of queries and {} of keys and of values",
                       features, a.heads, a.key_value_heads),
           "let it read queries, keys and values side by side");
    return features / all * a.heads;
  }
  [[nodiscard]] std::int64_t of_queries(const Attention& a) const {
    const std::int64_t features = in[0].channels;
    check_heads(a.heads, features);
    const std::int64_t of_head = features / a.heads;
    const std::int64_t key_value_heads =
        a.key_value_heads == 0 ? in[1].channels / of_head : a.key_value_heads;
    if (in[1] != in[2] || in[1].channels != key_value_heads * of_head)
      fail(layer,
           fmt::format("attention reads keys {} and values {}", described(in[1]), described(in[2])),
           fmt::format("let both have {}",
                       a.key_value_heads == 0
                           ? fmt::format("whole heads of {} features", of_head)
                           : fmt::format("{} heads of {} features", key_value_heads, of_head)));
    check_groups(a.heads, key_value_heads);
    return features;
  }
  void check_heads(std::int64_t heads, std::int64_t features) const {
    if (features % heads != 0)
      fail(layer, fmt::format("{} heads do not divide {} features", heads, features),
           "choose heads that do");
  }
  void check_groups(std::int64_t heads, std::int64_t key_value_heads) const {
    if (key_value_heads == 0 || heads % key_value_heads != 0)
      fail(layer,
           fmt::format("{} heads of queries share {} of keys and values", heads, key_value_heads),
           "choose a number that divides the heads of queries");
  }
  void check_rotary(const Attention& a, std::int64_t of_head) const {
    const std::int64_t turned = a.rotary_features == 0 ? of_head : a.rotary_features;
    if (a.rotary_base > 0 && (turned > of_head || turned % 2 != 0))
      fail(layer, fmt::format("{} of {} features of a head turn in pairs", turned, of_head),
           "choose an even number of them");
  }
  void need_sequence() const {
    if (!in[0].is_sequence)
      fail(layer,
           fmt::format("{} needs a sequence, and reads {}", name(layer.kind), described(in[0])),
           "let it read a sequence");
  }
  // The shape where each element of a sequence, place of an image, or a vector gets these features.
  [[nodiscard]] Shape for_each_element(std::int64_t features) const {
    Shape shape = in[0];
    shape.channels = features;
    return shape;
  }
  [[nodiscard]] Shape pooled(const Pool& p) const {
    if (p.padding.height * 2 > p.kernel.height || p.padding.width * 2 > p.kernel.width) {
      fail(layer,
           fmt::format("padding {}x{} is more than half of kernel {}x{}", p.padding.height,
                       p.padding.width, p.kernel.height, p.kernel.width),
           "pad at most half of the kernel");
    }
    return windowed(layer, in[0], in[0].channels, {p.kernel, p.stride, p.padding, {1, 1}, p.ceil});
  }
};

}  // namespace

std::vector<Shape> infer_shapes(const Network& network) {
  std::vector<Shape> shapes;
  std::vector<Shape> inputs;
  for (const Layer& layer : network.layers()) {
    inputs.clear();
    for (const int input : layer.inputs)
      inputs.push_back(input == network_input ? network.input() : shapes[to_size(input)]);
    const Shape shape = std::visit(Inference{network, layer, inputs}, layer.kind);
    const bool huge = shape.channels > most_elements / shape.height ||
                      shape.channels * shape.height > most_elements / shape.width;
    if (huge)
      fail(layer, fmt::format("its output {} has more than 2^40 elements", to_text(shape)),
           "use smaller sizes");
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace paceline::models
