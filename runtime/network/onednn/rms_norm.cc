// The root mean square norm, which oneDNN lacks: y = gamma x / sqrt(mean of x^2 + epsilon) in each row (Zhang 2019, arXiv
// 1910.07467, equation 4). It is computed in FP32 whatever is stored. Tests: tests/runtime/network_sequences_test.cc.
#include <algorithm>
#include <cmath>

#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

constexpr float epsilon = 1e-5F;  // as Llama's

struct RowSizes {
  std::int64_t rows = 1;
  std::int64_t features = 1;
};

void normalise(const RowSizes& sizes, const float* x, const float* gamma, float* y, float* scales) {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    const float* const from = x + row * sizes.features;
    float* const to = y + row * sizes.features;
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < sizes.features; ++i) squares += from[i] * from[i];
    const float scale = 1 / std::sqrt(squares / static_cast<float>(sizes.features) + epsilon);
    scales[row] = scale;
    for (std::int64_t i = 0; i < sizes.features; ++i) to[i] = gamma[i] * scale * from[i];
  }
}

// dx = r (gamma dy - x r^2 mean of gamma dy x), where r is the row's scale.
void normalise_backward(const RowSizes& sizes, const float* x, const float* gamma,
                        const float* scales, const float* dy, float* dx) {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    const float* const data = x + row * sizes.features;
    const float* const slopes = dy + row * sizes.features;
    float* const to = dx + row * sizes.features;
    float product = 0;
#pragma omp simd reduction(+ : product)
    for (std::int64_t i = 0; i < sizes.features; ++i) product += gamma[i] * slopes[i] * data[i];
    const float scale = scales[row];
    const float share = scale * scale * product / static_cast<float>(sizes.features);
    for (std::int64_t i = 0; i < sizes.features; ++i)
      to[i] = scale * (gamma[i] * slopes[i] - share * data[i]);
  }
}

// dgamma is the sum of dy x r over all rows. Threads share out the features, so that the bits do not depend on how
// many threads there are.
void sum_over_rows(const RowSizes& sizes, const float* x, const float* scales, const float* dy,
                   float* dgamma) {
  constexpr std::int64_t block = 64;
#pragma omp parallel for schedule(static)
  for (std::int64_t first = 0; first < sizes.features; first += block) {
    const std::int64_t count = std::min(block, sizes.features - first);
    std::fill_n(dgamma + first, count, 0.0F);
    for (std::int64_t row = 0; row < sizes.rows; ++row) {
      const std::int64_t at = row * sizes.features + first;
      for (std::int64_t i = 0; i < count; ++i)
        dgamma[first + i] += dy[at + i] * x[at + i] * scales[row];
    }
  }
}

class RmsNormPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const models::Shape& shape = compiler.input(0).shape;
    sizes_ = {compiler.options().batch * shape.height * shape.width, shape.channels};
    rows_ = {compiler.dims(shape), memory::data_type::f32, memory::format_tag::nhwc};
    features_ = vector(sizes_.features);
    Workshop& workshop = compiler.workshop();
    scales_ = workshop.new_block(vector(sizes_.rows));
    const Memory data = compiler.forward_input(0, rows_);
    compiler.keep_input(0);
    const Description stored = compiler.row_layout(shape);
    const Memory target = compiler.make_output(stored);
    const Memory made = stored == rows_ ? target : workshop.temporary(rows_);
    compiler.add_forward(
        Step([=, sizes = sizes_, gamma = gamma(compiler), scales = scales(compiler)](Call&) {
          normalise(sizes, floats(data).data(), floats(gamma).data(), floats(made).data(),
                    floats(scales).data());
        }));
    if (stored != rows_) compiler.add_forward(workshop.reorder(made, target));
    compiler.round_output();
  }

  // One step makes all gradients, as that of layer norm.
  void plan_backward(Compiler& compiler) override {
    Steps& steps = compiler.program().parameter_gradients;
    const Memory slopes = compiler.output_gradient(rows_, steps);
    const Memory data = compiler.kept_input(0, rows_, steps);
    const Memory of_gamma = compiler.parameter_gradient(ParameterRole::gamma, features_, features_);
    const bool passes_on = compiler.input(0).needs_gradient;
    const GradientPart part = passes_on ? compiler.gradient_part(0, rows_)
                                        : GradientPart{0, compiler.workshop().temporary(rows_),
                                                       GradientPart::Way::placed};
    steps.emplace_back([=, sizes = sizes_, gamma = gamma(compiler), scales = scales(compiler),
                        to = part.memory](Call&) {
      sum_over_rows(sizes, floats(data).data(), floats(scales).data(), floats(slopes).data(),
                    floats(of_gamma).data());
      normalise_backward(sizes, floats(data).data(), floats(gamma).data(), floats(scales).data(),
                         floats(slopes).data(), floats(to).data());
    });
    if (passes_on) compiler.deliver(part);
  }

 private:
  static Description vector(std::int64_t size) {
    return {{size}, memory::data_type::f32, memory::format_tag::x};
  }
  [[nodiscard]] Memory gamma(Compiler& compiler) const {
    return compiler.working_copy(ParameterRole::gamma, features_, features_);
  }
  [[nodiscard]] Memory scales(Compiler& compiler) const {
    return compiler.workshop().in_block(scales_, vector(sizes_.rows));
  }

  RowSizes sizes_;
  Description rows_;
  Description features_;
  Block scales_ = no_block;
};

}  // namespace

Planner make_rms_norm_planner() {
  return std::make_unique<RmsNormPlanner>();
}

}  // namespace paceline::runtime::onednn
