// Configurations of Hugging Face: exact parameter counts against published totals, the defaults of
// classes, and what is refused.
#include "models/network/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "models/network/decoder.h"
#include "models/network/work.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using ::testing::HasSubstr;

std::int64_t parameters(const std::string& config) {
  return work(parse_hugging_face(config, "config.json")).parameters();
}

std::string error_of_config(const std::string& config) {
  return test::error_of([&] { return work(parse_hugging_face(config, "config.json")).sequence; });
}

// Totals of the published checkpoints (model cards and their indices of weights).
TEST(HuggingFace, CountsAreThoseOfThePublishedNetworks) {
  for (const auto& [config, count] : {
           std::pair{R"({"model_type":"llama","max_position_embeddings":4096})", 6'738'415'616},
           {R"({"model_type":"llama","hidden_size":5120,"intermediate_size":13824,
                "num_attention_heads":40,"num_hidden_layers":40,"num_key_value_heads":40})",
            13'015'864'320},
           {R"({"model_type":"llama","hidden_size":4096,"intermediate_size":14336,
                "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,
                "vocab_size":128256,"max_position_embeddings":131072,"head_dim":null,
                "rope_scaling":{"factor":8.0},"torch_dtype":"bfloat16"})",
            8'030'261'248},
           {R"({"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"head_dim":64,
                "num_attention_heads":32,"num_hidden_layers":16,"num_key_value_heads":8,
                "vocab_size":128256,"tie_word_embeddings":true})",
            1'235'814'400},
           {R"({"model_type":"mistral","sliding_window":4096})", 7'241'732'096},
           {R"({"model_type":"mistral","hidden_size":5120,"head_dim":128,"num_hidden_layers":40,
                "vocab_size":131072,"sliding_window":null,"max_position_embeddings":1024000})",
            12'247'782'400},
           {R"({"model_type":"qwen2","hidden_size":3584,"intermediate_size":18944,
                "num_attention_heads":28,"num_hidden_layers":28,"num_key_value_heads":4,
                "vocab_size":152064,"sliding_window":131072,"use_sliding_window":false})",
            7'615'616'512},
           {R"({"model_type":"qwen2","hidden_size":896,"intermediate_size":4864,
                "num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,
                "tie_word_embeddings":true})",
            494'032'768},
           {R"({"model_type":"mixtral","sliding_window":null})", 46'702'792'704},
           {R"({"model_type":"mixtral","hidden_size":6144,"intermediate_size":16384,
                "num_attention_heads":48,"num_hidden_layers":56,"num_key_value_heads":8,
                "num_experts_per_tok":2,"vocab_size":32768})",
            140'630'071'296},
           {R"({"model_type":"qwen3","hidden_size":4096,"intermediate_size":12288,
                "num_attention_heads":32,"num_hidden_layers":36,"num_key_value_heads":8})",
            8'190'735'360},
           {R"({"model_type":"qwen3_moe","num_hidden_layers":48})", 30'532'122'624},
           {R"({"model_type":"deepseek_v3","quantization_config":{"fmt":"e4m3"},
                "num_nextn_predict_layers":1})",
            671'026'419'200},
           {R"({"model_type":"deepseek_v2","hidden_size":2048,"intermediate_size":10944,
                "num_attention_heads":16,"num_hidden_layers":27,"vocab_size":102400,
                "q_lora_rank":null,"kv_lora_rank":512,"qk_nope_head_dim":128,
                "qk_rope_head_dim":64,"v_head_dim":128,"moe_intermediate_size":1408,
                "n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,
                "first_k_dense_replace":1,"moe_layer_freq":1})",
            15'706'484'224},
           {R"({"model_type":"deepseek_v2","hidden_size":5120,"intermediate_size":12288,
                "num_attention_heads":128,"num_hidden_layers":60,"vocab_size":102400,
                "q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,
                "qk_rope_head_dim":64,"v_head_dim":128,"moe_intermediate_size":1536,
                "n_routed_experts":160,"n_shared_experts":2,"num_experts_per_tok":6,
                "first_k_dense_replace":1})",
            235'741'434'880},
           {R"({"model_type":"gpt2"})", 124'439'808},
           {R"({"model_type":"gpt2","n_embd":1600,"n_head":25,"n_layer":48,"n_inner":null})",
            1'557'611'200},
           {R"({"model_type":"gpt_neox"})", 20'554'567'680},
           {R"({"model_type":"falcon"})", 6'921'720'704},
           {R"({"model_type":"falcon","hidden_size":8192,"num_attention_heads":128,
                "num_hidden_layers":60,"num_kv_heads":8,"new_decoder_architecture":true})",
            41'303'293'952},
           {R"({"model_type":"mpt","d_model":4096,"n_heads":32,"n_layers":32,"vocab_size":50432,
                "attn_config":{"alibi":true,"attn_type":"multihead_attention"}})",
            6'649'286'656},
       })
    EXPECT_EQ(parameters(config), count) << config;
}

TEST(HuggingFace, TheZooHasThePublishedCountsToo) {
  for (const auto& [name, count] : {std::pair{"llama-2-7b", 6'738'415'616},
                                    {"llama-2-70b", 68'976'648'192},
                                    {"llama-3-8b", 8'030'261'248},
                                    {"llama-3-70b", 70'553'706'496},
                                    {"llama-3.1-405b", 405'853'388'800},
                                    {"mistral-7b", 7'241'732'096},
                                    {"qwen2.5-7b", 7'615'616'512},
                                    {"qwen2.5-72b", 72'706'203'648},
                                    {"mixtral-8x7b", 46'702'792'704},
                                    {"qwen3-30b-a3b", 30'532'122'624},
                                    {"qwen3-235b-a22b", 235'093'634'560},
                                    {"deepseek-v3", 671'026'419'200},
                                    {"gpt3-175b", 174'604'259'328}})
    EXPECT_EQ(work(zoo_network(name)).parameters(), count) << name;
}

// 6 N of a token's parameters in products, and causal attention's half of the square.
TEST(HuggingFace, FlopsAreTheFieldsFormula) {
  const NetworkWork llama = work(zoo_network("llama-3-8b"));
  const double s = 8192;
  const double in_products = 8'030'261'248.0 - 128256.0 * 4096 - 65 * 4096.0;
  const double square = 32.0 * 4096 * s * s / 2;  // pairs of all blocks, times their features
  EXPECT_DOUBLE_EQ(static_cast<double>(llama.forward_flops()), 2 * in_products * s + 4 * square);
  EXPECT_DOUBLE_EQ(static_cast<double>(llama.backward_flops()), 4 * in_products * s + 10 * square);
}

TEST(HuggingFace, ASlidingWindowBoundsAttention) {
  const auto flops = [](std::int64_t sequence, std::int64_t window) {
    const Decoder sizes{.name = "small",
                        .features = 64,
                        .heads = 4,
                        .key_value_heads = 2,
                        .head_features = 16,
                        .inner = 128,
                        .vocabulary = 100,
                        .sequence = sequence,
                        .sliding_window = window};
    return work(decoder(sizes)).forward_flops();
  };
  EXPECT_EQ(flops(256, 256), flops(256, 0));
  EXPECT_EQ(flops(256, 1000), flops(256, 0));
  // Each element but the first 64 attends to 64.
  EXPECT_EQ(flops(256, 0) - flops(256, 64), 4 * 64 * (256 * 256 / 2 - (64 * 256 - 64 * 64 / 2)));
}

TEST(HuggingFace, FusedAttentionKeepsNoScores) {
  const auto kept = [](const char* fused) {
    const std::string text = std::string(R"(network: one
input: {tokens: 1024}
layers:
  - {name: tokens, kind: embedding, entries: 100, features: 64}
  - {name: qkv, kind: linear, outputs: 192}
  - {name: attn, kind: attention, heads: 4, causal: true, fused: )") +
                             fused + R"(}
  - {name: out, kind: linear, outputs: 10}
  - {name: loss, kind: softmax_cross_entropy}
)";
    const Network network = parse_network_yaml(text, "one.yaml");
    EXPECT_EQ(parse_network_yaml(to_yaml(network), "again.yaml"), network);
    return work(network).layers[2].kept;
  };
  EXPECT_EQ(kept("false"), 1024 * 192 + 4 * 1024 * 1024);
  EXPECT_EQ(kept("true"), 1024 * 192 + 4 * 1024);
}

TEST(HuggingFace, ASampleIsAsLongAsThePositionsAreUpTo8192) {
  const auto length = [](const std::string& config) {
    return parse_hugging_face(config, "config.json").input().height;
  };
  EXPECT_EQ(length(R"({"model_type":"llama","max_position_embeddings":131072})"), 8192);
  EXPECT_EQ(length(R"({"model_type":"llama"})"), 2048);
  EXPECT_EQ(length(R"({"model_type":"gpt2"})"), 1024);
}

TEST(HuggingFace, TheNameIsThatOfTheCheckpointOrOfTheFile) {
  const auto name = [](const std::string& config, const std::string& file) {
    return parse_hugging_face(config, file).name();
  };
  EXPECT_EQ(name(R"({"model_type":"gpt2","_name_or_path":"openai/gpt2-xl"})", "config.json"),
            "gpt2-xl");
  EXPECT_EQ(name(R"({"model_type":"gpt2"})", "nets/my-gpt/config.json"), "my-gpt");
  EXPECT_EQ(name(R"({"model_type":"gpt2"})", "my-gpt.json"), "my-gpt");
  EXPECT_EQ(name(R"({"model_type":"gpt2"})", "config.json"), "gpt2");
}

TEST(HuggingFace, WhatIsNotKnownIsRefusedByName) {
  EXPECT_EQ(error_of_config(R"({"model_type":"mamba"})"),
            "config.json: model_type: no network of type mamba is known here; give one of llama, "
            "mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, gpt2, gpt_neox, "
            "falcon, mpt, or describe it in YAML (docs/formats.md)");
  EXPECT_THAT(error_of_config(R"({"model_type":"mixtral","num_experts_per_tok":9})"),
              HasSubstr("active 9 of experts 8"));
  EXPECT_THAT(error_of_config(R"({"model_type":"qwen3_moe","decoder_sparse_step":2})"),
              HasSubstr("decoder_sparse_step: experts in some of the blocks are not modelled"));
  EXPECT_THAT(error_of_config(R"({"model_type":"deepseek_v2"})"), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(error_of_config(R"({"model_type":"llama","quantization_config":{"bits":4}})"),
              HasSubstr("these weights are quantised"));
  EXPECT_THAT(error_of_config(R"({"model_type":"llama","hidden_size":-1})"),
              HasSubstr("config.json: hidden_size: -1"));
  EXPECT_THAT(error_of_config(R"({"model_type":"llama","num_attention_heads":7})"),
              HasSubstr("4096 features are no 7 heads"));
  EXPECT_THAT(error_of_config(R"({"model_type":"llama","num_key_value_heads":5})"),
              HasSubstr("h0.attn"));
  EXPECT_THAT(error_of_config(R"({"architectures":["LlamaForCausalLM"]})"),
              HasSubstr("model_type"));
  EXPECT_THAT(error_of_config("{"), HasSubstr("config.json:1"));
  EXPECT_TRUE(looks_like_hugging_face(R"( {"model_type": "x"})"));
  EXPECT_FALSE(looks_like_hugging_face("network: x\n"));
}

}  // namespace
}  // namespace paceline::models
