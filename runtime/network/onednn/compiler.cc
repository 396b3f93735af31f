// Tests: tests/runtime/network_test.cc.
#include "runtime/network/onednn/compiler.h"

#include <algorithm>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/network/shape_inference.h"
#include "runtime/network/computed_kinds.h"
#include "runtime/network/onednn/layers.h"
#include "runtime/network/rounding.h"

namespace paceline::runtime::onednn {

using dnnl::memory;

Compiler::Compiler(const models::Network& network, const TrainableNetworkOptions& options,
                   const std::vector<ParameterPlace>& places, models::NumberType arithmetic)
    : network_(network), options_(options), places_(places), arithmetic_(arithmetic) {
  PACELINE_ASSERT(arithmetic == models::NumberType::fp32 || arithmetic == options.storage,
                  "arithmetic is in FP32 or in the storage type");
  const std::size_t layers = network.layers().size();
  programs_.resize(layers);
  relu_states_.assign(layers, ReluState::own);
  working_copies_.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    programs_[to_size(places[i].layer)].parameters.push_back(static_cast<int>(i));
  for (const models::Layer& layer : network.layers())
    planners_.push_back(std::visit(
        [](const auto& kind) -> Planner {
          if constexpr (is_computed<std::decay_t<decltype(kind)>>) return make_planner(kind);
          PACELINE_ASSERT(false, "check_trainable has refused this kind");
          return nullptr;
        },
        layer.kind));
  make_values();
  number_statistics();
  images_ = workshop_.foreign(plain_layout(network.input(), memory::data_type::f32));
}

Compiler::~Compiler() = default;

void Compiler::make_values() {
  const std::vector<models::Shape> shapes = models::infer_shapes(network_);
  values_.resize(shapes.size() + 1);
  values_[0].shape = network_.input();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const int layer = static_cast<int>(i);
    Value& made = value(layer);
    made.shape = shapes[i];
    made.producer = layer;
    made.needs_gradient = !programs_[i].parameters.empty();
    const bool is_tied = std::holds_alternative<models::TiedLinear>(network_.layers()[i].kind);
    for (const int input : network_.layers()[i].inputs) {
      // A tied layer reads the table of an embedding, and nothing that the embedding makes.
      if (is_tied && input != network_.layers()[i].inputs.front()) continue;
      value(input).readers.push_back(layer);
      made.needs_gradient = made.needs_gradient || value(input).needs_gradient;
    }
  }
}

void Compiler::number_statistics() {
  std::size_t channels = 0;
  for (std::size_t i = 0; i < network_.layers().size(); ++i) {
    statistics_offsets_.push_back(channels);
    if (std::holds_alternative<models::BatchNorm>(network_.layers()[i].kind))
      channels += to_size(value(static_cast<int>(i)).shape.channels);
  }
  statistics_.assign(2 * channels, 0.0F);
  std::fill(statistics_.begin() + static_cast<std::ptrdiff_t>(channels), statistics_.end(), 1.0F);
}

float* Compiler::running_mean() {
  return statistics_.data() + statistics_offsets_[to_size(layer_)];
}
float* Compiler::running_variance() {
  return running_mean() + statistics_.size() / 2;
}

CompiledNetwork Compiler::compile() {
  sweep_forward();
  sweep_backward();
  workshop_.set_time(0);
  CompiledNetwork result;
  result.engine = workshop_.engine();
  result.load_images = load_images();
  result.images = images_;
  auto [arena, scratchpad] = workshop_.place();
  result.layers = std::move(programs_);
  result.working_copies = std::move(working_copies_);
  result.gradients_in_place = std::move(gradients_in_place_);
  result.logits = logits_;
  result.statistics = std::move(statistics_);
  result.arena = std::move(arena);
  result.scratchpad = std::move(scratchpad);
  return result;
}

void Compiler::sweep_forward() {
  for (std::size_t i = 0; i < planners_.size(); ++i) {
    layer_ = static_cast<int>(i);
    workshop_.set_time(forward_time(layer_));
    planners_[i]->plan_forward(*this);
    if (sums(&models::TensorPart::sums_output)) sum_output();
  }
}

void Compiler::sweep_backward() {
  for (std::size_t i = planners_.size(); i-- > 0;) {
    layer_ = static_cast<int>(i);
    if (!output().needs_gradient) continue;
    workshop_.set_time(backward_time(layer_));
    if (sums(&models::TensorPart::sums_gradient)) sum_output_gradient();
    planners_[i]->plan_backward(*this);
  }
}

TensorPlace Compiler::tensor_place() const {
  if (options_.tensor == nullptr) return {};
  return {.rank = options_.tensor->part.rank, .ranks = options_.tensor->part.ranks};
}

bool Compiler::adds_bias() const {
  return tensor_place().rank == 0 || !sums(&models::TensorPart::sums_output);
}

const TensorShare* Compiler::loss_share() const {
  return options_.tensor != nullptr && options_.tensor->part.splits_loss ? options_.tensor
                                                                         : nullptr;
}

bool Compiler::sums(const std::vector<bool> models::TensorPart::*what) const {
  return options_.tensor != nullptr && (options_.tensor->part.*what)[to_size(layer_)];
}

void Compiler::add_sum(Steps& steps, const Memory& memory) const {
  const models::NumberType type = memory.get_desc().data_type() == memory::data_type::bf16
                                      ? models::NumberType::bf16
                                      : models::NumberType::fp32;
  steps.emplace_back([memory, type, group = &options_.tensor->group](Call& call) {
    call.stream.wait();
    group->sum({static_cast<std::byte*>(memory.get_data_handle()), type,
                memory.get_desc().get_size() / bytes_of(type), MemoryKind::host});
  });
  add_rounding(steps, memory);
}

void Compiler::sum_output() {
  const Memory made = workshop_.in_block(output().data, output().layout);
  add_sum(program().training, made);
  add_sum(program().evaluation, made);
}

void Compiler::sum_output_gradient() {
  PACELINE_ASSERT(!output().gradient_is_shared, "who shares a gradient does not change it");
  Steps& steps = program().parameter_gradients;
  add_sum(steps, output_gradient(output().layout, steps));
}

Steps Compiler::load_images() {
  Value& input = values_[0];
  choose_layout(input, plain_layout(input.shape, storage()));
  const Memory target = workshop_.in_block(input.data, input.layout);
  Steps steps{workshop_.reorder(images_, target)};
  add_rounding(steps, target);
  return steps;
}

const std::string& Compiler::layer_name() const {
  return network_.layers()[to_size(layer_)].name;
}
int Compiler::input_count() const {
  return static_cast<int>(network_.layers()[to_size(layer_)].inputs.size());
}
Value& Compiler::input_value(int index) {
  return value(network_.layers()[to_size(layer_)].inputs[to_size(index)]);
}
const Value& Compiler::input(int index) const {
  return value(network_.layers()[to_size(layer_)].inputs[to_size(index)]);
}
const Value& Compiler::output() const {
  return value(layer_);
}
LayerProgram& Compiler::program() {
  return programs_[to_size(layer_)];
}

memory::dims Compiler::dims(const models::Shape& shape) const {
  return {options_.batch, shape.channels, shape.height, shape.width};
}
memory::data_type Compiler::storage() const {
  return arithmetic_ == models::NumberType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}
Description Compiler::any_layout(const models::Shape& shape) const {
  return {dims(shape), storage(), memory::format_tag::any};
}
Description Compiler::plain_layout(const models::Shape& shape, memory::data_type type) const {
  return {dims(shape), type,
          shape.is_sequence ? memory::format_tag::nhwc : memory::format_tag::nchw};
}
Description Compiler::row_layout(const models::Shape& shape) const {
  return {dims(shape), storage(), memory::format_tag::nhwc};
}
Description Compiler::rows(const models::Shape& shape) const {
  return {{options_.batch * shape.height * shape.width, shape.channels},
          storage(),
          memory::format_tag::nc};
}

void Compiler::add_forward(const Step& step) {
  program().training.push_back(step);
  program().evaluation.push_back(step);
}

void Compiler::choose_layout(Value& value, const Description& wanted) {
  if (value.data != no_block) return;
  value.layout = wanted.data_type() == storage() ? wanted : plain_layout(value.shape, storage());
  value.data = workshop_.new_block(value.layout);
}

Description Compiler::input_layout(int index) {
  Value& from = input_value(index);
  choose_layout(from, plain_layout(from.shape, storage()));
  return from.layout;
}

Memory Compiler::forward_input(int index, const Description& wanted) {
  Value& from = input_value(index);
  choose_layout(from, wanted);
  const Memory data = workshop_.in_block(from.data, from.layout);
  if (from.layout == wanted) return data;
  const Memory reordered = workshop_.temporary(wanted);
  add_forward(workshop_.reorder(data, reordered));
  return reordered;
}

Memory Compiler::kept_input(int index, const Description& wanted, Steps& steps) {
  const Value& from = input(index);
  const Memory data = workshop_.in_block(from.data, from.layout);
  if (from.layout == wanted) return data;
  const Memory reordered = workshop_.temporary(wanted);
  steps.push_back(workshop_.reorder(data, reordered));
  return reordered;
}

bool Compiler::may_overwrite(int index) const {
  const Value& from = input(index);
  return from.producer != models::network_input && from.readers.size() == 1 && !from.is_shared &&
         !kept_.contains(from.data);
}

Memory Compiler::make_output(const Description& layout, Block block) {
  Value& made = output_value();
  made.layout = layout;
  made.data = block == no_block ? workshop_.new_block(layout) : block;
  return workshop_.in_block(made.data, layout);
}

void Compiler::make_view(const Description& layout) {
  const Value& from = input(0);
  Value& made = output_value();
  made.layout = layout;
  made.data = from.data;
  made.is_shared =
      from.is_shared || from.readers.size() > 1 || from.producer == models::network_input;
}

Memory Compiler::kept_output() {
  return workshop_.in_block(output().data, output().layout);
}

void Compiler::add_rounding(Steps& steps, const Memory& memory) const {
  if (options_.storage == arithmetic_) return;
  steps.emplace_back([memory, type = options_.storage](Call&) { round_to(type, floats(memory)); });
}

void Compiler::round_output() {
  const Memory made = workshop_.in_block(output().data, output().layout);
  add_rounding(program().training, made);
  add_rounding(program().evaluation, made);
}

bool Compiler::takes_over_relu(ReluState state) {
  const Value& made = output();
  if (made.readers.size() != 1) return false;
  const auto reader = to_size(made.readers.front());
  if (!std::holds_alternative<models::Relu>(network_.layers()[reader].kind)) return false;
  relu_states_[reader] = state;
  return true;
}

ReluState Compiler::relu_state() const {
  return relu_states_[to_size(layer_)];
}

}  // namespace paceline::runtime::onednn
