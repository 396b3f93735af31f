// Tests: tests/models/hugging_face_test.cc, tests/models/zoo_test.cc.
#include "models/network/decoder.h"

#include <vector>

namespace paceline::models {
namespace {

class Blocks {
 public:
  Blocks(NetworkBuilder& network, const Decoder& sizes) : net_(network), sizes_(sizes) {}

  // Adds a block that reads the named layer, with experts or the usual feed-forward layers. Returns the name of its
  // last layer.
  std::string add(const std::string& name, const std::string& input, bool has_experts) {
    const std::string first = net_.add(name + ".norm1", norm(), {input});
    const std::string attended = attention(name + ".attn", first);
    if (sizes_.is_parallel) {
      const std::string second =
          sizes_.norms == 1 ? first : net_.add(name + ".norm2", norm(), {input});
      const std::string fed = feed_forward(name + ".mlp", second);
      return net_.add(name + ".add", Add{}, {input, attended, fed});
    }
    const std::string middle = net_.add(name + ".add1", Add{}, {input, attended});
    const std::string second = net_.add(name + ".norm2", norm());
    if (!has_experts)
      return net_.add(name + ".add2", Add{}, {middle, feed_forward(name + ".mlp", second)});
    return experts(name, middle, second);
  }

 private:
  [[nodiscard]] LayerNorm norm() const { return {sizes_.norm_bias, sizes_.rms_norm}; }

  std::string attention(const std::string& name, const std::string& input) {
    if (sizes_.latent.rank > 0) return latent_attention(name, input);
    const std::int64_t all = sizes_.heads + 2 * sizes_.key_value_heads;
    net_.add(name + ".qkv", Linear{all * sizes_.head_features, sizes_.query_bias}, {input});
    net_.add(name, Attention{.heads = sizes_.heads,
                             .key_value_heads = sizes_.key_value_heads,
                             .causal = true,
                             .fused = true,
                             .sliding_window = sizes_.sliding_window,
                             .head_norms = sizes_.head_norms,
                             .rotary_base = sizes_.rotary_base,
                             .rotary_features = sizes_.rotary_features,
                             .alibi = sizes_.alibi});
    return net_.add(name + ".out", Linear{sizes_.features, sizes_.output_bias});
  }

  std::string latent_attention(const std::string& name, const std::string& input) {
    const LatentAttention& latent = sizes_.latent;
    const std::int64_t query = sizes_.head_features + latent.positioned;
    std::string queries = input;
    if (latent.query_rank > 0) {
      net_.add(name + ".q_down", Linear{latent.query_rank, false}, {input});
      queries = net_.add(name + ".q_norm", LayerNorm{.bias = false, .rms = true});
    }
    queries = net_.add(name + ".q", Linear{sizes_.heads * query, false}, {queries});
    const std::string shared =
        net_.add(name + ".k_shared", Linear{latent.positioned, false}, {input});
    net_.add(name + ".kv_down", Linear{latent.rank, false}, {input});
    net_.add(name + ".kv_norm", LayerNorm{.bias = false, .rms = true});
    const std::string keys_and_values = net_.add(
        name + ".kv", Linear{sizes_.heads * (sizes_.head_features + latent.value_features), false});
    net_.add(name,
             Attention{.heads = sizes_.heads,
                       .causal = true,
                       .fused = true,
                       .value_features = latent.value_features},
             {queries, keys_and_values, shared});
    return net_.add(name + ".out", Linear{sizes_.features, sizes_.output_bias});
  }

  // Adds the results of a token's experts, and of the layer beside them, to `residual`. The experts come last, so that
  // their gradients stand together.
  std::string experts(const std::string& name, const std::string& residual,
                      const std::string& input) {
    const Experts& of = sizes_.experts;
    std::vector<std::string> sum = {residual};
    if (of.shared_inner > 0) sum.push_back(feed_forward(name + ".shared", input, of.shared_inner));
    const std::string routed =
        net_.add(name + ".router", RouteTokens{of.count, of.active, of.bias}, {input});
    const ExpertLinear inner{of.count, of.inner};
    net_.add(name + ".experts.gate", inner, {routed});
    const std::string gate = net_.add(name + ".experts.silu", Silu{});
    const std::string up = net_.add(name + ".experts.up", inner, {routed});
    net_.add(name + ".experts.mul", Multiply{}, {gate, up});
    net_.add(name + ".experts.down", ExpertLinear{of.count, sizes_.features});
    sum.push_back(net_.add(name + ".combine", CombineTokens{of.active}));
    return net_.add(name + ".add2", Add{}, sum);
  }

  std::string feed_forward(const std::string& name, const std::string& input) {
    return feed_forward(name, input, sizes_.inner);
  }
  std::string feed_forward(const std::string& name, const std::string& input,
                           std::int64_t features) {
    const Linear inner{features, sizes_.inner_bias};
    if (sizes_.has_gate) {
      net_.add(name + ".gate", inner, {input});
      const std::string gate = net_.add(name + ".silu", Silu{});
      const std::string up = net_.add(name + ".up", inner, {input});
      net_.add(name + ".mul", Multiply{}, {gate, up});
    } else {
      net_.add(name + ".up", inner, {input});
      net_.add(name + ".gelu", Gelu{});
    }
    return net_.add(name + ".down", Linear{sizes_.features, sizes_.inner_bias});
  }

  NetworkBuilder& net_;
  const Decoder& sizes_;
};

}  // namespace

Network decoder(const Decoder& sizes) {
  using Of = Embedding::Of;
  NetworkBuilder net(sizes.name, Shape::sequence(sizes.sequence));
  std::string last =
      net.add("tokens", Embedding{Of::tokens, sizes.vocabulary, sizes.features}, {"input"});
  if (sizes.positions > 0) {
    const std::string where =
        net.add("positions", Embedding{Of::positions, sizes.positions, sizes.features}, {"input"});
    last = net.add("embeddings", Add{}, {last, where});
  }
  Blocks blocks(net, sizes);
  for (std::int64_t i = 0; i < sizes.blocks; ++i)
    last = blocks.add("h" + std::to_string(i), last,
                      sizes.experts.count > 0 && i >= sizes.experts.dense_blocks);
  const std::string normalised =
      net.add("norm", LayerNorm{sizes.norm_bias, sizes.rms_norm}, {last});
  if (sizes.is_tied)
    net.add("logits", TiedLinear{}, {normalised, "tokens"});
  else
    net.add("logits", Linear{sizes.vocabulary, false});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace paceline::models
