// Embeddings of tokens and of positions. Tests: tests/runtime/network_sequences_test.cc.
#include <algorithm>
#include <cstring>
#include <string>

#include "models/base/error.h"
#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

constexpr std::int32_t not_here = -1;  // the row is that of another rank

// The rows of the table that the elements of a batch have, from the caller's batch.
struct Rows {
  Memory tokens;  // FP32, of all elements; empty for positions
  std::int64_t elements = 1;
  std::int64_t entries = 1;      // of the whole table
  std::int64_t first_entry = 0;  // of the entries that this rank has
  std::int64_t own_entries = 1;
  std::string layer;

  void find(std::span<std::int32_t> rows) const {
    if (!tokens) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % elements);
      return;
    }
    const std::span<const float> numbers = floats(tokens);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_entry = numbers[i] >= 0 && numbers[i] < static_cast<float>(entries);
      if (!is_entry)
        throw InputError("layer '" + layer + "': token " + std::to_string(numbers[i]) +
                             " in a table of " + std::to_string(entries),
                         "use tokens from 0 to " + std::to_string(entries - 1));
      const std::int64_t own = static_cast<std::int64_t>(numbers[i]) - first_entry;
      rows[i] = own >= 0 && own < own_entries ? static_cast<std::int32_t>(own) : not_here;
    }
  }
};

class EmbeddingPlanner : public LayerPlanner {
 public:
  explicit EmbeddingPlanner(const models::Embedding& layer)
      : layer_(layer),
        table_({{layer.entries, layer.features}, memory::data_type::f32, memory::format_tag::nc}) {}

  void plan_forward(Compiler& compiler) override {
    const models::Shape& shape = compiler.output().shape;
    const std::int64_t elements = compiler.options().batch * shape.height;
    // They stay for the backward pass, in which the caller's batch is gone.
    rows_ =
        compiler.workshop().persistent({{elements}, memory::data_type::s32, memory::format_tag::x});
    const bool reads_tokens = layer_.of == models::Embedding::Of::tokens;
    const TensorPlace place = reads_tokens ? compiler.tensor_place() : TensorPlace{};
    const Rows rows{.tokens = reads_tokens ? compiler.images() : Memory(),
                    .elements = shape.height,
                    .entries = layer_.entries * place.ranks,
                    .first_entry = layer_.entries * place.rank,
                    .own_entries = layer_.entries,
                    .layer = compiler.layer_name()};
    const Description stored(table_.dims(), compiler.storage(), memory::format_tag::nc);
    const Memory table = compiler.working_copy(ParameterRole::weight, table_, stored);
    const Memory made = compiler.make_output(compiler.plain_layout(shape, compiler.storage()));
    const std::size_t bytes = stored.get_size() / to_size(layer_.entries);
    compiler.add_forward(Step([rows, table, made, bytes, kept = rows_](Call&) {
      const std::span<std::int32_t> picked = row_numbers(kept);
      rows.find(picked);
      const auto* const from = static_cast<const std::byte*>(table.get_data_handle());
      auto* const to = static_cast<std::byte*>(made.get_data_handle());
      for (std::size_t i = 0; i < picked.size(); ++i) {
        if (picked[i] == not_here)
          std::memset(to + i * bytes, 0, bytes);
        else
          std::memcpy(to + i * bytes, from + to_size(picked[i]) * bytes, bytes);
      }
    }));
    compiler.round_output();
  }

  // Rows are added in the order of the batch, a stretch of features on each thread, so that the bits do not depend
  // on the number of threads.
  void plan_backward(Compiler& compiler) override {
    Steps& steps = compiler.program().parameter_gradients;
    const Memory gradient = compiler.output_gradient(
        compiler.plain_layout(compiler.output().shape, memory::data_type::f32), steps);
    const int parameter = compiler.parameter(ParameterRole::weight);
    steps.emplace_back([gradient, kept = rows_, features = to_size(layer_.features), parameter,
                        size = to_size(compiler.place(parameter).elements),
                        is_tied = compiler.is_tied()](Call& call) {
      const std::span<float> table(call.gradients[to_size(parameter)], size);
      if (!is_tied) std::ranges::fill(table, 0.0F);
      const std::span<const float> from = floats(gradient);
      const std::span<const std::int32_t> picked = row_numbers(kept);
      constexpr std::size_t stretch = 64;
      const auto stretches = static_cast<std::ptrdiff_t>((features + stretch - 1) / stretch);
#pragma omp parallel for schedule(static)
      for (std::ptrdiff_t s = 0; s < stretches; ++s) {
        const std::size_t first = static_cast<std::size_t>(s) * stretch;
        const std::size_t last = std::min(features, first + stretch);
        for (std::size_t i = 0; i < picked.size(); ++i) {
          if (picked[i] == not_here) continue;
          float* const to = table.data() + to_size(picked[i]) * features;
          for (std::size_t f = first; f < last; ++f) to[f] += from[i * features + f];
        }
      }
    });
    compiler.deliver(ParameterRole::weight, table_, compiler.workshop().foreign(table_));
  }

 private:
  static std::span<std::int32_t> row_numbers(const Memory& rows) {
    return {static_cast<std::int32_t*>(rows.get_data_handle()),
            rows.get_desc().get_size() / sizeof(std::int32_t)};
  }

  models::Embedding layer_;
  Description table_;
  Memory rows_;  // of the last training pass
};

}  // namespace

Planner make_planner(const models::Embedding& layer) {
  return std::make_unique<EmbeddingPlanner>(layer);
}

}  // namespace paceline::runtime::onednn
