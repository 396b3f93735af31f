// softmax(q k^T / sqrt(d)) v in each head, in FP32 (Vaswani 2017), as FlashAttention computes it (Dao 2022, arXiv
// 2205.14135, algorithms 1 and 4): forward keeps one number of each row, and backward computes the scores again. No
// more than a block of rows of them is in memory. Private to runtime/network/onednn.
//
// Products of matrices are oneDNN's. Heads are shared out to the threads of OpenMP; the bits do not depend on how many
// there are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::runtime::onednn {

struct AttentionSizes {
  std::int64_t samples = 1;
  std::int64_t elements = 1;  // of a sequence
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;  // heads / key_value_heads heads of queries share one
  std::int64_t width = 1;            // features of a head
  bool causal = false;
};

// A matrix of a row for each element of all samples: the first number, and those between two rows. Heads stand side
// by side in a row.
template <class Number>
struct RowsOf {
  Number* data = nullptr;
  std::int64_t stride = 0;
};

// The dropout of the softmax (dropout.h). With a probability of 0 there is none.
struct AttentionDropout {
  std::uint64_t seed = 0;
  int layer = 0;
  double probability = 0;
  // Where ranks have a share of the heads each: those of all of them, and the first of this rank. Masks are those of
  // the whole layer. 0 are the heads of the sizes.
  std::int64_t all_heads = 0;
  std::int64_t first_head = 0;
};

template <class Number>
struct AttentionInputs {
  RowsOf<Number> queries;
  RowsOf<Number> keys;
  RowsOf<Number> values;
};

// The FP32 numbers that a call needs beside its arguments, with this many threads.
[[nodiscard]] std::size_t attention_scratch(const AttentionSizes& sizes, int threads);

// `output` has heads x width features; `normalisers` takes log sum exp of each row of scores, (samples, heads,
// elements).
void attend(const AttentionSizes& sizes, const AttentionDropout& dropout,
            const AttentionInputs<const float>& inputs, RowsOf<float> output, float* normalisers,
            float* scratch);

// Writes the gradients of all inputs.
void attend_backward(const AttentionSizes& sizes, const AttentionDropout& dropout,
                     const AttentionInputs<const float>& inputs, RowsOf<const float> output,
                     const float* normalisers, RowsOf<const float> output_gradient,
                     const AttentionInputs<float>& gradients, float* scratch);

}  // namespace paceline::runtime::onednn
