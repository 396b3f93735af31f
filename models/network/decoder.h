// Decoder-only transformers, by their sizes: GPT, Llama and their like. The zoo and configurations of
// Hugging Face (hugging_face.h) make networks of them.
//
// Attention is fused (layer.h). Queries, keys and values are one matrix, as their programs have them.
#pragma once

#include <cstdint>
#include <string>

#include "models/network/network.h"

namespace paceline::models {

// Attention whose keys and values come from a latent vector (Attention in layer.h).
struct LatentAttention {
  std::int64_t query_rank =
      0;  // of the latent vector of queries; 0 where they come from the block's input
  std::int64_t rank = 0;  // of that of keys and values; 0: attention is the usual
  std::int64_t positioned =
      1;  // features of queries and keys that have positions, which all heads' keys share
  std::int64_t value_features = 1;
};

// Experts are feed-forward layers, and each token passes a few of them.
struct Experts {
  std::int64_t count = 0;  // 0: feed-forward layers are the usual
  std::int64_t active = 1;
  std::int64_t inner = 1;  // features inside an expert
  std::int64_t shared_inner =
      0;  // inside the layer that all tokens pass beside their experts; 0: there is none
  bool bias = false;              // of the choice
  std::int64_t dense_blocks = 0;  // at the start, that have the usual layers
};

struct Decoder {
  std::string name;
  std::int64_t blocks = 1;
  std::int64_t features = 1;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_features = 1;
  std::int64_t inner = 1;  // features inside the feed-forward layers
  std::int64_t vocabulary = 1;
  std::int64_t sequence = 1;   // elements of a sample
  std::int64_t positions = 0;  // that are learned
  double rotary_base = 0;      // these, too, are of attention (layer.h)
  std::int64_t rotary_features = 0;
  bool alibi = false;
  std::int64_t sliding_window = 0;  // of attention; 0: none
  bool is_tied = false;             // the last matrix is the table of tokens
  bool has_gate = false;            // SwiGLU, with SiLU; else GELU
  // Attention and feed-forward layers read the same input, and their results are added at once.
  bool is_parallel = false;
  int norms = 2;            // of a parallel block: one for both, or one each
  bool head_norms = false;  // of the queries and keys of each head
  bool rms_norm = false;    // root mean square norms; else layer norms
  LatentAttention latent = {};
  Experts experts = {};
  // Whether these layers have a bias.
  bool norm_bias = false;
  bool query_bias = false;   // of queries, keys and values
  bool output_bias = false;  // of attention's output
  bool inner_bias = false;   // of feed-forward layers
};

// Throws InputError as NetworkBuilder does.
[[nodiscard]] Network decoder(const Decoder& sizes);

}  // namespace paceline::models
