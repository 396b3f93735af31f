// Tests: tests/cuda/network.
#include "runtime/network/cuda/compiler.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "models/base/error.h"
#include "models/network/shape_inference.h"
#include "runtime/network/computed_kinds.h"
#include "runtime/network/uneven_pool.h"

namespace paceline::runtime::cuda {
namespace {

// The output of a layer, or the network's input.
struct Value {
  models::Shape shape;
  bool needs_gradient = false;
  ArenaBlock data = no_block;
  ArenaBlock gradient = no_block;  // is set as soon as a reader has given its part
};

// What the backward pass of a layer needs to know of its forward pass.
struct LayerState {
  ArenaBlock where = no_block;  // of a max pool
  MeanWindows means;            // of an average pool
  BatchNormVectors norm;
  double* norm_sums = nullptr;
  Filters filters;
  const void* bias = nullptr;
};

Windows windows_of(const models::Convolution& layer) {
  return {.kernel_height = layer.kernel.height,
          .kernel_width = layer.kernel.width,
          .stride_height = layer.stride.height,
          .stride_width = layer.stride.width,
          .padding_height = layer.padding.height,
          .padding_width = layer.padding.width,
          .dilation_height = layer.dilation.height,
          .dilation_width = layer.dilation.width,
          .groups = layer.groups};
}
Windows windows_of(const models::Pool& layer) {
  return {.kernel_height = layer.kernel.height,
          .kernel_width = layer.kernel.width,
          .stride_height = layer.stride.height,
          .stride_width = layer.stride.width,
          .padding_height = layer.padding.height,
          .padding_width = layer.padding.width};
}

// For each of `in` rows, the windows that cover it.
std::vector<CoveringWindows> covering(std::span<const PoolWindow> windows, std::int64_t in) {
  std::vector<CoveringWindows> result(static_cast<std::size_t>(in));
  for (std::size_t row = 0; row < result.size(); ++row) {
    const auto covers = [row](const PoolWindow& window) {
      return window.first <= static_cast<std::int64_t>(row) &&
             static_cast<std::int64_t>(row) < window.end;
    };
    const auto first = std::ranges::find_if(windows, covers);
    const auto end = std::find_if_not(first, windows.end(), covers);
    result[row] = {static_cast<std::int32_t>(first - windows.begin()),
                   static_cast<std::int32_t>(end - windows.begin())};
  }
  return result;
}

std::vector<MeanWindow> as_device_windows(std::span<const PoolWindow> windows) {
  std::vector<MeanWindow> result;
  for (const PoolWindow& window : windows)
    result.push_back({static_cast<std::int32_t>(window.first),
                      static_cast<std::int32_t>(window.end),
                      static_cast<std::int32_t>(window.count)});
  return result;
}

class Compiler {
 public:
  Compiler(const models::Network& network, const TrainableNetworkOptions& options,
           const std::vector<ParameterPlace>& places, Memories& memories)
      : network_(network), options_(options), places_(places), memories_(memories) {
    const std::size_t layers = network.layers().size();
    program_.layers.resize(layers);
    states_.resize(layers);
    program_.working_copies.resize(places.size());
    for (std::size_t i = 0; i < places.size(); ++i)
      program_.layers[static_cast<std::size_t>(places[i].layer)].parameters.push_back(
          static_cast<int>(i));
    make_values();
  }

  Program compile() {
    keep_what_the_host_knows();
    for (std::size_t i = 0; i < network_.layers().size(); ++i) {
      begin(static_cast<int>(i), 1 + static_cast<int>(i));
      visit([this](const auto& layer) { forward(layer); });
    }
    for (std::size_t i = network_.layers().size(); i-- > 0;) {
      const int layers = static_cast<int>(network_.layers().size());
      begin(static_cast<int>(i), 2 * layers - static_cast<int>(i));
      if (output().needs_gradient) visit([this](const auto& layer) { backward(layer); });
    }
    return std::move(program_);
  }

 private:
  // The values and the host's memory.

  void make_values() {
    const std::vector<models::Shape> shapes = models::infer_shapes(network_);
    values_.resize(shapes.size() + 1);
    values_[0].shape = network_.input();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      Value& made = values_[i + 1];
      made.shape = shapes[i];
      made.needs_gradient = !program_.layers[i].parameters.empty();
      for (const int input : network_.layers()[i].inputs)
        made.needs_gradient = made.needs_gradient || value(input).needs_gradient;
    }
  }

  void keep_what_the_host_knows() {
    memories_.set_time(0);
    const auto batch = static_cast<std::size_t>(options_.batch);
    program_.images = keep<float>(batch * static_cast<std::size_t>(network_.input().elements()));
    program_.labels = keep<std::int32_t>(batch);
    program_.pass = keep<PassParameters>(1);
    program_.outcomes = keep<SampleOutcome>(batch);
    std::vector<float> statistics;
    for (std::size_t i = 0; i < network_.layers().size(); ++i) {
      offsets_.push_back(statistics.size());
      if (std::holds_alternative<models::BatchNorm>(network_.layers()[i].kind))
        statistics.resize(statistics.size() +
                          static_cast<std::size_t>(values_[i + 1].shape.channels));
    }
    statistics_ = statistics.size();
    statistics.resize(2 * statistics_, 1.0F);
    program_.statistics_elements = statistics.size();
    program_.statistics = table<float>(statistics);
    Value& input = values_[0];
    input.data = memories_.new_block(bytes(input.shape));
    program_.load_images = LoadImages{program_.images, program_.pass, data(input)};
  }

  void begin(int layer, int time) {
    layer_ = layer;
    memories_.set_time(time);
  }
  template <class Action>
  void visit(Action action) {
    std::visit(
        [&](const auto& kind) {
          if constexpr (is_computed<std::decay_t<decltype(kind)>>)
            action(kind);
          else
            PACELINE_ASSERT(false, "check_trainable has refused this kind");
        },
        here().kind);
  }

  template <class Element>
  Element* keep(std::size_t elements) {
    return reinterpret_cast<Element*>(memories_.keep(elements * sizeof(Element)));
  }
  // A table that begins with these elements.
  template <class Element>
  Element* table(const std::vector<Element>& elements) {
    static_assert(std::is_trivially_copyable_v<Element>);
    auto* target = keep<Element>(elements.size());
    std::vector<std::byte> bytes(elements.size() * sizeof(Element));
    if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
    program_.initial.push_back({reinterpret_cast<std::byte*>(target), std::move(bytes)});
    return target;
  }

  // The layer at hand.

  [[nodiscard]] const models::Layer& here() const {
    return network_.layers()[static_cast<std::size_t>(layer_)];
  }
  [[nodiscard]] Value& value(int producer) {
    return values_[static_cast<std::size_t>(producer + 1)];
  }
  [[nodiscard]] std::size_t inputs() const { return here().inputs.size(); }
  [[nodiscard]] Value& input(std::size_t index = 0) { return value(here().inputs[index]); }
  [[nodiscard]] Value& output() { return value(layer_); }
  [[nodiscard]] LayerState& state() { return states_[static_cast<std::size_t>(layer_)]; }
  [[nodiscard]] LayerProgram& layer_program() {
    return program_.layers[static_cast<std::size_t>(layer_)];
  }
  void add_forward(const Operation& operation) {
    layer_program().training.push_back(operation);
    layer_program().evaluation.push_back(operation);
  }
  void add_data_gradient(const Operation& operation) {
    layer_program().data_gradients.push_back(operation);
  }

  // Tensors.

  [[nodiscard]] std::size_t number_bytes() const { return bytes_of(options_.storage); }
  [[nodiscard]] Tensor shaped(const models::Shape& shape, void* address) const {
    return {.data = address,
            .type = options_.storage,
            .images = options_.batch,
            .height = shape.height,
            .width = shape.width,
            .channels = shape.channels};
  }
  [[nodiscard]] std::size_t bytes(const models::Shape& shape) const {
    return shaped(shape, nullptr).bytes();
  }
  [[nodiscard]] Tensor data(const Value& value) {
    return shaped(value.shape, memories_.address(value.data));
  }
  [[nodiscard]] Tensor make_output() {
    Value& made = output();
    made.data = memories_.new_block(bytes(made.shape));
    return data(made);
  }
  [[nodiscard]] Tensor output_gradient() {
    return shaped(output().shape, memories_.address(output().gradient));
  }
  // Where this layer's part of an input's gradient goes.
  [[nodiscard]] Contribution contribution(Value& to) {
    const bool adds = to.gradient != no_block;
    if (!adds) to.gradient = memories_.new_block(bytes(to.shape));
    return {.target = shaped(to.shape, memories_.address(to.gradient)), .adds = adds};
  }
  // The same for a whole tensor that is written and belongs to no gradient.
  [[nodiscard]] static Contribution all_of(const Tensor& tensor) { return {.target = tensor}; }

  // Parameters.

  [[nodiscard]] int parameter(ParameterRole role) {
    for (const int index : layer_program().parameters)
      if (places_[static_cast<std::size_t>(index)].role == role) return index;
    return -1;
  }
  [[nodiscard]] ParameterGradient gradient_of(ParameterRole role) {
    const bool is_rounded = role == ParameterRole::weight || role == ParameterRole::bias;
    return {.offset = places_[static_cast<std::size_t>(parameter(role))].offset,
            .type = is_rounded && options_.storage == NumberType::fp16 ? NumberType::fp16
                                                                       : NumberType::fp32};
  }
  [[nodiscard]] void* vector(ParameterRole role, NumberType type) {
    const int index = parameter(role);
    if (index < 0) return nullptr;
    const std::int64_t elements = places_[static_cast<std::size_t>(index)].elements;
    void* copy = memories_.keep(static_cast<std::size_t>(elements) * bytes_of(type));
    program_.working_copies[static_cast<std::size_t>(index)] =
        LoadVector{.target = copy, .type = type, .elements = elements};
    return copy;
  }
  void keep_filters(std::int64_t outputs, const models::Extent& kernel, std::int64_t channels) {
    Filters filters{.type = options_.storage,
                    .outputs = outputs,
                    .kernel_height = kernel.height,
                    .kernel_width = kernel.width,
                    .channels = channels};
    filters.data = memories_.keep(filters.bytes());
    program_.working_copies[static_cast<std::size_t>(parameter(ParameterRole::weight))] =
        LoadFilters{.target = filters};
    state().filters = filters;
    state().bias = vector(ParameterRole::bias, options_.storage);
  }

  // Convolutions. A fully connected layer is one whose kernel covers the input.

  void convolve(const Windows& windows) {
    const Tensor x = data(input());
    add_forward(ConvolutionForward{windows, x, state().filters, state().bias, make_output()});
  }
  void convolve_back(const Windows& windows) {
    const Tensor x = data(input());
    const Tensor dy = output_gradient();
    Operations& gradients = layer_program().parameter_gradients;
    if (state().bias != nullptr || parameter(ParameterRole::bias) >= 0)
      gradients.push_back(BiasGradient{dy, gradient_of(ParameterRole::bias)});
    gradients.push_back(ConvolutionFilterGradient{windows, x, dy, state().filters,
                                                  gradient_of(ParameterRole::weight)});
    if (input().needs_gradient)
      add_data_gradient(
          ConvolutionDataGradient{windows, dy, state().filters, contribution(input())});
  }
  void forward(const models::Convolution& layer) {
    keep_filters(layer.channels, layer.kernel, input().shape.channels / layer.groups);
    convolve(windows_of(layer));
  }
  void backward(const models::Convolution& layer) { convolve_back(windows_of(layer)); }

  [[nodiscard]] Windows whole_input() {
    const models::Shape& in = input().shape;
    return {.kernel_height = in.height, .kernel_width = in.width};
  }
  void forward(const models::FullyConnected& layer) {
    const models::Shape& in = input().shape;
    keep_filters(layer.outputs, {in.height, in.width}, in.channels);
    convolve(whole_input());
  }
  void backward(const models::FullyConnected&) { convolve_back(whole_input()); }

  // Normalisation.

  void forward(const models::BatchNorm&) {
    const auto channels = static_cast<std::size_t>(input().shape.channels);
    const std::size_t offset = offsets_[static_cast<std::size_t>(layer_)];
    BatchNormVectors& norm = state().norm;
    norm.gamma = static_cast<float*>(vector(ParameterRole::gamma, NumberType::fp32));
    norm.beta = static_cast<float*>(vector(ParameterRole::beta, NumberType::fp32));
    norm.mean = keep<float>(channels);
    norm.variance = keep<float>(channels);
    norm.running_mean = program_.statistics + offset;
    norm.running_variance = program_.statistics + statistics_ + offset;
    norm.epsilon = static_cast<float>(options_.batch_norm_epsilon);
    state().norm_sums = keep<double>(2 * channels);
    const Tensor x = data(input());
    const Tensor y = make_output();
    layer_program().training.push_back(BatchNormStatistics{x, norm, options_.batch_norm_momentum});
    layer_program().training.push_back(BatchNormApply{x, norm, false, y});
    layer_program().evaluation.push_back(BatchNormApply{x, norm, true, y});
  }
  void backward(const models::BatchNorm&) {
    const Tensor x = data(input());
    const Tensor dy = output_gradient();
    layer_program().parameter_gradients.push_back(BatchNormParameterGradients{
        x, dy, state().norm, state().norm_sums, gradient_of(ParameterRole::gamma),
        gradient_of(ParameterRole::beta)});
    if (input().needs_gradient)
      add_data_gradient(
          BatchNormDataGradient{x, dy, state().norm, state().norm_sums, contribution(input())});
  }

  void forward(const models::Lrn& layer) {
    if (layer.size % 2 == 0)
      throw InputError("layer '" + here().name + "': lrn over " + std::to_string(layer.size) +
                           " channels has no middle",
                       "use an odd size");
    const Tensor x = data(input());
    add_forward(LrnForward{x, layer.size / 2, make_output()});
  }
  void backward(const models::Lrn& layer) {
    add_data_gradient(
        LrnDataGradient{data(input()), output_gradient(), layer.size / 2, contribution(input())});
  }

  // Layers that touch each element once.

  void forward(const models::Relu&) {
    const Tensor x = data(input());
    add_forward(ReluForward{x, make_output()});
  }
  void backward(const models::Relu&) {
    add_data_gradient(ReluDataGradient{data(output()), output_gradient(), contribution(input())});
  }

  void forward(const models::Dropout& layer) {
    const Tensor x = data(input());
    Dropout masked{.source = x,
                   .pass = program_.pass,
                   .layer = layer_,
                   .probability = layer.probability,
                   .has_mask = true,
                   .target = all_of(make_output())};
    layer_program().training.push_back(masked);
    masked.has_mask = false;
    layer_program().evaluation.push_back(masked);
  }
  void backward(const models::Dropout& layer) {
    add_data_gradient(Dropout{.source = output_gradient(),
                              .pass = program_.pass,
                              .layer = layer_,
                              .probability = layer.probability,
                              .has_mask = true,
                              .target = contribution(input())});
  }

  void forward(const models::Add&) {
    Tensor sum = data(input(0));
    const Tensor y = make_output();
    for (std::size_t i = 1; i < inputs(); ++i) {
      add_forward(Sum{sum, data(input(i)), y});
      sum = y;
    }
  }
  void backward(const models::Add&) {
    const Tensor dy = output_gradient();
    for (std::size_t i = 0; i < inputs(); ++i)
      if (input(i).needs_gradient)
        add_data_gradient(
            CopyChannels{.source = dy, .target = contribution(input(i)), .channels = dy.channels});
  }

  void forward(const models::Concat&) {
    const Tensor y = make_output();
    std::int64_t channel = 0;
    for (std::size_t i = 0; i < inputs(); ++i) {
      const Tensor x = data(input(i));
      add_forward(
          CopyChannels{.source = x, .target = all_of(y), .to = channel, .channels = x.channels});
      channel += x.channels;
    }
  }
  void backward(const models::Concat&) {
    const Tensor dy = output_gradient();
    std::int64_t channel = 0;
    for (std::size_t i = 0; i < inputs(); ++i) {
      const std::int64_t channels = input(i).shape.channels;
      if (input(i).needs_gradient)
        add_data_gradient(CopyChannels{
            .source = dy, .from = channel, .target = contribution(input(i)), .channels = channels});
      channel += channels;
    }
  }

  void forward(const models::Flatten&) {
    const Tensor x = data(input());
    add_forward(Flatten{.source = x, .target = all_of(make_output())});
  }
  void backward(const models::Flatten&) {
    add_data_gradient(
        Flatten{.source = output_gradient(), .back = true, .target = contribution(input())});
  }

  // Pools.

  void forward(const models::MaxPool& layer) {
    const Tensor x = data(input());
    const Tensor y = make_output();
    state().where =
        memories_.new_block(static_cast<std::size_t>(y.elements()) * sizeof(std::int32_t));
    add_forward(MaxPoolForward{windows_of(layer), x, y, where()});
  }
  void backward(const models::MaxPool& layer) {
    add_data_gradient(
        MaxPoolDataGradient{windows_of(layer), output_gradient(), where(), contribution(input())});
  }
  [[nodiscard]] std::int32_t* where() {
    return reinterpret_cast<std::int32_t*>(memories_.address(state().where));
  }

  void forward(const models::AveragePool& layer) {
    const models::Shape& in = input().shape;
    const models::Shape& out = output().shape;
    average(padded_windows({.in = in.height,
                            .out = out.height,
                            .kernel = layer.kernel.height,
                            .stride = layer.stride.height,
                            .padding = layer.padding.height}),
            padded_windows({.in = in.width,
                            .out = out.width,
                            .kernel = layer.kernel.width,
                            .stride = layer.stride.width,
                            .padding = layer.padding.width}));
  }
  void forward(const models::AdaptiveAveragePool&) {
    const models::Shape& in = input().shape;
    const models::Shape& out = output().shape;
    average(adaptive_windows(in.height, out.height), adaptive_windows(in.width, out.width));
  }
  void average(const std::vector<PoolWindow>& rows, const std::vector<PoolWindow>& columns) {
    const models::Shape& in = input().shape;
    state().means = {.rows = table(as_device_windows(rows)),
                     .columns = table(as_device_windows(columns)),
                     .over_rows = table(covering(rows, in.height)),
                     .over_columns = table(covering(columns, in.width))};
    const Tensor x = data(input());
    add_forward(AveragePoolForward{state().means, x, make_output()});
  }
  void backward(const models::AveragePool&) { average_back(); }
  void backward(const models::AdaptiveAveragePool&) { average_back(); }
  void average_back() {
    add_data_gradient(
        AveragePoolDataGradient{state().means, output_gradient(), contribution(input())});
  }

  // The loss.

  void forward(const models::SoftmaxCrossEntropy&) {
    const Tensor logits = data(input());
    program_.logits = keep<float>(static_cast<std::size_t>(logits.elements()));
    add_forward(
        LossForward{logits, program_.labels, program_.pass, program_.logits, program_.outcomes});
  }
  void backward(const models::SoftmaxCrossEntropy&) {
    if (!input().needs_gradient) return;
    add_data_gradient(LossDataGradient{program_.logits, program_.labels, program_.pass,
                                       program_.outcomes, contribution(input())});
  }

  const models::Network& network_;
  const TrainableNetworkOptions& options_;
  const std::vector<ParameterPlace>& places_;
  Memories& memories_;
  int layer_ = 0;
  std::vector<Value> values_;  // the network's input, then by layer
  std::vector<LayerState> states_;
  std::vector<std::size_t> offsets_;  // of a layer's running statistics among the means
  std::size_t statistics_ = 0;        // running means of all layers
  Program program_;
};

}  // namespace

Program compile(const models::Network& network, const TrainableNetworkOptions& options,
                const std::vector<ParameterPlace>& places, Memories& memories) {
  return Compiler(network, options, places, memories).compile();
}

}  // namespace paceline::runtime::cuda
