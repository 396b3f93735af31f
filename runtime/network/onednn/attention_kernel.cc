// Tests: tests/runtime/network_sequences_test.cc.
#include "runtime/network/onednn/attention_kernel.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <span>

#include <oneapi/dnnl/dnnl.h>
#include "models/base/error.h"
#include "models/base/seeds.h"
#include "models/base/to_size.h"
#include "runtime/network/dropout.h"
#include "runtime/tensor/exponential.h"

namespace paceline::runtime::onednn {
namespace {

// Rows of queries whose scores are in memory together.
constexpr std::int64_t block_rows = 64;

// A matrix in memory: rows of `stride` numbers. Transposed, it is read by columns.
struct Factor {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool is_transposed = false;
};

// Computes result = scale a b + keep result. The result has rows x columns numbers, and each is a sum of `inner`
// products.
void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, float scale,
              const Factor& a, const Factor& b, float keep, float* result, std::int64_t stride) {
  const dnnl_status_t status =
      dnnl_sgemm(a.is_transposed ? 'T' : 'N', b.is_transposed ? 'T' : 'N', rows, columns, inner,
                 scale, a.data, a.stride, b.data, b.stride, keep, result, stride);
  PACELINE_ASSERT(status == dnnl_success, "oneDNN multiplies matrices");
}

// One head of one sample.
class Head {
 public:
  Head(const AttentionSizes& sizes, const AttentionDropout& dropout,
       const AttentionInputs<const float>& inputs, std::int64_t sample, std::int64_t head,
       float* scratch)
      : sizes_(sizes),
        dropout_(dropout),
        number_(sample * sizes.heads + head),
        drawn_number_(sample * (dropout.all_heads > 0 ? dropout.all_heads : sizes.heads) +
                      dropout.first_head + head),
        first_row_(sample * sizes.elements),
        column_(head * sizes.width),
        shared_column_(head / (sizes.heads / sizes.key_value_heads) * sizes.width),
        queries_(of(inputs.queries, column_)),
        keys_(of(inputs.keys, shared_column_)),
        values_(of(inputs.values, shared_column_)),
        scores_(scratch),
        mask_(scores_ + block_rows * sizes.elements),
        slopes_(mask_ + block_rows * sizes.elements) {}

  void forward(const RowsOf<float>& output, float* normalisers) {
    const RowsOf<float> made = of(output, column_);
    for (std::int64_t first = 0; first < sizes_.elements; first += block_rows) {
      const std::int64_t rows = std::min(block_rows, sizes_.elements - first);
      const std::int64_t seen = seen_by(first + rows - 1);
      compute_scores(first, rows, seen);
      for (std::int64_t i = 0; i < rows; ++i)
        normalisers[number_ * sizes_.elements + first + i] =
            softmax(scores_ + i * seen, seen_by(first + i), seen);
      drop(first, rows, seen, scores_);
      multiply(rows, sizes_.width, seen, 1, {scores_, seen}, {values_.data, values_.stride}, 0,
               made.data + first * made.stride, made.stride);
    }
  }

  // `is_first` says that no other head has written the gradients of the keys and values that it shares.
  void backward(const RowsOf<const float>& output, const float* normalisers,
                const RowsOf<const float>& output_gradient, const AttentionInputs<float>& gradients,
                bool is_first) {
    const RowsOf<const float> made = of(output, column_);
    const RowsOf<const float> slope = of(output_gradient, column_);
    const RowsOf<float> of_queries = of(gradients.queries, column_);
    const RowsOf<float> of_keys = of(gradients.keys, shared_column_);
    const RowsOf<float> of_values = of(gradients.values, shared_column_);
    if (is_first) {
      clear(of_keys);
      clear(of_values);
    }
    for (std::int64_t first = 0; first < sizes_.elements; first += block_rows) {
      const std::int64_t rows = std::min(block_rows, sizes_.elements - first);
      const std::int64_t seen = seen_by(first + rows - 1);
      const float* const slopes_of_rows = slope.data + first * slope.stride;
      // P, with which dV = P^T dO and dP = dO V^T.
      compute_scores(first, rows, seen);
      for (std::int64_t i = 0; i < rows; ++i)
        exponentials(scores_ + i * seen, seen_by(first + i), seen,
                     normalisers[number_ * sizes_.elements + first + i]);
      multiply(rows, seen, sizes_.width, 1, {slopes_of_rows, slope.stride},
               {values_.data, values_.stride, true}, 0, slopes_, seen);
      if (drops()) {
        drop(first, rows, seen, slopes_);  // mask_ is that of the block now
        multiply_by_mask(rows * seen, scores_, dropped());
      }
      const float* const kept = drops() ? dropped() : scores_;
      multiply(seen, sizes_.width, rows, 1, {kept, seen, true}, {slopes_of_rows, slope.stride}, 1,
               of_values.data, of_values.stride);
      // dS = P (dP - D) with D = sum of dO O in each row; its scale is in the products.
      for (std::int64_t i = 0; i < rows; ++i) {
        const float mean =
            inner_product(slopes_of_rows + i * slope.stride, made.data + (first + i) * made.stride);
        to_score_slopes(scores_ + i * seen, slopes_ + i * seen, mean, seen);
      }
      multiply(rows, sizes_.width, seen, scale(), {slopes_, seen}, {keys_.data, keys_.stride}, 0,
               of_queries.data + first * of_queries.stride, of_queries.stride);
      multiply(seen, sizes_.width, rows, scale(), {slopes_, seen, true},
               {queries_.data + first * queries_.stride, queries_.stride}, 1, of_keys.data,
               of_keys.stride);
    }
  }

  // FP32 numbers of scratch.
  static std::int64_t scratch(const AttentionSizes& sizes) {
    return 4 * block_rows * sizes.elements;
  }

 private:
  template <class Number>
  [[nodiscard]] RowsOf<Number> of(const RowsOf<Number>& rows, std::int64_t column) const {
    return {rows.data + first_row_ * rows.stride + column, rows.stride};
  }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(sizes_.width)); }
  // The elements that one attends to.
  [[nodiscard]] std::int64_t seen_by(std::int64_t element) const {
    return sizes_.causal ? element + 1 : sizes_.elements;
  }
  [[nodiscard]] bool drops() const { return dropout_.probability > 0; }
  [[nodiscard]] float* dropped() const { return slopes_ + block_rows * sizes_.elements; }

  void compute_scores(std::int64_t first, std::int64_t rows, std::int64_t seen) {
    multiply(rows, seen, sizes_.width, scale(),
             {queries_.data + first * queries_.stride, queries_.stride},
             {keys_.data, keys_.stride, true}, 0, scores_, seen);
  }

  // Turns the first `count` of a row into e^(s - normaliser), and the rest into 0. Returns the sum.
  static float exponentials(float* row, std::int64_t count, std::int64_t seen, float normaliser) {
    constexpr std::int64_t lanes = 16;
    float sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        row[i + lane] = exponential(row[i + lane] - normaliser);
        sums[lane] += row[i + lane];
      }
    float sum = 0;
    for (; i < count; ++i) {
      row[i] = exponential(row[i] - normaliser);
      sum += row[i];
    }
    for (const float of_lane : sums) sum += of_lane;
    std::fill(row + count, row + seen, 0.0F);
    return sum;
  }
  // Returns the logarithm of the sum of e^s.
  static float softmax(float* row, std::int64_t count, std::int64_t seen) {
    const float largest = *std::max_element(row, row + count);
    const float sum = exponentials(row, count, seen, largest);
    for (std::int64_t i = 0; i < count; ++i) row[i] /= sum;
    return largest + std::log(sum);
  }

  // Masks the rows of a block by what is drawn for it: the same in both passes.
  void drop(std::int64_t first, std::int64_t rows, std::int64_t seen, float* values) {
    if (!drops()) return;
    const std::span<float> mask(mask_, to_size(rows * seen));
    std::ranges::fill(mask, 1.0F);
    const std::uint64_t block =
        static_cast<std::uint64_t>(drawn_number_ * sizes_.elements + first) + 1;
    drop_out({.seed = mixed_seed(dropout_.seed, block),
              .layer = dropout_.layer,
              .probability = dropout_.probability},
             mask, mask);
    multiply_by_mask(rows * seen, values, values);
  }
  void multiply_by_mask(std::int64_t count, const float* from, float* to) const {
    for (std::int64_t i = 0; i < count; ++i) to[i] = mask_[i] * from[i];
  }

  [[nodiscard]] float inner_product(const float* a, const float* b) const {
    float sum = 0;
    for (std::int64_t i = 0; i < sizes_.width; ++i) sum += a[i] * b[i];
    return sum;
  }
  static void to_score_slopes(const float* probabilities, float* slopes, float mean,
                              std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) slopes[i] = probabilities[i] * (slopes[i] - mean);
  }
  void clear(const RowsOf<float>& rows) const {
    for (std::int64_t i = 0; i < sizes_.elements; ++i)
      std::fill_n(rows.data + i * rows.stride, sizes_.width, 0.0F);
  }

  const AttentionSizes& sizes_;
  const AttentionDropout& dropout_;
  std::int64_t number_;        // of the head, through all samples
  std::int64_t drawn_number_;  // likewise, through the heads of all ranks
  std::int64_t first_row_;
  std::int64_t column_;
  std::int64_t shared_column_;
  RowsOf<const float> queries_;
  RowsOf<const float> keys_;
  RowsOf<const float> values_;
  float* scores_;
  float* mask_;
  float* slopes_;
};

float* of_thread(const AttentionSizes& sizes, float* scratch) {
  return scratch + omp_get_thread_num() * Head::scratch(sizes);
}

}  // namespace

std::size_t attention_scratch(const AttentionSizes& sizes, int threads) {
  return to_size(Head::scratch(sizes)) * to_size(threads);
}

void attend(const AttentionSizes& sizes, const AttentionDropout& dropout,
            const AttentionInputs<const float>& inputs, RowsOf<float> output, float* normalisers,
            float* scratch) {
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < sizes.samples * sizes.heads; ++i)
    Head(sizes, dropout, inputs, i / sizes.heads, i % sizes.heads, of_thread(sizes, scratch))
        .forward(output, normalisers);
}

void attend_backward(const AttentionSizes& sizes, const AttentionDropout& dropout,
                     const AttentionInputs<const float>& inputs, RowsOf<const float> output,
                     const float* normalisers, RowsOf<const float> output_gradient,
                     const AttentionInputs<float>& gradients, float* scratch) {
  const std::int64_t group = sizes.heads / sizes.key_value_heads;
  // Heads that share keys are one thread's, because each adds to the gradients of these.
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < sizes.samples * sizes.key_value_heads; ++i)
    for (std::int64_t h = 0; h < group; ++h)
      Head(sizes, dropout, inputs, i / sizes.key_value_heads, i % sizes.key_value_heads * group + h,
           of_thread(sizes, scratch))
          .backward(output, normalisers, output_gradient, gradients, h == 0);
}

}  // namespace paceline::runtime::onednn
