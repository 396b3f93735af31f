// Decoder-only transformers, by their sizes: GPT, Llama and their like. The zoo and configurations of
// Hugging Face (hugging_face.h) make networks of them.
//
// Attention is fused (layer.h). Rotary positions and distances in scores (ALiBi) have no parameters, and
// what they take is not counted. Queries, keys and values are one matrix, as their programs have them.
#pragma once

#include <cstdint>
#include <string>

#include "models/network/network.h"

namespace paceline::models {

struct Decoder {
  std::string name;
  std::int64_t blocks = 1;
  std::int64_t features = 1;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_features = 1;
  std::int64_t inner = 1;  // features inside the feed-forward layers
  std::int64_t vocabulary = 1;
  std::int64_t sequence = 1;        // elements of a sample
  std::int64_t positions = 0;       // that are learned
  std::int64_t sliding_window = 0;  // of attention; 0: none
  bool is_tied = false;             // the last matrix is the table of tokens
  bool has_gate = false;            // SwiGLU, with SiLU; else GELU
  // Attention and feed-forward layers read the same input, and their results are added at once.
  bool is_parallel = false;
  int norms = 2;  // of a parallel block: one for both, or one each
  // Whether these layers have a bias.
  bool norm_bias = false;
  bool query_bias = false;   // of queries, keys and values
  bool output_bias = false;  // of attention's output
  bool inner_bias = false;   // of feed-forward layers
};

// Throws InputError as NetworkBuilder does.
[[nodiscard]] Network decoder(const Decoder& sizes);

}  // namespace paceline::models
