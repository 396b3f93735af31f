// GPT-2 (Radford 2019): blocks that normalise what they read, and a decoder tied to the embedding of
// tokens. Names are those of the authors' code, whose weights are stored (in, out).
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

constexpr std::int64_t vocabulary = 50257;
constexpr std::int64_t positions = 1024;
constexpr double dropout = 0.1;

// The sum of a layer's output, after a dropout, and what goes around it.
std::string residual(NetworkBuilder& net, const std::string& name, const std::string& around) {
  const std::string dropped = net.add(name + ".dropout", Dropout{dropout});
  return net.add(name + ".add", Add{}, {dropped, around});
}

std::string block(NetworkBuilder& net, const std::string& name, const std::string& input,
                  std::int64_t features, std::int64_t heads) {
  net.add(name + ".ln1", LayerNorm{}, {input});
  net.add(name + ".attn.qkv", Linear{3 * features});
  net.add(name + ".attn", Attention{.heads = heads, .causal = true, .dropout = dropout});
  net.add(name + ".attn.proj", Linear{features});
  const std::string middle = residual(net, name + ".attn.proj", input);
  net.add(name + ".ln2", LayerNorm{});
  net.add(name + ".mlp.fc", Linear{4 * features});
  net.add(name + ".mlp.gelu", Gelu{});
  net.add(name + ".mlp.proj", Linear{features});
  return residual(net, name + ".mlp.proj", middle);
}

Network build(const char* name, int blocks, std::int64_t features, std::int64_t heads) {
  using Of = Embedding::Of;
  NetworkBuilder net(name, Shape::sequence(positions));
  const std::vector<std::string> embedded = {
      net.add("wte", Embedding{Of::tokens, vocabulary, features}, {"input"}),
      net.add("wpe", Embedding{Of::positions, positions, features}, {"input"})};
  net.add("embeddings", Add{}, embedded);
  std::string last = net.add("embeddings.dropout", Dropout{dropout});
  for (int i = 0; i < blocks; ++i)
    last = block(net, "h" + std::to_string(i), last, features, heads);
  const std::string normalised = net.add("ln_f", LayerNorm{});
  net.add("logits", TiedLinear{}, {normalised, "wte"});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace

Network gpt2_small() {
  return build("gpt2-small", 12, 768, 12);
}
Network gpt2_medium() {
  return build("gpt2-medium", 24, 1024, 16);
}
Network gpt2_large() {
  return build("gpt2-large", 36, 1280, 20);
}
Network gpt2_xl() {
  return build("gpt2-xl", 48, 1600, 25);
}

}  // namespace paceline::models
