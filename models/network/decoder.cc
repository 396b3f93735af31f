// Tests: tests/models/hugging_face_test.cc, tests/models/zoo_test.cc.
#include "models/network/decoder.h"

namespace paceline::models {
namespace {

class Blocks {
 public:
  Blocks(NetworkBuilder& network, const Decoder& sizes) : net_(network), sizes_(sizes) {}

  // Adds a block that reads the named layer. Returns the name of its last layer.
  std::string add(const std::string& name, const std::string& input) {
    const std::string first = net_.add(name + ".norm1", LayerNorm{sizes_.norm_bias}, {input});
    const std::string attended = attention(name + ".attn", first);
    if (sizes_.is_parallel) {
      const std::string second =
          sizes_.norms == 1 ? first
                            : net_.add(name + ".norm2", LayerNorm{sizes_.norm_bias}, {input});
      const std::string fed = feed_forward(name + ".mlp", second);
      return net_.add(name + ".add", Add{}, {input, attended, fed});
    }
    const std::string middle = net_.add(name + ".add1", Add{}, {input, attended});
    const std::string second = net_.add(name + ".norm2", LayerNorm{sizes_.norm_bias});
    return net_.add(name + ".add2", Add{}, {middle, feed_forward(name + ".mlp", second)});
  }

 private:
  std::string attention(const std::string& name, const std::string& input) {
    const std::int64_t all = sizes_.heads + 2 * sizes_.key_value_heads;
    net_.add(name + ".qkv", Linear{all * sizes_.head_features, sizes_.query_bias}, {input});
    net_.add(name, Attention{.heads = sizes_.heads,
                             .key_value_heads = sizes_.key_value_heads,
                             .causal = true,
                             .fused = true,
                             .sliding_window = sizes_.sliding_window});
    return net_.add(name + ".out", Linear{sizes_.features, sizes_.output_bias});
  }

  std::string feed_forward(const std::string& name, const std::string& input) {
    const Linear inner{sizes_.inner, sizes_.inner_bias};
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
  for (std::int64_t i = 0; i < sizes.blocks; ++i) last = blocks.add("h" + std::to_string(i), last);
  const std::string normalised = net.add("norm", LayerNorm{sizes.norm_bias}, {last});
  if (sizes.is_tied)
    net.add("logits", TiedLinear{}, {normalised, "tokens"});
  else
    net.add("logits", Linear{sizes.vocabulary, false});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace paceline::models
