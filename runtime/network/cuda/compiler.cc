// Tests: tests/cuda/network.
#include "runtime/network/cuda/compiler.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/network/shape_inference.h"
#include "runtime/network/uneven_pool.h"

namespace paceline::runtime::cuda {
namespace {

using steps::OwnKernel;
using steps::Role;
using steps::Step;
using Kind = steps::Tensor::Kind;

// What the steps of a layer share.
struct LayerState {
  Filters filters;
  const void* bias = nullptr;
  BatchNormVectors norm;        // without the batch's statistics, which have blocks
  double* norm_sums = nullptr;  // of our own kernels
  MeanWindows means;            // of our own average pool
  int gradients_to_come = 0;
};

template <class Window>
Windows windows_of(const Window& window) {
  return {.kernel_height = window.kernel.height,
          .kernel_width = window.kernel.width,
          .stride_height = window.stride.height,
          .stride_width = window.stride.width,
          .padding_height = window.padding.height,
          .padding_width = window.padding.width};
}

// For each of `in` rows, the windows that cover it.
std::vector<CoveringWindows> covering(std::span<const PoolWindow> windows, std::int64_t in) {
  std::vector<CoveringWindows> result(to_size(in));
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
           const std::vector<ParameterPlace>& places, StepLibrary* library, Memories& memories)
      : network_(network),
        options_(options),
        places_(places),
        library_(library),
        memories_(memories),
        steps_(steps::layer_steps(network, options.batch)),
        shapes_(steps::stored_shapes(network, options.batch)) {
    const std::size_t layers = network.layers().size();
    program_.layers.resize(layers);
    states_.resize(layers);
    program_.working_copies.resize(places.size());
    for (std::size_t i = 0; i < places.size(); ++i)
      program_.layers[to_size(places[i].layer)].parameters.push_back(static_cast<int>(i));
  }

  Program compile() {
    prepare_library();
    keep_what_the_host_knows();
    for (std::size_t i = 0; i < network_.layers().size(); ++i) keep_parameters(static_cast<int>(i));
    for (const Step& step : steps_) {
      memories_.set_time(time_++);
      step_ = &step;
      if (const auto* kernel = std::get_if<OwnKernel>(&step.work)) {
        compute(*kernel);
      } else {
        const auto& operation = std::get<steps::Operation>(step.work);
        std::visit([this](const auto& o) { compute(o); }, operation);
      }
    }
    return std::move(program_);
  }

 private:
  // Memory that is kept.

  void prepare_library() {
    if (library_ == nullptr) return;
    if (!memories_.is_bound()) library_->plan(steps::operations_of(steps_), options_.storage);
    workspace_ = memories_.keep(library_->workspace());
  }

  void keep_what_the_host_knows() {
    memories_.set_time(time_);
    const auto batch = to_size(options_.batch);
    program_.images = keep<float>(batch * to_size(network_.input().elements()));
    program_.labels = keep<std::int32_t>(batch);
    program_.pass = keep<PassParameters>(1);
    program_.outcomes = keep<SampleOutcome>(batch);
    std::vector<float> statistics;
    for (std::size_t i = 0; i < network_.layers().size(); ++i) {
      offsets_.push_back(statistics.size());
      if (std::holds_alternative<models::BatchNorm>(network_.layers()[i].kind))
        statistics.resize(statistics.size() + to_size(shapes_[i + 1].channels));
    }
    statistics_ = statistics.size();
    statistics.resize(2 * statistics_, 1.0F);
    program_.statistics_elements = statistics.size();
    program_.statistics = table<float>(statistics);
  }

  void keep_parameters(int layer) {
    layer_ = layer;
    LayerState& state = states_[to_size(layer)];
    state.gradients_to_come = static_cast<int>(program_.layers[to_size(layer)].parameters.size());
    const steps::Images& in = shapes_[to_size(here().inputs[0] + 1)];
    if (const auto* convolution = std::get_if<models::Convolution>(&here().kind)) {
      keep_filters(convolution->channels, convolution->kernel, in.channels / convolution->groups);
    } else if (const auto* full = std::get_if<models::FullyConnected>(&here().kind)) {
      keep_filters(full->outputs, {in.height, in.width}, in.channels);
    } else if (std::holds_alternative<models::BatchNorm>(here().kind)) {
      BatchNormVectors& norm = state.norm;
      norm.gamma = static_cast<float*>(vector(ParameterRole::gamma, NumberType::fp32));
      norm.beta = static_cast<float*>(vector(ParameterRole::beta, NumberType::fp32));
      norm.running_mean = program_.statistics + offsets_[to_size(layer)];
      norm.running_variance = program_.statistics + statistics_ + offsets_[to_size(layer)];
      norm.epsilon = static_cast<float>(options_.batch_norm_epsilon);
      state.norm_sums = keep<double>(2 * to_size(in.channels));
    }
  }
  // A fully connected layer is a convolution whose kernel covers the input.
  void keep_filters(std::int64_t outputs, const models::Extent& kernel, std::int64_t stored) {
    const int index = parameter(ParameterRole::weight);
    Filters filters{.type = options_.storage,
                    .outputs = outputs,
                    .kernel_height = kernel.height,
                    .kernel_width = kernel.width,
                    .stored_channels = stored};
    filters.channels = places_[to_size(index)].elements / (outputs * kernel.height * kernel.width);
    filters.data = memories_.keep(filters.bytes());
    program_.working_copies[to_size(index)] = LoadFilters{.target = filters};
    states_[to_size(layer_)].filters = filters;
    states_[to_size(layer_)].bias = vector(ParameterRole::bias, options_.storage);
  }
  [[nodiscard]] void* vector(ParameterRole role, NumberType type) {
    const int index = parameter(role);
    if (index < 0) return nullptr;
    const std::int64_t elements = places_[to_size(index)].elements;
    void* copy = memories_.keep(to_size(elements) * bytes_of_number(type));
    program_.working_copies[to_size(index)] =
        LoadVector{.target = copy, .type = type, .elements = elements};
    return copy;
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

  // Parameters of layer_.

  [[nodiscard]] const models::Layer& here() const { return network_.layers()[to_size(layer_)]; }
  [[nodiscard]] int parameter(ParameterRole role) const {
    for (const int index : program_.layers[to_size(layer_)].parameters)
      if (places_[to_size(index)].role == role) return index;
    return -1;
  }
  [[nodiscard]] ParameterGradient gradient_of(ParameterRole role) const {
    const bool is_rounded = role == ParameterRole::weight || role == ParameterRole::bias;
    return {.offset = places_[to_size(parameter(role))].offset,
            .type = is_rounded && options_.storage == NumberType::fp16 ? NumberType::fp16
                                                                       : NumberType::fp32};
  }

  // Operands of the step at hand.

  [[nodiscard]] static const steps::Tensor* find(const std::vector<steps::Operand>& operands,
                                                 int role) {
    for (const steps::Operand& operand : operands)
      if (operand.role == role) return &operand.tensor;
    return nullptr;
  }
  [[nodiscard]] const steps::Tensor& read(Role role) const {
    const steps::Tensor* found = find(step_->reads, static_cast<int>(role));
    PACELINE_ASSERT(found != nullptr, "the step reads this operand");
    return *found;
  }
  [[nodiscard]] const steps::Tensor& written(Role role) const {
    const steps::Tensor* found = find(step_->writes, static_cast<int>(role));
    PACELINE_ASSERT(found != nullptr, "the step writes this operand");
    return *found;
  }

  // The memory of a tensor in the arena: of `bytes` where the step is the first that names it.
  std::byte* address(const steps::Tensor& tensor, std::size_t bytes) {
    const auto [place, is_new] = blocks_.try_emplace(tensor, no_block);
    if (is_new) place->second = memories_.new_block(bytes);
    std::byte* first = memories_.address(place->second);
    program_.tensors[tensor] = {first, bytes};
    return first;
  }
  // Memory of the arena for the step at hand alone.
  std::byte* scratch(std::size_t bytes) { return memories_.address(memories_.new_block(bytes)); }

  [[nodiscard]] Tensor shaped(const steps::Images& shape, void* data = nullptr) const {
    return {.data = data,
            .type = options_.storage,
            .images = shape.batch,
            .height = shape.height,
            .width = shape.width,
            .channels = shape.channels};
  }
  // A value or a gradient of one.
  [[nodiscard]] Tensor value(const steps::Tensor& tensor) {
    int layer = tensor.layer;
    if (tensor.kind == Kind::gradient_part)
      layer = network_.layers()[to_size(layer)].inputs[to_size(tensor.part)];
    Tensor shape = shaped(shapes_[to_size(layer + 1)]);
    shape.data = address(tensor, shape.bytes());
    return shape;
  }
  // What the forward pass of a batch norm keeps, by channel.
  [[nodiscard]] float* by_channel(const steps::Tensor& tensor) {
    const auto channels = to_size(shapes_[to_size(tensor.layer + 1)].channels);
    return reinterpret_cast<float*>(address(tensor, channels * sizeof(float)));
  }

  // Operations of the step at hand.

  [[nodiscard]] LayerProgram& layer_program() { return program_.layers[to_size(step_->layer)]; }
  void add_training(const Operation& operation) { layer_program().training.push_back(operation); }
  void add_evaluation(const Operation& operation) {
    layer_program().evaluation.push_back(operation);
  }
  void add_forward(const Operation& operation) {
    add_training(operation);
    add_evaluation(operation);
  }
  // Operations of a backward pass. Those behind the last gradient of the layer's parameters need not
  // be done when the parameters are announced.
  void add_backward(const Operation& operation, int gradients_of_parameters = 0) {
    int& to_come = states_[to_size(step_->layer)].gradients_to_come;
    LayerProgram& program = layer_program();
    (to_come > 0 ? program.parameter_gradients : program.data_gradients).push_back(operation);
    to_come -= gradients_of_parameters;
  }

  [[nodiscard]] bool is_of_library(const steps::Operation& operation) const {
    return library_ != nullptr && library_->computes(operation, options_.storage);
  }
  // The step as the library computes it. Roles of `made` are bound as they are given, others to the
  // tensors that the step names.
  [[nodiscard]] LibraryStep of_library(std::vector<StepLibrary::Bound> made) {
    std::vector<StepLibrary::Bound> operands = std::move(made);
    const auto is_made = [&operands](int role) {
      return std::any_of(operands.begin(), operands.end(),
                         [role](const auto& o) { return o.role == role; });
    };
    for (const auto* named : {&step_->reads, &step_->writes})
      for (const steps::Operand& operand : *named)
        if (!is_made(operand.role))
          operands.push_back({.role = operand.role, .memory = memory(operand)});
    LibraryStep step{.library = library_};
    if (memories_.is_bound())
      step.step = library_->bind(std::get<steps::Operation>(step_->work), options_.storage,
                                 operands, workspace_);
    return step;
  }
  [[nodiscard]] void* memory(const steps::Operand& operand) {
    const steps::Tensor& tensor = operand.tensor;
    const LayerState& state = states_[to_size(std::max(tensor.layer, 0))];
    const bool is_norm = state.norm.gamma != nullptr;
    switch (tensor.kind) {
      case Kind::data:
      case Kind::gradient:
      case Kind::gradient_part:
        return value(tensor).data;
      case Kind::parameter:
        if (is_norm)
          return const_cast<float*>(tensor.part == 0 ? state.norm.gamma : state.norm.beta);
        return tensor.part == 0 ? state.filters.data : const_cast<void*>(state.bias);
      case Kind::statistics:
        return tensor.part == 0 ? state.norm.running_mean : state.norm.running_variance;
      case Kind::kept:
        if (is_norm) return by_channel(tensor);
        // Where the maxima of a pool stood, in bytes.
        return address(tensor, to_size(shaped(shapes_[to_size(tensor.layer + 1)]).elements()));
      case Kind::parameter_gradient:
        break;
    }
    PACELINE_ASSERT(false, "gradients of parameters are made in scratch memory");
    return nullptr;
  }
  static StepLibrary::Bound bound(Role role, void* memory) {
    return {.role = static_cast<int>(role), .memory = memory};
  }

  // Convolutions, and fully connected layers.

  void compute(const steps::Convolution& c) {
    using Product = steps::Convolution::Product;
    const bool makes_filters = c.product == Product::filter_gradient;
    layer_ = makes_filters ? written(Role::dw).layer : read(Role::w).layer;
    const LayerState& state = states_[to_size(layer_)];
    if (is_of_library(c)) {
      if (c.product == Product::forward) return add_forward(of_library({}));
      if (c.product == Product::data_gradient) return add_backward(of_library({}));
      Filters made = state.filters;
      made.data = scratch(made.bytes());
      add_backward(of_library({bound(Role::dw, made.data)}));
      return add_backward(StoreFilterGradient{made, gradient_of(ParameterRole::weight)}, 1);
    }
    // The kernel of a fully connected layer covers the image that it reads.
    Windows windows = windows_of(c);
    windows.kernel_height = state.filters.kernel_height;
    windows.kernel_width = state.filters.kernel_width;
    windows.dilation_height = c.dilation.height;
    windows.dilation_width = c.dilation.width;
    windows.groups = c.groups;
    if (c.product == Product::forward) {
      const Tensor x = value(read(Role::x));
      add_forward(ConvolutionForward{windows, x, state.filters, c.bias ? state.bias : nullptr,
                                     c.relu, value(written(Role::y))});
    } else if (makes_filters) {
      const Tensor x = value(read(Role::x));
      add_backward(ConvolutionFilterGradient{windows, x, value(read(Role::dy)), state.filters,
                                             gradient_of(ParameterRole::weight)},
                   1);
    } else {
      const Tensor dy = value(read(Role::dy));
      add_backward(ConvolutionDataGradient{windows, dy, state.filters, value(written(Role::dx))});
    }
  }

  // Batch norm. Running statistics that do not stand at a multiple of 16 bytes are none that a
  // library takes: our own kernels then go forward. Evaluations are always our own, too.

  void compute(const steps::BatchNorm& b) {
    layer_ = read(Role::scale).layer;
    b.pass == steps::Pass::forward ? norm_forward(b) : norm_backward(b);
  }
  void norm_forward(const steps::BatchNorm& b) {
    BatchNormVectors norm = states_[to_size(layer_)].norm;
    norm.mean = by_channel(written(Role::mean));
    norm.inverse_deviation = by_channel(written(Role::inverse_deviation));
    const Tensor x = value(read(Role::x));
    BatchNormApply apply{.x = x, .vectors = norm, .relu = b.relu, .y = value(written(Role::y))};
    if (b.residual) apply.residual = value(read(Role::residual)).data;
    const bool is_aligned = offsets_[to_size(layer_)] % 4 == 0 && statistics_ % 4 == 0;
    if (is_of_library(b) && is_aligned) {
      add_training(of_library({{.role = static_cast<int>(Role::epsilon), .number = norm.epsilon},
                               {.role = static_cast<int>(Role::momentum),
                                .number = static_cast<float>(options_.batch_norm_momentum)}}));
    } else {
      add_training(BatchNormStatistics{x, norm, options_.batch_norm_momentum});
      add_training(apply);
    }
    apply.by_running_statistics = true;
    add_evaluation(apply);
  }
  void norm_backward(const steps::BatchNorm& b) {
    const LayerState& state = states_[to_size(layer_)];
    BatchNormVectors norm = state.norm;
    norm.mean = by_channel(read(Role::mean));
    norm.inverse_deviation = by_channel(read(Role::inverse_deviation));
    const ParameterGradient gamma = gradient_of(ParameterRole::gamma);
    const ParameterGradient beta = gradient_of(ParameterRole::beta);
    if (is_of_library(b)) {
      const std::int64_t channels = b.x.channels;
      const auto bytes = to_size(channels) * sizeof(float);
      std::byte* of_gamma = scratch(bytes);
      std::byte* of_beta = scratch(bytes);
      add_backward(of_library(
          {bound(Role::scale_gradient, of_gamma), bound(Role::shift_gradient, of_beta)}));
      return add_backward(
          StoreNormGradients{reinterpret_cast<float*>(of_gamma), reinterpret_cast<float*>(of_beta),
                             channels, gamma, beta},
          2);
    }
    const Tensor x = value(read(Role::x));
    const NormOutputGradient from{x, value(read(Role::dy)), norm, b.relu};
    add_backward(BatchNormParameterGradients{from, state.norm_sums, gamma, beta}, 2);
    add_backward(BatchNormDataGradient{from, state.norm_sums, value(written(Role::dx))});
  }

  // Sums and ReLUs.

  // The terms of the step; of more than a kernel takes, the first are added up before.
  [[nodiscard]] Terms terms(const steps::Images& shape, bool is_forward) {
    Terms terms{.type = options_.storage};
    for (int k = 0;; ++k) {
      const steps::Tensor* term = find(step_->reads, static_cast<int>(Role::term) + k);
      if (term == nullptr) return terms;
      if (terms.count == Terms::most) {
        Tensor sum = shaped(shape);
        sum.data = scratch(sum.bytes());
        const Sum first{terms, false, sum};
        is_forward ? add_forward(first) : add_backward(first);
        terms = {.data = {sum.data}, .count = 1, .type = options_.storage};
      }
      terms.data[terms.count++] = value(*term).data;
    }
  }
  void compute(const steps::Sum& s) {
    const bool is_forward = step_->pass == steps::Pass::forward;
    if (is_of_library(s)) {
      const LibraryStep step = of_library({});
      return is_forward ? add_forward(step) : add_backward(step);
    }
    const Terms all = terms(s.x, is_forward);
    const Sum sum{all, s.relu, value(written(Role::y))};
    is_forward ? add_forward(sum) : add_backward(sum);
  }
  void compute(const steps::ReluBackward& r) {
    if (is_of_library(r)) return add_backward(of_library({}));
    const Terms all = terms(r.x, false);
    const Tensor y = value(read(Role::y));
    add_backward(ReluDataGradient{y, all, value(written(Role::dx))});
  }

  // Pools.

  void compute(const steps::Pool& p) {
    const bool is_forward = p.pass == steps::Pass::forward;
    if (is_of_library(p)) {
      const LibraryStep step = of_library({});
      return is_forward ? add_forward(step) : add_backward(step);
    }
    if (p.kind == steps::Pool::Kind::average) return average_pool();
    if (is_forward) {
      const Tensor x = value(read(Role::x));
      const Tensor y = value(written(Role::y));
      add_forward(MaxPoolForward{windows_of(p), x, y, where(written(Role::index), y)});
    } else {
      const Tensor dy = value(read(Role::dy));
      std::int32_t* from = where(read(Role::index), dy);
      add_backward(MaxPoolDataGradient{windows_of(p), dy, from, value(written(Role::dx))});
    }
  }
  [[nodiscard]] std::int32_t* where(const steps::Tensor& tensor, const Tensor& y) {
    return reinterpret_cast<std::int32_t*>(
        address(tensor, to_size(y.elements()) * sizeof(std::int32_t)));
  }
  // One input and one output, whichever way.
  void average_pool() {
    layer_ = step_->layer;
    const Tensor from = value(step_->reads.at(0).tensor);
    const Tensor to = value(step_->writes.at(0).tensor);
    if (step_->pass == steps::Pass::forward) {
      make_windows(from, to);
      add_forward(AveragePoolForward{states_[to_size(layer_)].means, from, to});
    } else {
      add_backward(AveragePoolDataGradient{states_[to_size(layer_)].means, from, to});
    }
  }
  void make_windows(const Tensor& x, const Tensor& y) {
    std::vector<PoolWindow> rows;
    std::vector<PoolWindow> columns;
    if (const auto* pool = std::get_if<models::AveragePool>(&here().kind)) {
      rows = padded_windows({.in = x.height,
                             .out = y.height,
                             .kernel = pool->kernel.height,
                             .stride = pool->stride.height,
                             .padding = pool->padding.height});
      columns = padded_windows({.in = x.width,
                                .out = y.width,
                                .kernel = pool->kernel.width,
                                .stride = pool->stride.width,
                                .padding = pool->padding.width});
    } else {
      rows = adaptive_windows(x.height, y.height);
      columns = adaptive_windows(x.width, y.width);
    }
    states_[to_size(layer_)].means = {.rows = table(as_device_windows(rows)),
                                      .columns = table(as_device_windows(columns)),
                                      .over_rows = table(covering(rows, x.height)),
                                      .over_columns = table(covering(columns, x.width))};
  }

  // Steps that are our own in any case.

  void compute(OwnKernel kernel) {
    layer_ = step_->layer;
    const bool is_forward = step_->pass == steps::Pass::forward;
    switch (kernel) {
      case OwnKernel::load_input:
        program_.load_images = LoadImages{program_.images, network_.input().channels, program_.pass,
                                          value(step_->writes.at(0).tensor)};
        return;
      case OwnKernel::lrn:
        return is_forward ? lrn_forward() : lrn_backward();
      case OwnKernel::dropout:
        return drop_out(is_forward);
      case OwnKernel::concat:
        return concat(is_forward);
      case OwnKernel::uneven_pool:
        return average_pool();
      case OwnKernel::channel_sums:
        return add_backward(
            BiasGradient{value(step_->reads.at(0).tensor), gradient_of(ParameterRole::bias)}, 1);
      case OwnKernel::loss:
        return is_forward ? loss_forward() : loss_backward();
      case OwnKernel::flatten:
        return flatten(is_forward);
    }
  }

  void lrn_forward() {
    const std::int64_t size = std::get<models::Lrn>(here().kind).size;
    if (size % 2 == 0)
      throw InputError("layer '" + here().name + "': lrn over " + std::to_string(size) +
                           " channels has no middle",
                       "use an odd size");
    const Tensor x = value(step_->reads.at(0).tensor);
    add_forward(LrnForward{x, size / 2, value(step_->writes.at(0).tensor)});
  }
  void lrn_backward() {
    const std::int64_t half = std::get<models::Lrn>(here().kind).size / 2;
    const Tensor dy = value(step_->reads.at(0).tensor);
    const Tensor x = value(step_->reads.at(1).tensor);
    add_backward(LrnDataGradient{x, dy, half, value(step_->writes.at(0).tensor)});
  }

  // Masks are drawn again, and not kept.
  void drop_out(bool is_forward) {
    const Tensor from = value(step_->reads.at(0).tensor);
    Dropout masked{.source = from,
                   .pass = program_.pass,
                   .layer = layer_,
                   .probability = std::get<models::Dropout>(here().kind).probability,
                   .has_mask = true,
                   .target = value(step_->writes.at(0).tensor)};
    if (!is_forward) return add_backward(masked);
    add_training(masked);
    masked.has_mask = false;
    add_evaluation(masked);
  }

  void concat(bool is_forward) {
    std::int64_t channel = 0;
    std::size_t part = 0;  // of those that get a gradient
    for (std::size_t i = 0; i < here().inputs.size(); ++i) {
      const std::int64_t channels = shapes_[to_size(here().inputs[i] + 1)].channels;
      if (is_forward) {
        const Tensor x = value(step_->reads.at(i).tensor);
        add_forward(CopyChannels{.source = x,
                                 .target = value(step_->writes.at(0).tensor),
                                 .to = channel,
                                 .channels = channels});
      } else if (part < step_->writes.size() &&
                 step_->writes[part].tensor.part == static_cast<int>(i)) {
        const Tensor dy = value(step_->reads.at(0).tensor);
        add_backward(CopyChannels{.source = dy,
                                  .from = channel,
                                  .target = value(step_->writes[part++].tensor),
                                  .channels = channels});
      }
      channel += channels;
    }
  }

  void flatten(bool is_forward) {
    const Tensor from = value(step_->reads.at(0).tensor);
    const Flatten moved{
        .source = from, .back = !is_forward, .target = value(step_->writes.at(0).tensor)};
    is_forward ? add_forward(moved) : add_backward(moved);
  }

  void loss_forward() {
    const Tensor logits = value(step_->reads.at(0).tensor);
    program_.logits = keep<float>(to_size(logits.elements()));
    add_forward(
        LossForward{logits, program_.labels, program_.pass, program_.logits, program_.outcomes});
  }
  void loss_backward() {
    add_backward(LossDataGradient{program_.logits, program_.labels, program_.pass,
                                  program_.outcomes, value(step_->writes.at(0).tensor)});
  }

  const models::Network& network_;
  const TrainableNetworkOptions& options_;
  const std::vector<ParameterPlace>& places_;
  StepLibrary* library_;
  Memories& memories_;
  std::vector<Step> steps_;
  std::vector<steps::Images> shapes_;  // the network's input, then by layer
  std::vector<LayerState> states_;
  std::map<steps::Tensor, ArenaBlock> blocks_;
  std::byte* workspace_ = nullptr;
  std::vector<std::size_t> offsets_;  // of a layer's running statistics among the means
  std::size_t statistics_ = 0;        // running means of all layers
  const Step* step_ = nullptr;        // at hand, and its time
  int time_ = 0;
  int layer_ = 0;  // whose parameters and kind are asked for
  Program program_;
};

}  // namespace

Program compile(const models::Network& network, const TrainableNetworkOptions& options,
                const std::vector<ParameterPlace>& places, StepLibrary* library,
                Memories& memories) {
  return Compiler(network, options, places, library, memories).compile();
}

}  // namespace paceline::runtime::cuda
