// Pools. Tests: tests/runtime/network_layers_test.cc.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"
#include "runtime/network/uneven_pool.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

struct PoolExtents {
  PoolExtent rows;
  PoolExtent columns;
};

PoolExtents extents_of(const models::Pool& layer, const Compiler& compiler) {
  const models::Shape& in = compiler.input(0).shape;
  const models::Shape& out = compiler.output().shape;
  return {.rows = {.in = in.height,
                   .out = out.height,
                   .kernel = layer.kernel.height,
                   .stride = layer.stride.height,
                   .padding = layer.padding.height},
          .columns = {.in = in.width,
                      .out = out.width,
                      .kernel = layer.kernel.width,
                      .stride = layer.stride.width,
                      .padding = layer.padding.width}};
}

// How far the windows reach beyond the end of the input: `ceil` may ask for more than the padding.
std::int64_t reach(const PoolExtent& e) {
  return std::max(e.padding, (e.out - 1) * e.stride + e.kernel - e.in - e.padding);
}

class PoolPlanner : public LayerPlanner {
 public:
  PoolPlanner(const models::Pool& layer, dnnl::algorithm algorithm)
      : layer_(layer), algorithm_(algorithm) {}

  void plan_forward(Compiler& compiler) override {
    const PoolExtents extents = extents_of(layer_, compiler);
    end_ = {reach(extents.rows), reach(extents.columns)};
    const Description layout = compiler.input_layout(0);
    forward_.emplace(
        dnnl::pooling_forward::desc(dnnl::prop_kind::forward_training, algorithm_, layout,
                                    compiler.any_layout(compiler.output().shape), stride(),
                                    kernel(), start(), end_),
        Workshop::attributes(), compiler.engine());
    Step::Arguments arguments{{DNNL_ARG_SRC, compiler.forward_input(0, layout)},
                              {DNNL_ARG_DST, compiler.make_output(forward_->dst_desc())}};
    const Description workspace = forward_->workspace_desc();
    if (workspace.get_size() > 0) {
      workspace_ = compiler.workshop().new_block(workspace);
      arguments.emplace(DNNL_ARG_WORKSPACE, compiler.workshop().in_block(workspace_, workspace));
    }
    compiler.add_forward(compiler.workshop().step(*forward_, arguments));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    const Description layout = compiler.input(0).layout;
    const dnnl::pooling_backward::primitive_desc description(
        {algorithm_, layout, compiler.output().layout, stride(), kernel(), start(), end_},
        Workshop::attributes(), compiler.engine(), *forward_);
    Steps& steps = compiler.program().data_gradients;
    const GradientPart part = compiler.gradient_part(0, layout);
    Step::Arguments arguments{
        {DNNL_ARG_DIFF_DST, compiler.output_gradient(compiler.output().layout, steps)},
        {DNNL_ARG_DIFF_SRC, part.memory}};
    if (workspace_ != no_block)
      arguments.emplace(DNNL_ARG_WORKSPACE,
                        compiler.workshop().in_block(workspace_, forward_->workspace_desc()));
    steps.push_back(compiler.workshop().step(description, arguments));
    compiler.deliver(part);
  }

 private:
  [[nodiscard]] memory::dims stride() const { return {layer_.stride.height, layer_.stride.width}; }
  [[nodiscard]] memory::dims kernel() const { return {layer_.kernel.height, layer_.kernel.width}; }
  [[nodiscard]] memory::dims start() const { return {layer_.padding.height, layer_.padding.width}; }

  models::Pool layer_;
  dnnl::algorithm algorithm_;
  memory::dims end_;  // padding after the last row and column
  std::optional<dnnl::pooling_forward::primitive_desc> forward_;
  Block workspace_ = no_block;
};

// A pool whose windows are not all alike, computed by our own loops in FP32 and NCHW.
class UnevenPoolPlanner : public LayerPlanner {
 public:
  UnevenPoolPlanner(std::vector<PoolWindow> rows, std::vector<PoolWindow> columns)
      : rows_(std::move(rows)), columns_(std::move(columns)) {}

  void plan_forward(Compiler& compiler) override {
    const Description layout = compiler.plain_layout(compiler.output().shape, compiler.storage());
    const Memory source = compiler.forward_input(0, plain(compiler, compiler.input(0)));
    const Description plain_output = plain(compiler, compiler.output());
    const Memory target = compiler.make_output(layout);
    const Memory pooled =
        layout == plain_output ? target : compiler.workshop().temporary(plain_output);
    const UnevenPool pool = pool_of(compiler);
    compiler.add_forward(Step([=](Call&) { pool.forward(floats(source), floats(pooled)); }));
    if (layout != plain_output) compiler.add_forward(compiler.workshop().reorder(pooled, target));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    Steps& steps = compiler.program().data_gradients;
    const GradientPart part = compiler.gradient_part(0, plain(compiler, compiler.input(0)));
    const Memory gradient = compiler.output_gradient(plain(compiler, compiler.output()), steps);
    const UnevenPool pool = pool_of(compiler);
    const Memory target = part.memory;
    steps.emplace_back([=](Call&) { pool.backward(floats(gradient), floats(target)); });
    compiler.deliver(part);
  }

 private:
  static Description plain(const Compiler& compiler, const Value& value) {
    return compiler.plain_layout(value.shape, memory::data_type::f32);
  }
  [[nodiscard]] UnevenPool pool_of(const Compiler& compiler) const {
    const models::Shape& in = compiler.input(0).shape;
    return {.planes = compiler.options().batch * in.channels,
            .in = {in.height, in.width},
            .rows = rows_,
            .columns = columns_};
  }

  std::vector<PoolWindow> rows_;
  std::vector<PoolWindow> columns_;
};

// An average pool whose windows all divide by the kernel's size, unless `ceil` lets the last ones
// reach beyond the padding.
class AveragePoolPlanner : public LayerPlanner {
 public:
  explicit AveragePoolPlanner(const models::AveragePool& layer) : layer_(layer) {}

  void plan_forward(Compiler& compiler) override {
    const PoolExtents extents = extents_of(layer_, compiler);
    auto rows = padded_windows(extents.rows);
    auto columns = padded_windows(extents.columns);
    if (rows.back().count == layer_.kernel.height && columns.back().count == layer_.kernel.width)
      planner_ =
          std::make_unique<PoolPlanner>(layer_, dnnl::algorithm::pooling_avg_include_padding);
    else
      planner_ = std::make_unique<UnevenPoolPlanner>(std::move(rows), std::move(columns));
    planner_->plan_forward(compiler);
  }
  void plan_backward(Compiler& compiler) override { planner_->plan_backward(compiler); }

 private:
  models::AveragePool layer_;
  Planner planner_;
};

// An average pool of equal windows where the output's size divides the input's.
class AdaptiveAveragePoolPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const models::Shape& in = compiler.input(0).shape;
    const models::Shape& out = compiler.output().shape;
    if (in.height % out.height == 0 && in.width % out.width == 0) {
      const models::Extent window{in.height / out.height, in.width / out.width};
      planner_ = std::make_unique<PoolPlanner>(models::Pool{.kernel = window, .stride = window},
                                               dnnl::algorithm::pooling_avg_include_padding);
    } else {
      planner_ = std::make_unique<UnevenPoolPlanner>(adaptive_windows(in.height, out.height),
                                                     adaptive_windows(in.width, out.width));
    }
    planner_->plan_forward(compiler);
  }
  void plan_backward(Compiler& compiler) override { planner_->plan_backward(compiler); }

 private:
  Planner planner_;
};

}  // namespace

Planner make_planner(const models::MaxPool& layer) {
  return std::make_unique<PoolPlanner>(layer, dnnl::algorithm::pooling_max);
}
Planner make_planner(const models::AveragePool& layer) {
  return std::make_unique<AveragePoolPlanner>(layer);
}
Planner make_planner(const models::AdaptiveAveragePool&) {
  return std::make_unique<AdaptiveAveragePoolPlanner>();
}

}  // namespace paceline::runtime::onednn
