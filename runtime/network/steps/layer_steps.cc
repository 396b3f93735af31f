// Tests: tests/runtime/steps/layer_steps_test.cc.
#include "runtime/network/steps/layer_steps.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/network/shape_inference.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime::steps {
namespace {

using models::Shape;
using Kind = Tensor::Kind;

// Channels of the network's input are filled up to a multiple of this.
constexpr std::int64_t input_channel_multiple = 4;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

int number(Role role) {
  return static_cast<int>(role);
}
int term(std::size_t i) {
  return number(Role::term) + static_cast<int>(i);
}

class StepMaker {
 public:
  StepMaker(const models::Network& network, int batch)
      : network_(network), batch_(batch), shapes_(models::infer_shapes(network)) {
    const std::size_t count = network.layers().size();
    readers_.resize(count);
    needs_gradient_.resize(count);
    is_view_.resize(count);
    end_.resize(count);
    head_.assign(count, -1);
    terms_.resize(count);
    for (int i = 0; i < size(); ++i) {
      end_[to_size(i)] = i;
      needs_gradient_[to_size(i)] = has_parameters(i);
      for (const int input : layer(i).inputs) {
        if (input == models::network_input) continue;
        readers_[to_size(input)].push_back(i);
        if (needs_gradient_[to_size(input)]) needs_gradient_[to_size(i)] = true;
      }
    }
    for (int i = size() - 1; i >= 0; --i) is_view_[to_size(i)] = is_view(i);
    for (int i = 0; i < size(); ++i) fuse(i);
  }

  // The shape in which each value stands in memory.
  std::vector<Images> stored() {
    std::vector<Images> made = {images(models::network_input)};
    for (int i = 0; i < size(); ++i) {
      made.push_back(is_view_[to_size(i)] ? made[to_size(layer(i).inputs[0] + 1)] : images(i));
    }
    return made;
  }
  std::vector<Step> make() {
    add(models::network_input, Pass::forward, OwnKernel::load_input, {},
        {{0, {Kind::data, models::network_input, 0}}});
    for (int i = 0; i < size(); ++i) {
      if (place_of_group(i) == i) forward(i);
    }
    for (int i = size() - 1; i >= 0; --i) {
      if (needs_gradient_[to_size(i)]) backward(i);
    }
    return std::move(steps_);
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(network_.layers().size()); }
  [[nodiscard]] const models::Layer& layer(int i) const { return network_.layers()[to_size(i)]; }
  template <class K>
  [[nodiscard]] const K* as(int i) const {
    return std::get_if<K>(&layer(i).kind);
  }
  [[nodiscard]] bool needs_gradient(int value) const {
    return value != models::network_input && needs_gradient_[to_size(value)];
  }

  // Shapes.
  [[nodiscard]] bool pads_input() const {
    for (int i = 0; i < size(); ++i) {
      for (const int input : layer(i).inputs) {
        if (input != models::network_input) continue;
        const auto* convolution = as<models::Convolution>(i);
        if (convolution == nullptr || convolution->groups != 1) return false;
      }
    }
    return true;
  }
  [[nodiscard]] Images images(int value) const {
    if (value != models::network_input) return images(shapes_[to_size(value)]);
    Images input = images(network_.input());
    if (pads_input())
      input.channels = (input.channels + input_channel_multiple - 1) / input_channel_multiple *
                       input_channel_multiple;
    return input;
  }
  [[nodiscard]] Images images(const Shape& shape) const {
    return {batch_, shape.channels, shape.height, shape.width};
  }
  [[nodiscard]] Images as_vector(int value) const {
    const Images all = images(value);
    return {all.batch, all.channels * all.height * all.width, 1, 1};
  }

  // A flattened image is a view of the image, which stands in NHWC order, where no reader asks for
  // the order of a vector: fully connected layers have weights in that order, and layers that take
  // each element by itself hand it on.
  [[nodiscard]] bool is_view(int i) const {
    const bool flattens = as<models::Flatten>(i) != nullptr;
    if (flattens && has_one_pixel(layer(i).inputs[0])) return true;
    if (!flattens && as<models::Relu>(i) == nullptr && as<models::Dropout>(i) == nullptr)
      return false;
    const auto& readers = readers_[to_size(i)];
    return std::all_of(readers.begin(), readers.end(), [this](int reader) {
      return as<models::FullyConnected>(reader) != nullptr || is_view_[to_size(reader)];
    });
  }
  [[nodiscard]] bool has_one_pixel(int value) const {
    const Shape& shape =
        value == models::network_input ? network_.input() : shapes_[to_size(value)];
    return shape.is_image && shape.height * shape.width == 1;
  }
  [[nodiscard]] bool is_viewed(int value) const {
    return value != models::network_input && as<models::Flatten>(value) != nullptr &&
           is_view_[to_size(value)];
  }

  // Tensors.
  [[nodiscard]] Tensor data(int value) const {
    while (is_viewed(value)) value = layer(value).inputs[0];
    return {Kind::data, value, 0};
  }
  [[nodiscard]] static Tensor weight(int i) { return {Kind::parameter, i, 0}; }
  [[nodiscard]] static Tensor bias(int i) { return {Kind::parameter, i, 1}; }
  [[nodiscard]] static Tensor weight_gradient(int i) { return {Kind::parameter_gradient, i, 0}; }
  [[nodiscard]] static Tensor bias_gradient(int i) { return {Kind::parameter_gradient, i, 1}; }
  [[nodiscard]] static Tensor part(int i, int input = 0) { return {Kind::gradient_part, i, input}; }

  // Which layers are computed together. end_ of a layer is the last of its group, and head_ of a
  // ReLU that ends a group the layer that does its work.
  [[nodiscard]] int only_reader(int i) const {
    return readers_[to_size(i)].size() == 1 ? readers_[to_size(i)][0] : -1;
  }
  [[nodiscard]] int relu_behind(int i) const {
    const int reader = only_reader(i);
    return reader >= 0 && as<models::Relu>(reader) != nullptr ? reader : -1;
  }
  void join(int head, int relu) {
    head_[to_size(relu)] = head;
    end_[to_size(head)] = relu;
  }
  void fuse(int i) {
    const int relu = relu_behind(i);
    const auto* convolution = as<models::Convolution>(i);
    const auto* full = as<models::FullyConnected>(i);
    const bool biased =
        (convolution != nullptr && convolution->bias) || (full != nullptr && full->bias);
    if (relu >= 0 && (biased || as<models::BatchNorm>(i) != nullptr)) join(i, relu);
    if (relu < 0 || as<models::Add>(i) == nullptr) return;
    // The work of the group is done where the ReLU stands, so that all inputs of the add are there.
    const auto& inputs = layer(i).inputs;
    const auto takes_add = [&](int input) {
      return input != models::network_input && as<models::BatchNorm>(input) != nullptr &&
             only_reader(input) == i;
    };
    const auto norm = std::find_if(inputs.rbegin(), inputs.rend(), takes_add);
    if (inputs.size() == 2 && norm != inputs.rend()) {
      join(*norm, relu);
      end_[to_size(i)] = relu;
    } else {
      join(i, relu);
    }
  }
  // The add between a head and the ReLU of its group; -1 if there is none.
  [[nodiscard]] int add_before(int relu) const {
    const int input = layer(relu).inputs[0];
    return as<models::Add>(input) != nullptr && end_[to_size(input)] == relu ? input : -1;
  }

  void add(int i, Pass pass, std::variant<Operation, OwnKernel> work, std::vector<Operand> reads,
           std::vector<Operand> writes) {
    steps_.push_back({i, pass, std::move(work), std::move(reads), std::move(writes)});
  }

  // The layer at whose place in the order a group of layers is computed: its first, or where an add
  // is among them its last, so that all inputs of the add are there. -1 for its other layers.
  [[nodiscard]] int place_of_group(int i) const {
    const int head = head_[to_size(i)];
    if (head >= 0) return add_before(i) >= 0 ? i : -1;
    return end_[to_size(i)] == i || add_before(end_[to_size(i)]) < 0 ? i : -1;
  }
  // Forward: the group that is computed at the place of layer i.
  void forward(int i) {
    const int head = head_[to_size(i)] >= 0 ? head_[to_size(i)] : i;
    const int end = end_[to_size(head)];
    std::visit(
        Overloaded{
            [&](const models::Convolution& c) {
              forward_product(head, end, product(head, c), c.bias);
            },
            [&](const models::FullyConnected& f) {
              forward_product(head, end, product(head), f.bias);
            },
            [&](const models::BatchNorm&) { forward_norm(head, end); },
            [&](const models::Relu&) { forward_sum(head, end, layer(head).inputs); },
            [&](const models::Add&) { forward_sum(head, end, layer(head).inputs); },
            [&](const models::MaxPool&) { forward_pool(i); },
            [&](const models::AveragePool&) { forward_pool(i); },
            [&](const models::AdaptiveAveragePool&) { forward_pool(i); },
            [&](const models::Lrn&) { forward_own(i, OwnKernel::lrn, true); },
            [&](const models::Dropout&) { forward_own(i, OwnKernel::dropout, true); },
            [&](const models::Concat&) { forward_own(i, OwnKernel::concat, false); },
            [&](const models::Flatten&) {
              if (!is_viewed(i)) forward_own(i, OwnKernel::flatten, false);
            },
            [&](const models::SoftmaxCrossEntropy&) { forward_own(i, OwnKernel::loss, true); },
            [](const auto&) {},  // check_trainable_on_gpus refuses the rest
        },
        layer(head).kind);
  }

  [[nodiscard]] Convolution product(int i, const models::Convolution& c) const {
    return {.x = images(layer(i).inputs[0]),
            .y = images(i),
            .kernel = c.kernel,
            .stride = c.stride,
            .padding = c.padding,
            .dilation = c.dilation,
            .groups = c.groups};
  }
  [[nodiscard]] Convolution product(int i) const {
    return {.x = as_vector(layer(i).inputs[0]), .y = images(i), .kernel = models::square(1)};
  }
  void forward_product(int i, int end, Convolution c, bool biased) {
    std::vector<Operand> reads = {{number(Role::x), data(layer(i).inputs[0])},
                                  {number(Role::w), weight(i)}};
    if (biased) reads.push_back({number(Role::bias), bias(i)});
    c.bias = biased;
    c.relu = end != i;
    add(i, Pass::forward, Operation{c}, std::move(reads), {{number(Role::y), data(end)}});
  }

  void forward_norm(int i, int end) {
    const int sum = end == i ? -1 : add_before(end);
    std::vector<Operand> reads = {{number(Role::x), data(layer(i).inputs[0])},
                                  {number(Role::scale), weight(i)},
                                  {number(Role::shift), bias(i)},
                                  {number(Role::running_mean), {Kind::statistics, i, 0}},
                                  {number(Role::running_variance), {Kind::statistics, i, 1}}};
    if (sum >= 0) {
      const auto& inputs = layer(sum).inputs;
      reads.push_back({number(Role::residual), data(inputs[0] == i ? inputs[1] : inputs[0])});
    }
    add(sum >= 0 ? end : i, Pass::forward,
        Operation{BatchNorm{Pass::forward, images(i), sum >= 0, end != i}}, std::move(reads),
        {{number(Role::y), data(end)},
         {number(Role::mean), {Kind::kept, i, 0}},
         {number(Role::inverse_deviation), {Kind::kept, i, 1}},
         {number(Role::next_running_mean), {Kind::statistics, i, 0}},
         {number(Role::next_running_variance), {Kind::statistics, i, 1}}});
  }

  void forward_sum(int i, int end, const std::vector<int>& inputs) {
    std::vector<Operand> reads;
    for (const int input : inputs) reads.push_back({term(reads.size()), data(input)});
    const bool relu = as<models::Relu>(end) != nullptr;
    add(end, Pass::forward, Operation{Sum{images(i), static_cast<int>(inputs.size()), relu}},
        std::move(reads), {{number(Role::y), data(end)}});
  }

  // The pool as cuDNN has it; nothing where its windows do not divide alike.
  [[nodiscard]] bool pool_of(int i, Pool& pool) const {
    pool.x = images(layer(i).inputs[0]);
    pool.y = images(i);
    const auto take = [&pool](const models::Pool& p) {
      pool.kernel = p.kernel;
      pool.stride = p.stride;
      pool.padding = p.padding;
    };
    if (const auto* largest = as<models::MaxPool>(i)) {
      pool.kind = Pool::Kind::max;
      take(*largest);
      return true;
    }
    pool.kind = Pool::Kind::average;
    if (const auto* mean = as<models::AveragePool>(i)) {
      take(*mean);
      const auto fits = [](std::int64_t in, std::int64_t out, std::int64_t kernel,
                           std::int64_t stride, std::int64_t padding) {
        return (out - 1) * stride + kernel <= in + 2 * padding;
      };
      return fits(pool.x.height, pool.y.height, pool.kernel.height, pool.stride.height,
                  pool.padding.height) &&
             fits(pool.x.width, pool.y.width, pool.kernel.width, pool.stride.width,
                  pool.padding.width);
    }
    if (pool.x.height % pool.y.height != 0 || pool.x.width % pool.y.width != 0) return false;
    pool.kernel = pool.stride = {pool.x.height / pool.y.height, pool.x.width / pool.y.width};
    return true;
  }
  void forward_pool(int i) {
    Pool pool;
    if (!pool_of(i, pool)) return forward_own(i, OwnKernel::uneven_pool, false);
    std::vector<Operand> writes = {{number(Role::y), data(i)}};
    if (pool.kind == Pool::Kind::max) writes.push_back({number(Role::index), {Kind::kept, i, 0}});
    add(i, Pass::forward, Operation{pool}, {{number(Role::x), data(layer(i).inputs[0])}},
        std::move(writes));
  }

  void forward_own(int i, OwnKernel kernel, bool keeps) {
    std::vector<Operand> reads;
    for (const int input : layer(i).inputs) reads.push_back({0, data(input)});
    std::vector<Operand> writes = {{0, data(i)}};
    if (keeps) writes.push_back({0, {Kind::kept, i, 0}});
    add(i, Pass::forward, kernel, std::move(reads), std::move(writes));
  }

  // Backward. terms_ of a layer are the tensors whose sum is the gradient of its output.
  void give(int i, int input, const Tensor& gradient) {
    const int value = layer(i).inputs[to_size(input)];
    if (needs_gradient(value)) terms_[to_size(value)].push_back(gradient);
  }
  [[nodiscard]] std::vector<Operand> term_operands(int i) const {
    std::vector<Operand> operands;
    for (const Tensor& tensor : terms_[to_size(i)])
      operands.push_back({term(operands.size()), tensor});
    return operands;
  }
  // The gradient of the layer's output in one tensor.
  Tensor gradient(int i) {
    PACELINE_ASSERT(!terms_[to_size(i)].empty(), "a layer that is read has a gradient");
    if (terms_[to_size(i)].size() == 1) return terms_[to_size(i)][0];
    const Tensor whole{Kind::gradient, i, 0};
    add(i, Pass::backward,
        Operation{Sum{images(i), static_cast<int>(terms_[to_size(i)].size()), false}},
        term_operands(i), {{number(Role::y), whole}});
    terms_[to_size(i)] = {whole};
    return whole;
  }
  // The gradient of what the ReLU reads, written into `target`.
  void backward_relu(int relu, const Tensor& target) {
    std::vector<Operand> reads = term_operands(relu);
    const int terms = static_cast<int>(reads.size());
    reads.push_back({number(Role::y), data(relu)});
    add(relu, Pass::backward, Operation{ReluBackward{images(relu), terms}}, std::move(reads),
        {{number(Role::dx), target}});
  }

  void backward(int i) {
    std::visit(
        Overloaded{
            [&](const models::Convolution& c) { backward_product(i, product(i, c), c.bias); },
            [&](const models::FullyConnected& f) { backward_product(i, product(i), f.bias); },
            [&](const models::BatchNorm&) { backward_norm(i); },
            [&](const models::Relu&) { backward_group(i); },
            [&](const models::Add&) {
              if (end_[to_size(i)] == i) give_all(i, gradient(i));
            },
            [&](const models::MaxPool&) { backward_pool(i); },
            [&](const models::AveragePool&) { backward_pool(i); },
            [&](const models::AdaptiveAveragePool&) { backward_pool(i); },
            [&](const models::Lrn&) { backward_own(i, OwnKernel::lrn); },
            [&](const models::Dropout&) { backward_own(i, OwnKernel::dropout); },
            [&](const models::Concat&) { backward_own(i, OwnKernel::concat); },
            [&](const models::Flatten&) {
              if (is_viewed(i)) return give(i, 0, gradient(i));
              backward_own(i, OwnKernel::flatten);
            },
            [&](const models::SoftmaxCrossEntropy&) { backward_own(i, OwnKernel::loss); },
            [](const auto&) {},
        },
        layer(i).kind);
  }

  void give_all(int i, const Tensor& gradient) {
    for (std::size_t k = 0; k < layer(i).inputs.size(); ++k) give(i, static_cast<int>(k), gradient);
  }

  void backward_group(int relu) {
    const int head = head_[to_size(relu)];
    if (head < 0) {
      backward_relu(relu, part(relu));
      give(relu, 0, part(relu));
      return;
    }
    const int sum = add_before(relu);
    if (sum >= 0) {
      const Tensor target{Kind::gradient, sum, 0};
      backward_relu(relu, target);
      give_all(sum, target);
    } else if (as<models::BatchNorm>(head) != nullptr) {
      give(relu, 0, gradient(relu));
    } else {
      const Tensor target{Kind::gradient, head, 0};
      backward_relu(relu, target);
      give(relu, 0, target);
    }
  }

  void backward_product(int i, Convolution c, bool biased) {
    const int input = layer(i).inputs[0];
    const Tensor dy = gradient(i);
    if (biased) add(i, Pass::backward, OwnKernel::channel_sums, {{0, dy}}, {{0, bias_gradient(i)}});
    c.product = Convolution::Product::filter_gradient;
    add(i, Pass::backward, Operation{c}, {{number(Role::x), data(input)}, {number(Role::dy), dy}},
        {{number(Role::dw), weight_gradient(i)}});
    if (!needs_gradient(input)) return;
    c.product = Convolution::Product::data_gradient;
    add(i, Pass::backward, Operation{c}, {{number(Role::w), weight(i)}, {number(Role::dy), dy}},
        {{number(Role::dx), part(i)}});
    give(i, 0, part(i));
  }

  void backward_norm(int i) {
    const int end = end_[to_size(i)];
    const bool relu = end != i && add_before(end) < 0;
    std::vector<Operand> reads = {{number(Role::x), data(layer(i).inputs[0])},
                                  {number(Role::dy), gradient(i)},
                                  {number(Role::mean), {Kind::kept, i, 0}},
                                  {number(Role::inverse_deviation), {Kind::kept, i, 1}},
                                  {number(Role::scale), weight(i)}};
    if (relu) reads.push_back({number(Role::shift), bias(i)});
    add(i, Pass::backward, Operation{BatchNorm{Pass::backward, images(i), false, relu}},
        std::move(reads),
        {{number(Role::dx), part(i)},
         {number(Role::scale_gradient), weight_gradient(i)},
         {number(Role::shift_gradient), bias_gradient(i)}});
    give(i, 0, part(i));
  }

  void backward_pool(int i) {
    Pool pool;
    if (!pool_of(i, pool)) return backward_own(i, OwnKernel::uneven_pool);
    pool.pass = Pass::backward;
    std::vector<Operand> reads = {{number(Role::dy), gradient(i)}};
    if (pool.kind == Pool::Kind::max) reads.push_back({number(Role::index), {Kind::kept, i, 0}});
    add(i, Pass::backward, Operation{pool}, std::move(reads), {{number(Role::dx), part(i)}});
    give(i, 0, part(i));
  }

  void backward_own(int i, OwnKernel kernel) {
    std::vector<Operand> reads;
    if (kernel != OwnKernel::loss) reads.push_back({0, gradient(i)});
    if (kernel == OwnKernel::lrn) reads.push_back({0, data(layer(i).inputs[0])});
    if (kernel == OwnKernel::lrn || kernel == OwnKernel::dropout || kernel == OwnKernel::loss)
      reads.push_back({0, {Kind::kept, i, 0}});
    std::vector<Operand> writes;
    for (std::size_t k = 0; k < layer(i).inputs.size(); ++k) {
      if (!needs_gradient(layer(i).inputs[k])) continue;
      writes.push_back({0, part(i, static_cast<int>(k))});
      give(i, static_cast<int>(k), writes.back().tensor);
    }
    add(i, Pass::backward, kernel, std::move(reads), std::move(writes));
  }

  [[nodiscard]] bool has_parameters(int i) const {
    return as<models::Convolution>(i) != nullptr || as<models::FullyConnected>(i) != nullptr ||
           as<models::BatchNorm>(i) != nullptr;
  }

  const models::Network& network_;
  std::int64_t batch_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> needs_gradient_;
  std::vector<bool> is_view_;  // of flattened images, and of what is computed from them
  std::vector<int> end_;
  std::vector<int> head_;
  std::vector<std::vector<Tensor>> terms_;
  std::vector<Step> steps_;
};

}  // namespace

std::string_view name(OwnKernel kernel) {
  constexpr std::array<std::string_view, 8> names = {
      "load-input", "lrn", "dropout", "concat", "uneven-pool", "channel-sums", "loss", "flatten"};
  return names[to_size(kernel)];
}

std::vector<Step> layer_steps(const models::Network& network, int batch) {
  if (batch < 1) throw InputError("a batch of " + std::to_string(batch), "use at least one sample");
  check_trainable_on_gpus(network);
  return StepMaker(network, batch).make();
}

std::vector<Operation> operations_of(const std::vector<Step>& steps) {
  std::vector<Operation> operations;
  for (const Step& step : steps)
    if (const auto* operation = std::get_if<Operation>(&step.work))
      operations.push_back(*operation);
  return operations;
}

std::vector<Images> stored_shapes(const models::Network& network, int batch) {
  return StepMaker(network, batch).stored();
}

}  // namespace paceline::runtime::steps
