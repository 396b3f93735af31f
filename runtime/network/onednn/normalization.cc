// Batch norm, layer norm and local response normalisation. Tests: tests/runtime/network_layers_test.cc, and of
// layer norm network_sequences_test.cc.
#include <cstddef>
#include <optional>

#include "models/base/error.h"
#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;

Description fp32_vector(std::int64_t size) {
  return {{size}, memory::data_type::f32, memory::format_tag::x};
}

// The running statistics take in those of a batch; the variance as that of a sample (n - 1).
struct RunningStatistics {
  Memory mean;
  Memory variance;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  std::int64_t channels = 0;
  double momentum = 0;
  double samples = 1;  // of each channel

  void operator()(Call&) const {
    const auto* batch_mean = static_cast<const float*>(mean.get_data_handle());
    const auto* batch_variance = static_cast<const float*>(variance.get_data_handle());
    const double unbiased = samples > 1 ? samples / (samples - 1) : 1;
    for (std::int64_t c = 0; c < channels; ++c) {
      running_mean[c] = mixed(running_mean[c], batch_mean[c]);
      running_variance[c] = mixed(running_variance[c], batch_variance[c] * unbiased);
    }
  }
  [[nodiscard]] float mixed(double running, double of_batch) const {
    return static_cast<float>((1 - momentum) * running + momentum * of_batch);
  }
};

class BatchNormPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    channels_ = fp32_vector(compiler.input(0).shape.channels);
    flags_ = normalization_flags::use_scale | normalization_flags::use_shift;
    if (compiler.takes_over_relu(ReluState::done)) flags_ |= normalization_flags::fuse_norm_relu;
    const Description layout = compiler.input_layout(0);
    const auto epsilon = static_cast<float>(compiler.options().batch_norm_epsilon);
    using dnnl::batch_normalization_forward;
    forward_.emplace(
        batch_normalization_forward::desc(prop_kind::forward_training, layout, epsilon, flags_),
        Workshop::attributes(), compiler.engine());
    const batch_normalization_forward::primitive_desc evaluation(
        {prop_kind::forward_inference, layout, epsilon,
         flags_ | normalization_flags::use_global_stats},
        Workshop::attributes(), compiler.engine());
    compiler.keep_input(0);
    const Step::Arguments common{
        {DNNL_ARG_SRC, compiler.forward_input(0, layout)},
        {DNNL_ARG_SCALE, compiler.working_copy(ParameterRole::gamma, channels_, channels_)},
        {DNNL_ARG_SHIFT, compiler.working_copy(ParameterRole::beta, channels_, channels_)},
        {DNNL_ARG_DST, compiler.make_output(layout)}};
    add_training(compiler, common);
    add_evaluation(compiler, evaluation, common);
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    const Description layout = compiler.output().layout;
    using dnnl::batch_normalization_backward;
    const batch_normalization_backward::primitive_desc description(
        {prop_kind::backward, layout, layout,
         static_cast<float>(compiler.options().batch_norm_epsilon), flags_},
        Workshop::attributes(), compiler.engine(), *forward_);
    // One primitive makes the gradients of gamma, beta and the data. It stands among the steps of
    // the parameters; only the delivery of the data's gradient comes after them.
    Steps& steps = compiler.program().parameter_gradients;
    const Memory gradient = compiler.output_gradient(layout, steps);
    const bool passes_on = compiler.input(0).needs_gradient;
    const GradientPart part = passes_on ? compiler.gradient_part_in_place(0, layout)
                                        : GradientPart{0, compiler.workshop().temporary(layout),
                                                       GradientPart::Way::placed};
    const Memory gamma = compiler.parameter_gradient(ParameterRole::gamma, channels_, channels_);
    const Memory beta = compiler.parameter_gradient(ParameterRole::beta, channels_, channels_);
    Step::Arguments arguments{
        {DNNL_ARG_SRC, compiler.kept_input(0, layout, steps)},
        {DNNL_ARG_MEAN, mean_},
        {DNNL_ARG_VARIANCE, variance_},
        {DNNL_ARG_DIFF_DST, gradient},
        {DNNL_ARG_SCALE, compiler.working_copy(ParameterRole::gamma, channels_, channels_)},
        {DNNL_ARG_SHIFT, compiler.working_copy(ParameterRole::beta, channels_, channels_)},
        {DNNL_ARG_DIFF_SRC, part.memory},
        {DNNL_ARG_DIFF_SCALE, gamma},
        {DNNL_ARG_DIFF_SHIFT, beta}};
    if (workspace_ != no_block)
      arguments.emplace(DNNL_ARG_WORKSPACE,
                        compiler.workshop().in_block(workspace_, forward_->workspace_desc()));
    steps.push_back(compiler.workshop().step(description, arguments));
    if (passes_on) compiler.deliver(part);
  }

 private:
  void add_training(Compiler& compiler, Step::Arguments arguments) {
    mean_ = compiler.workshop().persistent(channels_);
    variance_ = compiler.workshop().persistent(channels_);
    arguments.emplace(DNNL_ARG_MEAN, mean_);
    arguments.emplace(DNNL_ARG_VARIANCE, variance_);
    const Description workspace = forward_->workspace_desc();
    if (workspace.get_size() > 0) {
      workspace_ = compiler.workshop().new_block(workspace);
      arguments.emplace(DNNL_ARG_WORKSPACE, compiler.workshop().in_block(workspace_, workspace));
    }
    const models::Shape& shape = compiler.input(0).shape;
    Steps& steps = compiler.program().training;
    steps.push_back(compiler.workshop().step(*forward_, arguments));
    steps.emplace_back(RunningStatistics{
        .mean = mean_,
        .variance = variance_,
        .running_mean = compiler.running_mean(),
        .running_variance = compiler.running_variance(),
        .channels = shape.channels,
        .momentum = compiler.options().batch_norm_momentum,
        .samples = static_cast<double>(compiler.options().batch * shape.height * shape.width)});
  }

  void add_evaluation(Compiler& compiler,
                      const dnnl::batch_normalization_forward::primitive_desc& description,
                      Step::Arguments arguments) {
    arguments.emplace(DNNL_ARG_MEAN, Memory(channels_, compiler.engine(), compiler.running_mean()));
    arguments.emplace(DNNL_ARG_VARIANCE,
                      Memory(channels_, compiler.engine(), compiler.running_variance()));
    compiler.program().evaluation.push_back(compiler.workshop().step(description, arguments));
  }

  Description channels_;
  normalization_flags flags_ = normalization_flags::none;
  std::optional<dnnl::batch_normalization_forward::primitive_desc> forward_;
  Memory mean_;
  Memory variance_;
  Block workspace_ = no_block;
};

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta in each row (Ba 2016), with PyTorch's epsilon.
class LayerNormPlanner : public LayerPlanner {
 public:
  explicit LayerNormPlanner(const models::LayerNorm& layer) {
    if (layer.bias) flags_ |= normalization_flags::use_shift;
  }

  void plan_forward(Compiler& compiler) override {
    const models::Shape& shape = compiler.input(0).shape;
    rows_ = compiler.rows(shape);
    features_ = fp32_vector(shape.channels);
    using dnnl::layer_normalization_forward;
    forward_.emplace(
        layer_normalization_forward::desc(prop_kind::forward_training, rows_, epsilon, flags_),
        Workshop::attributes(), compiler.engine());
    Workshop& workshop = compiler.workshop();
    mean_ = workshop.persistent(forward_->mean_desc());
    variance_ = workshop.persistent(forward_->variance_desc());
    const Memory data = compiler.forward_input(0, compiler.row_layout(shape));
    compiler.keep_input(0);
    const Memory made = compiler.make_output(compiler.row_layout(shape));
    Step::Arguments arguments{{DNNL_ARG_SRC, workshop.same_bytes(data, rows_)},
                              {DNNL_ARG_MEAN, mean_},
                              {DNNL_ARG_VARIANCE, variance_},
                              {DNNL_ARG_DST, workshop.same_bytes(made, rows_)}};
    add_parameters(compiler, arguments);
    compiler.add_forward(workshop.step(*forward_, arguments));
    compiler.round_output();
  }

  // One primitive makes all gradients, as that of batch norm.
  void plan_backward(Compiler& compiler) override {
    using dnnl::layer_normalization_backward;
    const layer_normalization_backward::primitive_desc description(
        {prop_kind::backward, rows_, rows_, epsilon, flags_}, Workshop::attributes(),
        compiler.engine(), *forward_);
    Workshop& workshop = compiler.workshop();
    Steps& steps = compiler.program().parameter_gradients;
    const Description layout = compiler.row_layout(compiler.input(0).shape);
    const Memory gradient = compiler.output_gradient(layout, steps);
    const bool passes_on = compiler.input(0).needs_gradient;
    const GradientPart part =
        passes_on ? compiler.gradient_part(0, layout)
                  : GradientPart{0, workshop.temporary(layout), GradientPart::Way::placed};
    const auto of = [&](ParameterRole role) {
      return compiler.parameter_gradient(role, features_, features_);
    };
    Step::Arguments arguments{
        {DNNL_ARG_SRC, workshop.same_bytes(compiler.kept_input(0, layout, steps), rows_)},
        {DNNL_ARG_MEAN, mean_},
        {DNNL_ARG_VARIANCE, variance_},
        {DNNL_ARG_DIFF_DST, workshop.same_bytes(gradient, rows_)},
        {DNNL_ARG_DIFF_SRC, workshop.same_bytes(part.memory, rows_)},
        {DNNL_ARG_DIFF_SCALE, of(ParameterRole::gamma)}};
    add_parameters(compiler, arguments);
    if (has_bias()) arguments.emplace(DNNL_ARG_DIFF_SHIFT, of(ParameterRole::beta));
    steps.push_back(workshop.step(description, arguments));
    if (passes_on) compiler.deliver(part);
  }

 private:
  static constexpr float epsilon = 1e-5F;

  [[nodiscard]] bool has_bias() const {
    return (flags_ & normalization_flags::use_shift) != normalization_flags::none;
  }
  void add_parameters(Compiler& compiler, Step::Arguments& arguments) const {
    const auto of = [&](ParameterRole role) {
      return compiler.working_copy(role, features_, features_);
    };
    arguments.emplace(DNNL_ARG_SCALE, of(ParameterRole::gamma));
    if (has_bias()) arguments.emplace(DNNL_ARG_SHIFT, of(ParameterRole::beta));
  }

  normalization_flags flags_ = normalization_flags::use_scale;

  Description rows_;
  Description features_;
  std::optional<dnnl::layer_normalization_forward::primitive_desc> forward_;
  Memory mean_;
  Memory variance_;
};

// b = a / (k + alpha * sum of a^2 over n channels)^beta, with k = 2, alpha = 1e-4, beta = 0.75
// (Krizhevsky 2012, 3.3). oneDNN divides its alpha by n.
class LrnPlanner : public LayerPlanner {
 public:
  explicit LrnPlanner(const models::Lrn& layer) : layer_(layer) {}

  void plan_forward(Compiler& compiler) override {
    if (layer_.size % 2 == 0)
      throw InputError("layer '" + compiler.layer_name() + "': lrn over " +
                           std::to_string(layer_.size) + " channels has no middle",
                       "use an odd size");
    const Description layout = compiler.input_layout(0);
    forward_.emplace(
        dnnl::lrn_forward::desc(prop_kind::forward_training, dnnl::algorithm::lrn_across_channels,
                                layout, layer_.size, alpha(), beta, k),
        Workshop::attributes(), compiler.engine());
    compiler.keep_input(0);
    Step::Arguments arguments{{DNNL_ARG_SRC, compiler.forward_input(0, layout)},
                              {DNNL_ARG_DST, compiler.make_output(layout)}};
    const Description workspace = forward_->workspace_desc();
    if (workspace.get_size() > 0) {
      workspace_ = compiler.workshop().new_block(workspace);
      arguments.emplace(DNNL_ARG_WORKSPACE, compiler.workshop().in_block(workspace_, workspace));
    }
    compiler.add_forward(compiler.workshop().step(*forward_, arguments));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    const Description layout = compiler.output().layout;
    const dnnl::lrn_backward::primitive_desc description(
        {dnnl::algorithm::lrn_across_channels, layout, layout, layer_.size, alpha(), beta, k},
        Workshop::attributes(), compiler.engine(), *forward_);
    Steps& steps = compiler.program().data_gradients;
    const GradientPart part = compiler.gradient_part(0, layout);
    Step::Arguments arguments{{DNNL_ARG_SRC, compiler.kept_input(0, layout, steps)},
                              {DNNL_ARG_DIFF_DST, compiler.output_gradient(layout, steps)},
                              {DNNL_ARG_DIFF_SRC, part.memory}};
    if (workspace_ != no_block)
      arguments.emplace(DNNL_ARG_WORKSPACE,
                        compiler.workshop().in_block(workspace_, forward_->workspace_desc()));
    steps.push_back(compiler.workshop().step(description, arguments));
    compiler.deliver(part);
  }

 private:
  [[nodiscard]] float alpha() const { return 1e-4F * static_cast<float>(layer_.size); }
  static constexpr float beta = 0.75F;
  static constexpr float k = 2.0F;

  models::Lrn layer_;
  std::optional<dnnl::lrn_forward::primitive_desc> forward_;
  Block workspace_ = no_block;
};

}  // namespace

Planner make_planner(const models::BatchNorm&) {
  return std::make_unique<BatchNormPlanner>();
}
Planner make_planner(const models::LayerNorm& layer) {
  if (layer.rms) return make_rms_norm_planner();
  return std::make_unique<LayerNormPlanner>(layer);
}
Planner make_planner(const models::Lrn& layer) {
  return std::make_unique<LrnPlanner>(layer);
}

}  // namespace paceline::runtime::onednn
