// BERT for pretraining (Devlin 2018): the encoder, the pooler, and the heads of both tasks, masked
// tokens and next sentence. The decoder of tokens is tied to their embedding. 15 % of the tokens
// are masked, and only these are decoded, as the authors' code and its successors do.
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

struct Size {
  int layers;
  std::int64_t features;
  std::int64_t heads;
};

constexpr std::int64_t vocabulary = 30522;  // uncased
constexpr std::int64_t positions = 512;
constexpr double dropout = 0.1;
constexpr double masked = 0.15;

// The sum of a layer's output, after a dropout, and what goes around it, normalised.
std::string residual(NetworkBuilder& net, const std::string& name, const std::string& norm,
                     const std::string& around) {
  const std::string dropped = net.add(name + ".dropout", Dropout{dropout});
  net.add(name + ".add", Add{}, {dropped, around});
  return net.add(norm, LayerNorm{});
}

std::string encoder_layer(NetworkBuilder& net, const std::string& name, const std::string& input,
                          const Size& size) {
  std::vector<std::string> read;
  for (const char* what : {".query", ".key", ".value"})
    read.push_back(net.add(name + what, Linear{size.features}, {input}));
  net.add(name + ".attention", Attention{.heads = size.heads, .dropout = dropout}, read);
  net.add(name + ".attn_out", Linear{size.features});
  const std::string middle = residual(net, name + ".attn_out", name + ".attn_ln", input);
  net.add(name + ".ffn1", Linear{4 * size.features});
  net.add(name + ".gelu", Gelu{});
  net.add(name + ".ffn2", Linear{size.features});
  return residual(net, name + ".ffn2", name + ".ffn_ln", middle);
}

Network build(const char* name, const Size& size) {
  using Of = Embedding::Of;
  NetworkBuilder net(name, Shape::sequence(positions));
  const std::int64_t features = size.features;
  const std::vector<std::string> embedded = {
      net.add("word_embeddings", Embedding{Of::tokens, vocabulary, features}, {"input"}),
      net.add("position_embeddings", Embedding{Of::positions, positions, features}, {"input"}),
      net.add("token_type_embeddings", Embedding{Of::segments, 2, features}, {"input"})};
  net.add("embeddings", Add{}, embedded);
  net.add("emb_ln", LayerNorm{});
  std::string last = net.add("emb_dropout", Dropout{dropout});
  for (int i = 0; i < size.layers; ++i)
    last = encoder_layer(net, "layer" + std::to_string(i), last, size);
  net.add("pooler.first", FirstToken{}, {last});
  net.add("pooler", Linear{features});
  const std::string pooled = net.add("pooler.tanh", Tanh{});
  net.add("mlm.masked", SelectTokens{masked}, {last});
  net.add("mlm.dense", Linear{features});
  net.add("mlm.gelu", Gelu{});
  const std::string transformed = net.add("mlm.ln", LayerNorm{});
  net.add("mlm", TiedLinear{.bias = true}, {transformed, "word_embeddings"});
  const std::string of_tokens = net.add("mlm.loss", SoftmaxCrossEntropy{});
  net.add("nsp", Linear{2}, {pooled});
  const std::string of_sentences = net.add("nsp.loss", SoftmaxCrossEntropy{});
  net.add("loss", Add{}, {of_tokens, of_sentences});
  return net.build();
}

}  // namespace

Network bert_base() {
  return build("bert-base", {12, 768, 12});
}
Network bert_large() {
  return build("bert-large", {24, 1024, 16});
}

}  // namespace paceline::models
