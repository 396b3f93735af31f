// Tests: tests/models/hugging_face_test.cc.
#include "models/network/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "models/base/error.h"
#include "models/base/json_reader.h"
#include "models/network/decoder.h"

namespace paceline::models {
namespace {

constexpr std::int64_t longest_default_sample = 8192;
// The most elements that a configuration may have positions for, or a window of.
constexpr std::int64_t most_positions = 100'000'000;
constexpr double usual_rotary_base = 1e4;
constexpr double least_rotary_base = 1;

std::int64_t size_or(const JsonValue& config, const char* key, std::int64_t otherwise) {
  return config.has_value(key) ? config.at(key).whole(1, largest_size) : otherwise;
}
bool flag_or(const JsonValue& config, const char* key, bool otherwise) {
  return config.has_value(key) ? config.at(key).flag() : otherwise;
}

// Fails unless the heads share the features, or say their own.
std::int64_t of_head(const JsonValue& config, std::int64_t features, std::int64_t heads) {
  if (config.has_value("head_dim")) return config.at("head_dim").whole(1, largest_size);
  if (features % heads != 0)
    config.fail(fmt::format("{} features are no {} heads", features, heads),
                "choose heads that divide the features, or give head_dim");
  return features / heads;
}

// The base of rotary positions. Newer configurations keep it in a group of its own.
double rotary_base(const JsonValue& config, const char* key, double otherwise) {
  const bool is_grouped =
      config.has_value("rope_parameters") && config.at("rope_parameters").has_value(key);
  const JsonValue& owner = is_grouped ? config.at("rope_parameters") : config;
  return owner.has_value(key) ? owner.at(key).number(least_rotary_base, largest_rotary_base)
                              : otherwise;
}

std::int64_t sample_of(const JsonValue& config, const char* key, std::int64_t otherwise) {
  const std::int64_t positions =
      config.has_value(key) ? config.at(key).whole(1, most_positions) : otherwise;
  return std::min(positions, longest_default_sample);
}

// The sizes that Llama, Mistral and Qwen 2 share. Their classes differ in what they take where a key is
// absent.
struct LlamaDefaults {
  std::int64_t inner;
  std::int64_t vocabulary;
  std::optional<std::int64_t> key_value_heads;  // as many as heads
  std::int64_t positions;
  std::int64_t blocks = 32;
  std::int64_t features = 4096;
  double rotary_base = usual_rotary_base;
};
Decoder of_llamas_kind(const JsonValue& config, const LlamaDefaults& defaults) {
  Decoder made;
  made.blocks = size_or(config, "num_hidden_layers", defaults.blocks);
  made.features = size_or(config, "hidden_size", defaults.features);
  made.heads = size_or(config, "num_attention_heads", 32);
  made.key_value_heads =
      size_or(config, "num_key_value_heads", defaults.key_value_heads.value_or(made.heads));
  made.head_features = of_head(config, made.features, made.heads);
  made.inner = size_or(config, "intermediate_size", defaults.inner);
  made.vocabulary = size_or(config, "vocab_size", defaults.vocabulary);
  made.sequence = sample_of(config, "max_position_embeddings", defaults.positions);
  made.is_tied = flag_or(config, "tie_word_embeddings", false);
  made.has_gate = true;
  made.rms_norm = true;
  made.rotary_base = rotary_base(config, "rope_theta", defaults.rotary_base);
  return made;
}

Decoder llama(const JsonValue& config) {
  Decoder made = of_llamas_kind(
      config,
      {.inner = 11008, .vocabulary = 32000, .key_value_heads = std::nullopt, .positions = 2048});
  made.query_bias = made.output_bias = flag_or(config, "attention_bias", false);
  made.inner_bias = flag_or(config, "mlp_bias", false);
  return made;
}

Decoder mistral(const JsonValue& config) {
  Decoder made = of_llamas_kind(
      config, {.inner = 14336, .vocabulary = 32000, .key_value_heads = 8, .positions = 131072});
  if (!config.has("sliding_window"))
    made.sliding_window = 4096;
  else if (config.has_value("sliding_window"))
    made.sliding_window = config.at("sliding_window").whole(1, most_positions);
  return made;
}

Decoder mixtral(const JsonValue& config) {
  Decoder made = of_llamas_kind(config, {.inner = 14336,
                                         .vocabulary = 32000,
                                         .key_value_heads = 8,
                                         .positions = 131072,
                                         .rotary_base = 1e6});
  if (config.has_value("sliding_window"))
    made.sliding_window = config.at("sliding_window").whole(1, most_positions);
  made.experts = {.count = size_or(config, "num_local_experts", 8),
                  .active = size_or(config, "num_experts_per_tok", 2),
                  .inner = made.inner};
  return made;
}

// Queries, keys and values have a bias, which no key says. A window has a value, and is off.
Decoder qwen2(const JsonValue& config) {
  Decoder made = of_llamas_kind(
      config, {.inner = 22016, .vocabulary = 151936, .key_value_heads = 32, .positions = 32768});
  made.query_bias = true;
  if (flag_or(config, "use_sliding_window", false))
    config.at("use_sliding_window")
        .fail("windows in some of the layers are not modelled", "set it to false");
  return made;
}

// Heads have 128 features, whatever their number.
Decoder qwen3_of(const JsonValue& config, const LlamaDefaults& defaults) {
  Decoder made = of_llamas_kind(config, defaults);
  made.head_features = size_or(config, "head_dim", 128);
  made.query_bias = made.output_bias = flag_or(config, "attention_bias", false);
  made.head_norms = true;
  return made;
}
Decoder qwen3(const JsonValue& config) {
  return qwen3_of(
      config, {.inner = 22016, .vocabulary = 151936, .key_value_heads = 32, .positions = 32768});
}
Decoder qwen3_moe(const JsonValue& config) {
  Decoder made = qwen3_of(config, {.inner = 6144,
                                   .vocabulary = 151936,
                                   .key_value_heads = 4,
                                   .positions = 32768,
                                   .blocks = 24,
                                   .features = 2048});
  made.experts = {.count = size_or(config, "num_experts", 128),
                  .active = size_or(config, "num_experts_per_tok", 8),
                  .inner = size_or(config, "moe_intermediate_size", 768)};
  const bool has_others =
      size_or(config, "decoder_sparse_step", 1) != 1 ||
      (config.has_value("mlp_only_layers") && config.at("mlp_only_layers").size() > 0);
  if (has_others)
    config.at(config.has_value("mlp_only_layers") ? "mlp_only_layers" : "decoder_sparse_step")
        .fail("experts in some of the blocks are not modelled", "let all blocks have them");
  return made;
}

// The shared experts are one layer.
Decoder deepseek(const JsonValue& config, bool has_bias) {
  const auto whole = [&](const char* key, std::int64_t otherwise) {
    return has_bias ? size_or(config, key, otherwise) : config.at(key).whole(1, largest_size);
  };
  Decoder made;
  made.blocks = whole("num_hidden_layers", 61);
  made.features = whole("hidden_size", 7168);
  made.heads = made.key_value_heads = whole("num_attention_heads", 128);
  made.head_features = whole("qk_nope_head_dim", 128);
  made.inner = whole("intermediate_size", 18432);
  made.vocabulary = whole("vocab_size", 129280);
  made.sequence = sample_of(config, "max_position_embeddings", 4096);
  made.is_tied = flag_or(config, "tie_word_embeddings", false);
  made.has_gate = true;
  const bool has_no_query_rank = config.has("q_lora_rank") && !config.has_value("q_lora_rank");
  made.latent = {.query_rank = has_no_query_rank ? 0 : whole("q_lora_rank", 1536),
                 .rank = whole("kv_lora_rank", 512),
                 .positioned = whole("qk_rope_head_dim", 64),
                 .value_features = whole("v_head_dim", 128)};
  const std::int64_t inner = whole("moe_intermediate_size", 2048);
  made.experts = {.count = whole("n_routed_experts", 256),
                  .active = whole("num_experts_per_tok", 8),
                  .inner = inner,
                  .shared_inner = inner * whole("n_shared_experts", 1),
                  .bias = has_bias,
                  .dense_blocks = config.has_value("first_k_dense_replace")
                                      ? config.at("first_k_dense_replace").whole(0, largest_size)
                                      : 3};
  if (size_or(config, "moe_layer_freq", 1) != 1)
    config.at("moe_layer_freq")
        .fail("experts in some of the blocks are not modelled", "set it to 1");
  return made;
}
Decoder deepseek_v2(const JsonValue& config) {
  return deepseek(config, false);
}
Decoder deepseek_v3(const JsonValue& config) {
  return deepseek(config, true);
}

Decoder gpt2(const JsonValue& config) {
  Decoder made;
  made.blocks = size_or(config, "n_layer", 12);
  made.features = size_or(config, "n_embd", 768);
  made.heads = made.key_value_heads = size_or(config, "n_head", 12);
  made.head_features = of_head(config, made.features, made.heads);
  made.inner = size_or(config, "n_inner", 4 * made.features);
  made.vocabulary = size_or(config, "vocab_size", 50257);
  made.positions = size_or(config, "n_positions", 1024);
  made.sequence = std::min(made.positions, longest_default_sample);
  made.is_tied = flag_or(config, "tie_word_embeddings", true);
  made.norm_bias = made.query_bias = made.output_bias = made.inner_bias = true;
  return made;
}

Decoder gpt_neox(const JsonValue& config) {
  Decoder made;
  made.blocks = size_or(config, "num_hidden_layers", 44);
  made.features = size_or(config, "hidden_size", 6144);
  made.heads = made.key_value_heads = size_or(config, "num_attention_heads", 64);
  made.head_features = of_head(config, made.features, made.heads);
  made.inner = size_or(config, "intermediate_size", 24576);
  made.vocabulary = size_or(config, "vocab_size", 50432);
  made.sequence = sample_of(config, "max_position_embeddings", 2048);
  made.is_tied = flag_or(config, "tie_word_embeddings", false);
  made.is_parallel = flag_or(config, "use_parallel_residual", true);
  made.norm_bias = made.inner_bias = true;
  made.query_bias = made.output_bias = flag_or(config, "attention_bias", true);
  made.rotary_base = rotary_base(config, "rotary_emb_base", usual_rotary_base);
  const double share = config.has_value("rotary_pct") ? config.at("rotary_pct").number(0, 1) : 0.25;
  made.rotary_features = static_cast<std::int64_t>(share * static_cast<double>(made.head_features));
  return made;
}

// Without the newer architecture, "multi_query" has one head of keys and values whatever their number says.
Decoder falcon(const JsonValue& config) {
  const bool is_new = flag_or(config, "new_decoder_architecture", false);
  Decoder made;
  made.blocks = size_or(config, "num_hidden_layers", 32);
  made.features = size_or(config, "hidden_size", 4544);
  made.heads = size_or(config, "num_attention_heads", 71);
  made.key_value_heads = is_new ? size_or(config, "num_kv_heads", made.heads)
                         : flag_or(config, "multi_query", true) ? 1
                                                                : made.heads;
  made.head_features = of_head(config, made.features, made.heads);
  made.inner = size_or(config, "ffn_hidden_size", 4 * made.features);
  made.vocabulary = size_or(config, "vocab_size", 65024);
  made.sequence = sample_of(config, "max_position_embeddings", 2048);
  made.is_tied = flag_or(config, "tie_word_embeddings", true);
  made.is_parallel = is_new || flag_or(config, "parallel_attn", true);
  made.norms = static_cast<int>(is_new && config.has_value("num_ln_in_parallel_attn")
                                    ? config.at("num_ln_in_parallel_attn").whole(1, 2)
                                    : (is_new ? 2 : 1));
  made.norm_bias = true;
  made.query_bias = made.output_bias = made.inner_bias = flag_or(config, "bias", false);
  made.alibi = flag_or(config, "alibi", false);
  if (!made.alibi) made.rotary_base = rotary_base(config, "rope_theta", usual_rotary_base);
  return made;
}

// Positions are in the scores (ALiBi), also where "learned_pos_emb" says otherwise.
Decoder mpt(const JsonValue& config) {
  Decoder made;
  made.blocks = size_or(config, "n_layers", 24);
  made.features = size_or(config, "d_model", 2048);
  made.heads = made.key_value_heads = size_or(config, "n_heads", 16);
  if (config.has_value("attn_config")) {
    const JsonValue attention = config.at("attn_config");
    made.key_value_heads = size_or(attention, "kv_n_heads", made.heads);
    if (attention.has_value("attn_type") &&
        attention.at("attn_type").text() == "multiquery_attention")
      made.key_value_heads = 1;
  }
  made.head_features = of_head(config, made.features, made.heads);
  made.inner = size_or(config, "expansion_ratio", 4) * made.features;
  made.vocabulary = size_or(config, "vocab_size", 50368);
  made.sequence = sample_of(config, "max_seq_len", 2048);
  made.is_tied = flag_or(config, "tie_word_embeddings", true);
  const bool has_bias = !flag_or(config, "no_bias", true);
  made.norm_bias = made.query_bias = made.output_bias = made.inner_bias = has_bias;
  made.alibi = true;
  return made;
}

struct Architecture {
  std::string_view type;
  Decoder (*read)(const JsonValue&);
};
constexpr std::array architectures = {Architecture{"llama", llama},
                                      Architecture{"mistral", mistral},
                                      Architecture{"mixtral", mixtral},
                                      Architecture{"qwen2", qwen2},
                                      Architecture{"qwen3", qwen3},
                                      Architecture{"qwen3_moe", qwen3_moe},
                                      Architecture{"deepseek_v2", deepseek_v2},
                                      Architecture{"deepseek_v3", deepseek_v3},
                                      Architecture{"gpt2", gpt2},
                                      Architecture{"gpt_neox", gpt_neox},
                                      Architecture{"falcon", falcon},
                                      Architecture{"mpt", mpt}};

// "Llama-3.1-8B/config.json" is Llama-3.1-8B.
std::string name_of(const JsonValue& config, const std::string& file, std::string_view type) {
  std::string name(type);
  if (config.has_value("_name_or_path")) {
    const std::string path = config.at("_name_or_path").text();
    name = path.substr(path.find_last_of('/') + 1);
  }
  if (!is_name(name) || name == type) {
    const std::filesystem::path path(file);
    const std::string stem = path.stem().string();
    const std::string folder = path.parent_path().filename().string();
    name = stem != "config" ? stem : folder;
  }
  return is_name(name) ? name : std::string(type);
}

}  // namespace

bool looks_like_hugging_face(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         (text.find("\"model_type\"") != std::string_view::npos ||
          text.find("\"architectures\"") != std::string_view::npos);
}

Network parse_hugging_face(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file, "the configuration",
                              "give a config.json as Hugging Face publishes it");
  const JsonValue config = document.root();
  const std::string type = config.at("model_type").text(100);
  const auto* const known = std::ranges::find(architectures, type, &Architecture::type);
  if (known == architectures.end()) {
    std::vector<std::string_view> names;
    for (const Architecture& architecture : architectures) names.push_back(architecture.type);
    config.at("model_type")
        .fail(fmt::format("no network of type {} is known here", type),
              fmt::format("give one of {}, or describe it in YAML (docs/formats.md)",
                          fmt::join(names, ", ")));
  }
  // DeepSeek 3 was trained in the FP8 that its file has.
  if (config.has_value("quantization_config") && type != "deepseek_v3")
    config.at("quantization_config")
        .fail("these weights are quantised, and are not trained",
              "give the configuration of the network that they were made of");
  Decoder sizes = known->read(config);
  sizes.name = name_of(config, file, type);
  return decoder(sizes);
}

}  // namespace paceline::models
