// Parameters and gradients of the network that is being compiled.
// Tests: tests/runtime/network_test.cc.
#include <algorithm>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"
#include "runtime/network/rounding.h"

namespace paceline::runtime::onednn {
namespace {

bool is_rounded(ParameterRole role) {
  return role == ParameterRole::weight || role == ParameterRole::bias;
}

}  // namespace

int Compiler::parameter(int layer, ParameterRole role) const {
  for (const int index : programs_[to_size(layer)].parameters)
    if (places_[to_size(index)].role == role) return index;
  PACELINE_ASSERT(false, "the layer has a parameter of this role");
  return -1;
}

bool Compiler::is_tied() const {
  return std::ranges::any_of(network_.layers(), [&](const models::Layer& other) {
    return std::holds_alternative<models::TiedLinear>(other.kind) && other.inputs.back() == layer_;
  });
}

Memory Compiler::working_copy(int parameter, const Description& plain, const Description& wanted) {
  WorkingCopies& copies = working_copies_[to_size(parameter)];
  if (!copies.source) copies.source = workshop_.foreign(plain);
  for (const Memory& target : copies.targets)
    if (target.get_desc() == wanted) return target;
  const Memory target = workshop_.persistent(wanted);
  copies.targets.push_back(target);
  copies.steps.push_back(workshop_.reorder(copies.source, target));
  if (is_rounded(place(parameter).role)) add_rounding(copies.steps, target);
  return target;
}

Memory Compiler::parameter_gradient(int parameter, const Description& plain,
                                    const Description& wanted) {
  if (wanted != plain) return workshop_.temporary(wanted);
  gradients_in_place_.emplace_back(parameter, workshop_.foreign(plain));
  return gradients_in_place_.back().second;
}

void Compiler::bring(int parameter, const Description& plain, const Memory& written) {
  if (written.get_desc() == plain) return;
  gradients_in_place_.emplace_back(parameter, workshop_.foreign(plain));
  program().parameter_gradients.push_back(
      workshop_.reorder(written, gradients_in_place_.back().second));
}

void Compiler::deliver(ParameterRole role, const Description& plain, const Memory& written) {
  const int index = parameter(role);
  Steps& steps = program().parameter_gradients;
  bring(index, plain, written);
  if (options_.storage != models::NumberType::fp16 || !is_rounded(role)) return;
  const auto elements = to_size(places_[to_size(index)].elements);
  steps.emplace_back([index, elements](Call& call) {
    round_to(models::NumberType::fp16, {call.gradients[to_size(index)], elements});
  });
}

Memory Compiler::output_gradient(const Description& wanted, Steps& steps) {
  const Value& made = output();
  PACELINE_ASSERT(made.gradient != no_block, "a reader has delivered the gradient of the output");
  const Memory gradient = workshop_.in_block(made.gradient, made.layout);
  if (made.layout == wanted) return gradient;
  const Memory reordered = workshop_.temporary(wanted);
  steps.push_back(workshop_.reorder(gradient, reordered));
  return reordered;
}

GradientPart Compiler::gradient_part(int index, const Description& wanted) {
  using Way = GradientPart::Way;
  Value& to = input_value(index);
  if (to.gradient != no_block) return {index, workshop_.temporary(wanted), Way::to_add};
  if (to.layout != wanted) return {index, workshop_.temporary(wanted), Way::to_copy};
  to.gradient = workshop_.new_block(wanted);
  return {index, workshop_.in_block(to.gradient, wanted), Way::placed};
}

GradientPart Compiler::gradient_part_in_place(int index, const Description& wanted) {
  Value& to = input_value(index);
  const Value& made = output();
  const bool possible = to.gradient == no_block && !made.gradient_is_shared &&
                        to.layout == wanted && made.layout == wanted;
  if (!possible) return gradient_part(index, wanted);
  to.gradient = made.gradient;
  return {index, workshop_.in_block(to.gradient, wanted), GradientPart::Way::placed};
}

void Compiler::deliver(const GradientPart& part) {
  Steps& steps = program().data_gradients;
  add_rounding(steps, part.memory);
  Value& to = input_value(part.input);
  if (part.way == GradientPart::Way::to_copy) copy_gradient(to, part.memory);
  if (part.way == GradientPart::Way::to_add) add_to_gradient(to, part.memory);
}

void Compiler::copy_gradient(Value& to, const Memory& from) {
  to.gradient = workshop_.new_block(to.layout);
  program().data_gradients.push_back(
      workshop_.reorder(from, workshop_.in_block(to.gradient, to.layout)));
}

void Compiler::add_to_gradient(Value& to, const Memory& part) {
  PACELINE_ASSERT(!to.gradient_is_shared, "who shares a gradient does not change it");
  Steps& steps = program().data_gradients;
  Memory addend = part;
  if (part.get_desc() != to.layout) {
    addend = workshop_.temporary(to.layout);
    steps.push_back(workshop_.reorder(part, addend));
  }
  const Memory sum = workshop_.in_block(to.gradient, to.layout);
  steps.push_back(workshop_.sum(sum, addend));
  add_rounding(steps, sum);
}

int Compiler::next_change(const Value& of) const {
  for (auto reader = of.readers.rbegin(); reader != of.readers.rend(); ++reader)
    if (*reader < layer_) return backward_time(*reader);
  return last_read(of);
}

// The inputs that can take the output's gradient as their own without a copy. The input that
// changes it last owns it and stands first; others share it if they are done with it by then.
std::vector<int> Compiler::sharers_of_gradient() {
  const Value& made = output();
  std::vector<int> candidates;
  if (made.gradient_is_shared) return candidates;
  for (int i = 0; i < input_count(); ++i) {
    const Value& to = input(i);
    const bool read_once = std::count(to.readers.begin(), to.readers.end(), layer_) == 1;
    if (to.needs_gradient && to.gradient == no_block && to.layout == made.layout && read_once)
      candidates.push_back(i);
  }
  if (candidates.empty()) return candidates;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int a, int b) { return next_change(input(a)) > next_change(input(b)); });
  const int owner_changes_it = next_change(input(candidates.front()));
  const auto cannot_share = [&](int i) {
    const Value& to = input(i);
    return next_change(to) != last_read(to) || last_read(to) >= owner_changes_it;
  };
  candidates.erase(std::remove_if(candidates.begin() + 1, candidates.end(), cannot_share),
                   candidates.end());
  return candidates;
}

void Compiler::pass_gradient_on() {
  const Value& made = output();
  const std::vector<int> sharers = sharers_of_gradient();
  for (int i = 0; i < input_count(); ++i) {
    Value& to = input_value(i);
    if (!to.needs_gradient) continue;
    const auto sharer = std::find(sharers.begin(), sharers.end(), i);
    if (sharer != sharers.end()) {
      to.gradient = made.gradient;
      to.gradient_is_shared = sharer != sharers.begin();
      continue;
    }
    const Memory gradient = workshop_.in_block(made.gradient, made.layout);
    if (to.gradient == no_block)
      copy_gradient(to, gradient);
    else
      add_to_gradient(to, gradient);
  }
}

void Compiler::pass_gradient_through_view() {
  const Value& made = output();
  Value& to = input_value(0);
  if (!to.needs_gradient) return;
  if (to.gradient == no_block && !made.gradient_is_shared) {
    to.gradient = made.gradient;
    return;
  }
  const Memory gradient = workshop_.in_block(made.gradient, to.layout);
  if (to.gradient == no_block)
    copy_gradient(to, gradient);
  else
    add_to_gradient(to, gradient);
}

}  // namespace paceline::runtime::onednn
