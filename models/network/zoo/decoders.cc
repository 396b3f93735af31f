// Language models by their published sizes (config.json of their authors; Brown 2020 for GPT-3). Samples
// have the length of pretraining, and 8,192 elements where that was longer.
#include "models/network/decoder.h"
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

// Llama, Mistral and Qwen: gates, root mean square norms, rotary positions, and no bias but where said.
Decoder gated(std::string name, std::int64_t blocks, std::int64_t features, std::int64_t heads,
              std::int64_t key_value_heads, std::int64_t inner, std::int64_t vocabulary,
              std::int64_t sequence, double rotary_base = 1e4) {
  return {.name = std::move(name),
          .blocks = blocks,
          .features = features,
          .heads = heads,
          .key_value_heads = key_value_heads,
          .head_features = features / heads,
          .inner = inner,
          .vocabulary = vocabulary,
          .sequence = sequence,
          .rotary_base = rotary_base,
          .has_gate = true,
          .rms_norm = true};
}

Network with_query_bias(Decoder sizes) {
  sizes.query_bias = true;
  return decoder(sizes);
}

Network qwen3(Decoder sizes, std::int64_t features_of_expert) {
  sizes.head_features = 128;
  sizes.head_norms = true;
  sizes.experts = {.count = 128, .active = 8, .inner = features_of_expert};
  return decoder(sizes);
}

}  // namespace

Network llama_tiny() {
  return decoder(gated("llama-tiny", 4, 128, 4, 2, 344, 256, 64));
}
Network llama_2_7b() {
  return decoder(gated("llama-2-7b", 32, 4096, 32, 32, 11008, 32000, 4096));
}
Network llama_2_70b() {
  return decoder(gated("llama-2-70b", 80, 8192, 64, 8, 28672, 32000, 4096));
}
Network llama_3_8b() {
  return decoder(gated("llama-3-8b", 32, 4096, 32, 8, 14336, 128256, 8192, 5e5));
}
Network llama_3_70b() {
  return decoder(gated("llama-3-70b", 80, 8192, 64, 8, 28672, 128256, 8192, 5e5));
}
Network llama_3_1_405b() {
  return decoder(gated("llama-3.1-405b", 126, 16384, 128, 8, 53248, 128256, 8192, 5e5));
}
Network mistral_7b() {
  Decoder sizes = gated("mistral-7b", 32, 4096, 32, 8, 14336, 32000, 8192);
  sizes.sliding_window = 4096;
  return decoder(sizes);
}
Network qwen2_5_7b() {
  return with_query_bias(gated("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064, 4096, 1e6));
}
Network qwen2_5_72b() {
  return with_query_bias(gated("qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064, 4096, 1e6));
}
Network mixtral_8x7b() {
  Decoder sizes = gated("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, 4096, 1e6);
  sizes.experts = {.count = 8, .active = 2, .inner = 14336};
  return decoder(sizes);
}
Network qwen3_30b() {
  return qwen3(gated("qwen3-30b-a3b", 48, 2048, 32, 4, 6144, 151936, 4096, 1e6), 768);
}
Network qwen3_235b() {
  return qwen3(gated("qwen3-235b-a22b", 94, 4096, 64, 4, 12288, 151936, 4096, 1e6), 1536);
}
Network deepseek_v3() {
  Decoder sizes = gated("deepseek-v3", 61, 7168, 128, 128, 18432, 129280, 4096);
  sizes.head_features = 128;
  sizes.latent = {.query_rank = 1536, .rank = 512, .positioned = 64, .value_features = 128};
  sizes.experts = {.count = 256,
                   .active = 8,
                   .inner = 2048,
                   .shared_inner = 2048,
                   .bias = true,
                   .dense_blocks = 3};
  return decoder(sizes);
}
Network gpt3_175b() {
  return decoder({.name = "gpt3-175b",
                  .blocks = 96,
                  .features = 12288,
                  .heads = 96,
                  .key_value_heads = 96,
                  .head_features = 128,
                  .inner = 49152,
                  .vocabulary = 50257,
                  .sequence = 2048,
                  .positions = 2048,
                  .is_tied = true,
                  .norm_bias = true,
                  .query_bias = true,
                  .output_bias = true,
                  .inner_bias = true});
}

}  // namespace paceline::models
