// Attention. It is computed in FP32 whatever is stored. Tests: tests/runtime/network_sequences_test.cc.
#include "runtime/network/onednn/attention_kernel.h"

#include <array>

#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"
#include "runtime/network/onednn/rotary.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

// The memories of queries, keys and values: three, or one that has them side by side in each row.
using InputMemories = std::vector<Memory>;

template <class Number>
AttentionInputs<Number> inputs_of(const AttentionSizes& sizes, const InputMemories& memories) {
  const auto data = [&](std::size_t i) {
    return static_cast<Number*>(memories[i].get_data_handle());
  };
  const std::int64_t features = sizes.heads * sizes.width;
  const std::int64_t shared = sizes.key_value_heads * sizes.width;
  if (memories.size() == 3) return {{data(0), features}, {data(1), shared}, {data(2), shared}};
  const std::int64_t stride = features + 2 * shared;
  return {{data(0), stride}, {data(0) + features, stride}, {data(0) + features + shared, stride}};
}

// Queries and keys behind the rotation, side by side in a row.
struct Turned {
  std::shared_ptr<const Rotation> rotation;  // null where there is none
  Memory memory;
};

// Turns the queries and keys, and lets them be read where they are turned.
AttentionInputs<const float> turn(const AttentionSizes& sizes, AttentionInputs<const float> inputs,
                                  const Turned& turned) {
  if (turned.rotation == nullptr) return inputs;
  const std::int64_t features = sizes.heads * sizes.width;
  const std::int64_t stride = features + sizes.key_value_heads * sizes.width;
  float* const data = floats(turned.memory).data();
  const RowsOf<float> queries{data, stride};
  const RowsOf<float> keys{data + features, stride};
  turned.rotation->turn(inputs.queries, queries, sizes.heads);
  turned.rotation->turn(inputs.keys, keys, sizes.key_value_heads);
  return {{queries.data, stride}, {keys.data, stride}, inputs.values};
}

class AttentionPlanner : public LayerPlanner {
 public:
  explicit AttentionPlanner(const models::Attention& layer) : layer_(layer) {}

  void plan_forward(Compiler& compiler) override {
    const models::Shape& out = compiler.output().shape;
    sizes_ = {.samples = compiler.options().batch,
              .elements = out.height,
              .heads = layer_.heads,
              .key_value_heads = layer_.key_value_heads > 0 ? layer_.key_value_heads : layer_.heads,
              .width = out.channels / layer_.heads,
              .causal = layer_.causal};
    if (compiler.input_count() == 3)
      sizes_.key_value_heads = compiler.input(1).shape.channels / sizes_.width;
    Workshop& workshop = compiler.workshop();
    InputMemories inputs;
    for (int i = 0; i < compiler.input_count(); ++i) {
      inputs.push_back(compiler.forward_input(i, fp32(compiler, compiler.input(i).shape)));
      compiler.keep_input(i);
    }
    const Description plain = fp32(compiler, out);
    const Description stored = compiler.plain_layout(out, compiler.storage());
    const Memory target = compiler.make_output(stored);
    const Memory made = stored == plain ? target : workshop.temporary(plain);
    const std::int64_t rows = sizes_.samples * sizes_.heads * sizes_.elements;
    normalisers_layout_ = {{rows}, memory::data_type::f32, memory::format_tag::x};
    normalisers_ = workshop.new_block(normalisers_layout_);
    const Memory normalisers = workshop.in_block(normalisers_, normalisers_layout_);
    const auto scratch =
        static_cast<std::int64_t>(attention_scratch(sizes_, compiler.options().threads));
    scratch_layout_ = {{scratch}, memory::data_type::f32, memory::format_tag::x};
    const Memory scratch_memory = workshop.temporary(scratch_layout_);
    if (layer_.rotary_base > 0)
      rotation_ = std::make_shared<Rotation>(
          sizes_, layer_.rotary_features > 0 ? layer_.rotary_features : sizes_.width,
          layer_.rotary_base);
    const auto attention = [=, sizes = sizes_,
                            turned = turned(workshop)](const AttentionDropout& dropout) {
      attend(sizes, dropout, turn(sizes, inputs_of<const float>(sizes, inputs), turned),
             {floats(made).data(), sizes.heads * sizes.width}, floats(normalisers).data(),
             floats(scratch_memory).data());
    };
    LayerProgram& program = compiler.program();
    program.training.emplace_back([attention, dropout = dropout(compiler)](Call& call) {
      AttentionDropout drawn = dropout;
      drawn.seed = call.seed;
      attention(drawn);
    });
    program.evaluation.emplace_back([attention](Call&) { attention({}); });
    if (stored != plain) compiler.add_forward(workshop.reorder(made, target));
    compiler.round_output();
    compiler.keep_output();
  }

  void plan_backward(Compiler& compiler) override {
    Workshop& workshop = compiler.workshop();
    Steps& steps = compiler.program().data_gradients;
    const Description plain = fp32(compiler, compiler.output().shape);
    const Memory gradient = compiler.output_gradient(plain, steps);
    Memory made = compiler.kept_output();
    if (made.get_desc() != plain) {
      const Memory stored = made;
      made = workshop.temporary(plain);
      steps.push_back(workshop.reorder(stored, made));
    }
    InputMemories inputs;
    InputMemories gradients;
    std::vector<GradientPart> parts;
    for (int i = 0; i < compiler.input_count(); ++i) {
      const Description layout = fp32(compiler, compiler.input(i).shape);
      inputs.push_back(compiler.kept_input(i, layout, steps));
      // All are written, also those that nobody wants.
      const bool is_wanted = compiler.input(i).needs_gradient;
      if (is_wanted) parts.push_back(compiler.gradient_part(i, layout));
      gradients.push_back(is_wanted ? parts.back().memory : workshop.temporary(layout));
    }
    const Memory normalisers = workshop.in_block(normalisers_, normalisers_layout_);
    const Memory scratch = workshop.temporary(scratch_layout_);
    steps.emplace_back(
        [=, sizes = sizes_, dropout = dropout(compiler), turned = turned(workshop)](Call& call) {
          AttentionDropout drawn = dropout;
          drawn.seed = call.seed;
          const std::int64_t features = sizes.heads * sizes.width;
          const AttentionInputs<float> slopes = inputs_of<float>(sizes, gradients);
          attend_backward(sizes, drawn, turn(sizes, inputs_of<const float>(sizes, inputs), turned),
                          {floats(made).data(), features}, floats(normalisers).data(),
                          {floats(gradient).data(), features}, slopes, floats(scratch).data());
          if (turned.rotation == nullptr) return;
          turned.rotation->turn_back(slopes.queries, sizes.heads);
          turned.rotation->turn_back(slopes.keys, sizes.key_value_heads);
        });
    for (const GradientPart& part : parts) compiler.deliver(part);
  }

 private:
  static Description fp32(const Compiler& compiler, const models::Shape& shape) {
    return compiler.plain_layout(shape, memory::data_type::f32);
  }
  [[nodiscard]] Turned turned(Workshop& workshop) const {
    if (rotation_ == nullptr) return {};
    const std::int64_t rows = sizes_.samples * sizes_.elements;
    const std::int64_t features = (sizes_.heads + sizes_.key_value_heads) * sizes_.width;
    return {rotation_,
            workshop.temporary({{rows, features}, memory::data_type::f32, memory::format_tag::ab})};
  }
  [[nodiscard]] AttentionDropout dropout(const Compiler& compiler) const {
    const TensorPlace place = compiler.tensor_place();
    return {.layer = compiler.layer(),
            .probability = layer_.dropout,
            .all_heads = sizes_.heads * place.ranks,
            .first_head = sizes_.heads * place.rank};
  }

  models::Attention layer_;
  AttentionSizes sizes_;
  std::shared_ptr<const Rotation> rotation_;
  Description normalisers_layout_;
  Description scratch_layout_;
  Block normalisers_ = no_block;
};

}  // namespace

Planner make_planner(const models::Attention& layer) {
  return std::make_unique<AttentionPlanner>(layer);
}

}  // namespace paceline::runtime::onednn
