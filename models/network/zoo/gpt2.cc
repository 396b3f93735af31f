// GPT-2 (Radford 2019): blocks that normalise what they read, and a decoder tied to the embedding of
// tokens. Names are those of the authors' code, whose weights are stored (in, out). gpt2-tiny is the one that nanoGPT
// trains on CPUs (Karpathy 2022, README), for bytes.
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

struct Sizes {
  int blocks = 12;
  std::int64_t features = 768;
  std::int64_t heads = 12;
  std::int64_t vocabulary = 50257;
  std::int64_t positions = 1024;
  double dropout = 0.1;  // 0: there are no such layers, and attention is fused
};

std::string dropped(NetworkBuilder& net, const std::string& name, const Sizes& sizes) {
  return sizes.dropout > 0 ? net.add(name + ".dropout", Dropout{sizes.dropout}) : name;
}

// The sum of a layer's output, after a dropout, and what goes around it.
std::string residual(NetworkBuilder& net, const std::string& name, const std::string& around,
                     const Sizes& sizes) {
  const std::string last = dropped(net, name, sizes);
  return net.add(name + ".add", Add{}, {last, around});
}

std::string block(NetworkBuilder& net, const std::string& name, const std::string& input,
                  const Sizes& sizes) {
  net.add(name + ".ln1", LayerNorm{}, {input});
  net.add(name + ".attn.qkv", Linear{3 * sizes.features});
  net.add(name + ".attn", Attention{.heads = sizes.heads,
                                    .causal = true,
                                    .dropout = sizes.dropout,
                                    .fused = sizes.dropout == 0});
  net.add(name + ".attn.proj", Linear{sizes.features});
  const std::string middle = residual(net, name + ".attn.proj", input, sizes);
  net.add(name + ".ln2", LayerNorm{});
  net.add(name + ".mlp.fc", Linear{4 * sizes.features});
  net.add(name + ".mlp.gelu", Gelu{});
  net.add(name + ".mlp.proj", Linear{sizes.features});
  return residual(net, name + ".mlp.proj", middle, sizes);
}

Network build(const char* name, const Sizes& sizes) {
  using Of = Embedding::Of;
  NetworkBuilder net(name, Shape::sequence(sizes.positions));
  const std::vector<std::string> embedded = {
      net.add("wte", Embedding{Of::tokens, sizes.vocabulary, sizes.features}, {"input"}),
      net.add("wpe", Embedding{Of::positions, sizes.positions, sizes.features}, {"input"})};
  net.add("embeddings", Add{}, embedded);
  std::string last = dropped(net, "embeddings", sizes);
  for (int i = 0; i < sizes.blocks; ++i) last = block(net, "h" + std::to_string(i), last, sizes);
  const std::string normalised = net.add("ln_f", LayerNorm{});
  net.add("logits", TiedLinear{}, {normalised, "wte"});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace

Network gpt2_tiny() {
  return build(
      "gpt2-tiny",
      {.blocks = 4, .features = 128, .heads = 4, .vocabulary = 256, .positions = 64, .dropout = 0});
}
Network gpt2_small() {
  return build("gpt2-small", {});
}
Network gpt2_medium() {
  return build("gpt2-medium", {.blocks = 24, .features = 1024, .heads = 16});
}
Network gpt2_large() {
  return build("gpt2-large", {.blocks = 36, .features = 1280, .heads = 20});
}
Network gpt2_xl() {
  return build("gpt2-xl", {.blocks = 48, .features = 1600, .heads = 25});
}

}  // namespace paceline::models
