// Networks that read a sequence: counts against closed forms and against loops, tied weights, the
// length of the sequence, and files that say something else.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>

#include "models/network/network_json.h"
#include "models/network/shape_inference.h"
#include "models/network/work.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using test::error_of;

struct Family {
  const char* name;
  std::int64_t layers;
  std::int64_t features;
};
constexpr Family berts[] = {{"bert-base", 12, 768}, {"bert-large", 24, 1024}};
constexpr Family gpts[] = {{"gpt2-small", 12, 768},
                           {"gpt2-medium", 24, 1024},
                           {"gpt2-large", 36, 1280},
                           {"gpt2-xl", 48, 1600}};

NetworkWork work_at(const char* name, std::int64_t sequence) {
  return work(zoo_network(name).with_sequence(sequence));
}

// A layer of an encoder: 12 h^2 weights that each token goes through, and attention's two products,
// of 2 s h multiply-adds a token.
std::int64_t block_flops(const Family& f, std::int64_t s) {
  return s * f.layers * (24 * f.features * f.features + 4 * s * f.features);
}

TEST(Transformer, FlopsOfBertAreTheClosedForm) {
  for (const Family& f : berts) {
    for (const std::int64_t s : {1, 20, 128, 384, 512}) {
      const std::int64_t h = f.features;
      const std::int64_t masked = (15 * s + 99) / 100;
      const std::int64_t heads = masked * (2 * h * h + 2 * h * 30522) + 2 * h * h + 4 * h;
      const NetworkWork net = work_at(f.name, s);
      EXPECT_EQ(net.forward_flops(), block_flops(f, s) + heads) << f.name << " " << s;
      EXPECT_EQ(net.backward_flops(), 2 * net.forward_flops());
    }
  }
}

TEST(Transformer, FlopsOfGpt2AreTheClosedForm) {
  for (const Family& f : gpts) {
    for (const std::int64_t s : {1, 100, 1024}) {
      const NetworkWork net = work_at(f.name, s);
      EXPECT_EQ(net.forward_flops(), block_flops(f, s) + s * 2 * f.features * 50257) << f.name;
      EXPECT_EQ(net.backward_flops(), 2 * net.forward_flops());
    }
  }
}

// 6 FLOPs a parameter and token (Kaplan 2020) leaves out attention, positions, biases and norms.
TEST(Transformer, TrainingCostsAboutSixFlopsAParameterAndToken) {
  for (const Family& f : gpts) {
    const NetworkWork net = work(zoo_network(f.name));
    const double all = static_cast<double>(net.forward_flops() + net.backward_flops());
    const auto attention = static_cast<double>(f.layers * 12 * f.features * 1024 * 1024);
    EXPECT_NEAR((all - attention) / (6.0 * 1024 * static_cast<double>(net.parameters())), 1, 0.01);
  }
}

// a s + b s^2, with b = 4 L h: the second difference is 2 b whatever s is.
RC_GTEST_PROP(Transformer, FlopsGrowAsTheSequenceAndItsSquare, ()) {
  const Family f = *rc::gen::elementOf(std::vector<Family>(std::begin(gpts), std::end(gpts)));
  const std::int64_t s = *rc::gen::inRange(2, 1023);
  const auto at = [&](std::int64_t n) { return work_at(f.name, n).forward_flops(); };
  RC_ASSERT(at(s + 1) - 2 * at(s) + at(s - 1) == 8 * f.layers * f.features);
  RC_ASSERT(s * at(1) + f.layers * 4 * f.features * s * (s - 1) == at(s));
  // So does what is kept; parameters do not grow.
  const auto kept = [&](std::int64_t n) { return work_at(f.name, n).kept(); };
  const auto third = kept(s + 2) - 3 * kept(s + 1) + 3 * kept(s) - kept(s - 1);
  RC_ASSERT(third == 0);
  RC_ASSERT(work_at(f.name, s).parameters() == work(zoo_network(f.name)).parameters());
}

// Multiply-adds counted one by one, forward and for the gradients of both operands of each product.
RC_GTEST_PROP(Transformer, AttentionCostsWhatItsLoopsDo, ()) {
  const std::int64_t shared = *rc::gen::inRange(1, 4);  // heads of keys and values
  const std::int64_t heads = shared * *rc::gen::inRange(1, 4);
  const std::int64_t each = *rc::gen::inRange(1, 4);
  const std::int64_t s = *rc::gen::inRange(1, 6);
  const bool packed = *rc::gen::arbitrary<bool>();
  const double dropout = *rc::gen::element(0.0, 0.1);
  std::int64_t scores = 0;
  std::int64_t sums = 0;
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t query = 0; query < s; ++query)
      for (std::int64_t key = 0; key < s; ++key)
        for (std::int64_t d = 0; d < each; ++d) ++scores, ++sums;
  const std::int64_t h = heads * each;
  const std::int64_t read = h + 2 * shared * each;  // of an element
  NetworkBuilder net("net", Shape::sequence(s));
  const bool is_stated = packed ? shared != heads : *rc::gen::arbitrary<bool>();
  const Attention attention{.heads = heads,
                            .key_value_heads = is_stated ? shared : 0,
                            .causal = packed,
                            .dropout = dropout};
  if (packed) {
    net.add("qkv", Linear{read});
    net.add("a", attention);
  } else {
    std::vector<std::string> inputs = {net.add("q", Linear{h}, {"input"})};
    for (const char* name : {"k", "v"})
      inputs.push_back(net.add(name, Linear{shared * each}, {"input"}));
    net.add("a", attention, inputs);
  }
  const LayerWork layer = work(net.build()).layers.back();
  RC_ASSERT(layer.output == Shape::sequence(s, h));
  RC_ASSERT(layer.forward_flops == 2 * (scores + sums));
  RC_ASSERT(layer.data_gradient_flops == 2 * 2 * (scores + sums));
  RC_ASSERT(layer.weight_gradient_flops == 0);
  const std::int64_t square = heads * s * s;
  const std::int64_t drop = dropout > 0 ? square : 0;
  RC_ASSERT(layer.forward_read == s * read + 2 * square + drop);
  RC_ASSERT(layer.forward_written == 2 * square + 2 * drop + s * h);
  RC_ASSERT(layer.backward_read == s * (read + h) + 4 * square + 2 * drop);
  RC_ASSERT(layer.backward_written == s * read + 2 * square + drop);
  RC_ASSERT(layer.kept == s * read + square + 2 * drop);
}

TEST(Transformer, GroupsOfQueriesShareWholeHeads) {
  const auto error = [](const std::string& keys, const std::string& attention) {
    return test::error_of([&] {
      return work(
          parse_network_yaml("network: toy\ninput: {tokens: 4}\nlayers:\n"
                             "  - {name: t, kind: embedding, entries: 9, features: 16}\n"
                             "  - {name: q, kind: linear, outputs: 16, input: t}\n"
                             "  - {name: k, kind: linear, outputs: " +
                                 keys +
                                 ", input: t}\n"
                                 "  - {name: v, kind: linear, outputs: 8, input: t}\n"
                                 "  - {name: a, kind: attention, " +
                                 attention + ", inputs: [q, k, v]}\n",
                             "net.yaml"));
    });
  };
  EXPECT_EQ(error("8", "heads: 4"), "no error");
  EXPECT_EQ(error("4", "heads: 4"),
            "net.yaml:8:5: layer 'a': attention reads keys a sequence 4x4 and values a sequence "
            "4x8; let both have whole heads of 4 features");
  EXPECT_EQ(error("8", "heads: 4, key_value_heads: 1"),
            "net.yaml:8:5: layer 'a': attention reads keys a sequence 4x8 and values a sequence "
            "4x8; let both have 1 heads of 4 features");
  EXPECT_EQ(error("8", "heads: 1"),
            "net.yaml:8:5: layer 'a': attention reads keys a sequence 4x8 and values a sequence "
            "4x8; let both have whole heads of 16 features");
}

// Llama's feed-forward layers; its norms have a weight alone. Adam keeps two values for each parameter.
TEST(Transformer, NetworksWithAttentionAreTrainedWithTwoMoments) {
  const auto toy = [](const std::string& layers) {
    return work(
        parse_network_yaml("network: toy\ninput: {tokens: 4}\nlayers:\n"
                           "  - {name: t, kind: embedding, entries: 9, features: 12}\n" +
                               layers,
                           "net.yaml"));
  };
  const NetworkWork gated = toy("  - {name: n, kind: rms_norm}\n  - {name: s, kind: silu}\n");
  EXPECT_EQ(gated.layers[1].parameters.size(), 1u);
  EXPECT_EQ(gated.layers[2].kind, "silu");
  EXPECT_EQ(gated.layers[2].forward_read, 48);
  EXPECT_EQ(gated.optimizer_states, 1);
  EXPECT_EQ(toy("  - {name: a, kind: attention, heads: 2}\n").optimizer_states, 2);
}

struct Moved {
  std::int64_t forward_read, forward_written, backward_read, backward_written, kept;
  bool operator==(const Moved&) const = default;
};
Moved moved(const LayerWork& l) {
  return {l.forward_read, l.forward_written, l.backward_read, l.backward_written, l.kept};
}

TEST(Transformer, TrafficByHand) {
  NetworkBuilder net("net", Shape::sequence(10));
  net.add("table", Embedding{.entries = 50, .features = 4});  // 10 x 4 = 40 elements
  net.add("places", Embedding{.of = Embedding::Of::positions, .entries = 20, .features = 4},
          {"input"});
  net.add("sum", Add{}, {"table", "places"});
  net.add("norm", LayerNorm{});
  net.add("gelu", Gelu{});
  net.add("linear", Linear{6});
  net.add("tanh", Tanh{});
  net.add("some", SelectTokens{0.25});  // 3 of 10
  net.add("first", FirstToken{});
  net.add("loss", SoftmaxCrossEntropy{});
  const std::vector<LayerWork> l = work(net.build()).layers;
  EXPECT_EQ(moved(l[0]), (Moved{50, 40, 50, 40, 10}));
  EXPECT_EQ(moved(l[1]), (Moved{40, 40, 40, 40, 0}));
  EXPECT_EQ(moved(l[3]), (Moved{40, 40, 80, 40, 40}));
  EXPECT_EQ(moved(l[4]), (Moved{40, 40, 80, 40, 40}));
  EXPECT_EQ(moved(l[5]), (Moved{40, 60, 40 + 2 * 60, 40, 40}));
  EXPECT_EQ(moved(l[6]), (Moved{60, 60, 120, 60, 60}));
  EXPECT_EQ(moved(l[7]), (Moved{18, 18, 18, 60, 0}));
  EXPECT_EQ(moved(l[8]), (Moved{6, 6, 6, 18, 0}));
  EXPECT_EQ(l[7].output, Shape::sequence(3, 6));
  EXPECT_EQ(l[8].output, Shape::vector(6));
  // Weights, once for a batch: an embedding's are rows forward, and a dense gradient backward.
  EXPECT_EQ(l[0].forward_weights(), 0);
  EXPECT_EQ(l[0].backward_weights(), 50 * 4);
  EXPECT_EQ(l[5].forward_weights(), 4 * 6 + 6);
  EXPECT_EQ(l[5].backward_weights(), 2 * (4 * 6 + 6));
}

// One tensor in two places: it counts once, at the embedding, whose backward pass is the last.
TEST(Transformer, ATiedTableIsOneTensorWhoseGradientComesLast) {
  for (const char* name : {"bert-base", "bert-large", "gpt2-small", "gpt2-xl"}) {
    const Network network = zoo_network(name);
    const NetworkWork net = work(network);
    const bool is_bert = std::string(name).starts_with("bert");
    const std::string table = is_bert ? "word_embeddings" : "wte";
    const Gradient& last = net.gradients.back();
    EXPECT_EQ(last.name, table);
    EXPECT_EQ(net.layers[static_cast<std::size_t>(last.layer)].name, table);
    int tied = 0;
    for (std::size_t i = 0; i < net.layers.size(); ++i) {
      if (net.layers[i].kind != "tied_linear") continue;
      ++tied;
      EXPECT_GT(static_cast<int>(i), last.layer);
      EXPECT_EQ(network.layers()[i].inputs[1], last.layer);
      EXPECT_EQ(net.layers[i].tied_elements, last.elements);
      EXPECT_EQ(net.layers[i].parameters.size(), is_bert ? 1u : 0u);
      EXPECT_EQ(net.layers[i].forward_weights() - net.layers[i].parameter_elements(),
                last.elements);
    }
    EXPECT_EQ(tied, 1);
    std::map<std::string, int> seen;
    for (const Gradient& gradient : net.gradients) EXPECT_EQ(++seen[gradient.name], 1);
  }
}

TEST(Transformer, TheSequenceIsAnOptionOfTheNetwork) {
  const Network bert = zoo_network("bert-base");
  EXPECT_EQ(work(bert).sequence, 512);
  EXPECT_EQ(work(zoo_network("gpt2-xl")).sequence, 1024);
  EXPECT_EQ(work(zoo_network("resnet50")).sequence, 0);
  const Network shorter = bert.with_sequence(128);
  EXPECT_EQ(work(shorter).sequence, 128);
  EXPECT_EQ(shorter.with_sequence(512), bert);
  EXPECT_NE(network_document().text(work(shorter)).find("\"sequence\": 128"), std::string::npos);
  EXPECT_EQ(network_document().text(work(zoo_network("resnet50"))).find("\"sequence\""),
            std::string::npos);
  EXPECT_EQ(error_of([&] { return work(bert.with_sequence(513)); }),
            "layer 'position_embeddings': a sequence of 513, and a table of 512 positions; use at "
            "most 512");
  EXPECT_EQ(error_of([&] { return bert.with_sequence(0); }), "a sequence of 0; use 1 to 1000000");
  EXPECT_EQ(error_of([] { return zoo_network("resnet50").with_sequence(128); }),
            "network 'resnet50' reads no sequence; leave the length of a sequence out");
}

// 15 % of the tokens, as what runs of BERT call max_predictions_per_seq: 20 of 128, 77 of 512.
TEST(Transformer, BertDecodesMaskedTokensOnly) {
  const auto decoded = [](std::int64_t s) {
    for (const LayerWork& layer : work_at("bert-base", s).layers)
      if (layer.name == "mlm") return layer.output;
    return Shape{};
  };
  EXPECT_EQ(decoded(128), Shape::sequence(20, 30522));
  EXPECT_EQ(decoded(512), Shape::sequence(77, 30522));
  EXPECT_EQ(decoded(100), Shape::sequence(15, 30522));
  EXPECT_EQ(decoded(1), Shape::sequence(1, 30522));
}

std::string toy_error(const std::string& layers, const std::string& input = "{tokens: 8}") {
  return error_of([&] {
    return parse_network_yaml("network: toy\ninput: " + input +
                                  "\nlayers:\n"
                                  "  - {name: e, kind: embedding, entries: 9, features: 6}\n" +
                                  layers,
                              "net.yaml");
  });
}

TEST(TransformerYaml, IsReadAndWritten) {
  const std::string text =
      "network: toy\n"
      "input: {tokens: 8}\n"
      "layers:\n"
      "  - {name: e, kind: embedding, entries: 9, features: 6}\n"
      "  - {name: p, kind: embedding, of: positions, entries: 8, features: 6, input: input}\n"
      "  - {name: sum, kind: add, inputs: [e, p]}\n"
      "  - {name: norm, kind: layer_norm}\n"
      "  - {name: qkv, kind: linear, outputs: 18, bias: false}\n"
      "  - {name: a, kind: attention, heads: 2, causal: true, dropout: 0.1}\n"
      "  - {name: g, kind: gelu}\n"
      "  - {name: some, kind: select_tokens, share: 0.5}\n"
      "  - {name: logits, kind: tied_linear, bias: true, table: e}\n"
      "  - {name: first, kind: first_token}\n"
      "  - {name: t, kind: tanh}\n"
      "  - {name: loss, kind: softmax_cross_entropy}\n";
  const Network network = parse_network_yaml(text, "net.yaml");
  EXPECT_EQ(to_yaml(network), text);
  EXPECT_EQ(infer_shapes(network)[8], Shape::sequence(4, 9));
}

// A table that stands below its reader comes before it, as an input would.
TEST(TransformerYaml, LayersMayStandInAnyOrder) {
  const Network network = parse_network_yaml(
      "network: toy\ninput: {tokens: 8}\nlayers:\n"
      "  - {name: logits, kind: tied_linear, table: e, input: norm}\n"
      "  - {name: norm, kind: layer_norm, input: e}\n"
      "  - {name: e, kind: embedding, entries: 9, features: 6, input: input}\n",
      "net.yaml");
  EXPECT_EQ(network.layers().front().name, "e");
  EXPECT_EQ(network.layers().back().inputs, (std::vector<int>{1, 0}));
  EXPECT_EQ(parse_network_yaml(to_yaml(network), "again.yaml"), network);
}

TEST(TransformerYaml, FaultsNameTheLayer) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"kind: tied_linear, table: input",
       "layer 'a': its table 'input' is no embedding of tokens; name a layer of kind embedding"},
      {"kind: tied_linear", "a layer of kind tied_linear has no 'table'; add table: ..."},
      {"kind: tied_linear, table: x",
       "layer 'a' reads 'x', which is no layer; name a layer of this network, or input"},
      {"kind: tied_linear, table: a",
       "layers read each other in a circle: a reads a; a network has no loops"},
      {"kind: tied_linear, inputs: [e, e], table: e",
       "a tied_linear has 'inputs'; write input: a, table: b"},
      {"kind: attention, heads: 4",
       "layer 'a': 4 heads do not divide 2 features; choose heads that do"},
      {"kind: attention, heads: 1, inputs: [e, e]",
       "layer 'a': the bias of its scores is a sequence 8x6; let it read a relative_position_bias, "
       "an image 1x8x8, or queries, keys and values"},
      {"kind: attention, heads: 1, inputs: [e, e, e, e, e]",
       "layer 'a': attention takes one input or three, and a bias, and has 5; write inputs: "
       "[queries, keys, values], or input: all_three"},
      {"kind: attention, heads: 1, inputs: [e, e, input]",
       "layer 'a': attention reads keys a sequence 8x6 and values a sequence 8x1; let both have "
       "whole heads of 6 features"},
      {"kind: attention, heads: 1, input: input",
       "layer 'a': 1 features are no three sequences; let it read queries, keys and values side by "
       "side"},
      {"kind: embedding, entries: 3, features: 2",
       "layer 'a': embedding needs a sequence of numbers, and reads a sequence 8x6; let it read "
       "the "
       "network's input, which has tokens"},
      {"kind: embedding, of: positions, entries: 7, features: 2, input: input",
       "layer 'a': a sequence of 8, and a table of 7 positions; use at most 7"},
      {"kind: fully_connected, outputs: 3",
       "layer 'a': fully_connected reads a sequence 8x6; write linear, which every element goes "
       "through, or put flatten before it"},
      {"kind: lrn",
       "layer 'a': lrn needs an image, and reads a sequence 8x6; put it before flatten"},
  };
  for (const auto& [layer, error] : faults) {
    const bool passes_e_by = layer.ends_with("input: input");  // which must have a reader then
    EXPECT_EQ(toy_error("  - {name: a, " + layer + "}\n" +
                        (passes_e_by ? "  - {name: z, kind: concat, inputs: [e, a]}\n" : "")),
              "net.yaml:5:5: " + error);
  }
  EXPECT_EQ(toy_error("  - {name: a, kind: embedding, of: token, entries: 1, features: 1}\n"),
            "net.yaml:5:36: of: unknown embedding 'token'; did you mean 'tokens'?");
  EXPECT_EQ(toy_error("  - {name: a, kind: select_tokens, share: 0}\n"),
            "net.yaml:5:43: share: '0' is not a number from 1e-06 to 1");
  EXPECT_EQ(
      toy_error("  - {name: f, kind: flatten}\n  - {name: a, kind: select_tokens, share: 1}\n"),
      "net.yaml:6:5: layer 'a': select_tokens needs a sequence, and reads a vector of 48; let "
      "it read a sequence");
  EXPECT_EQ(toy_error("  - {name: l, kind: linear, outputs: 5}\n"
                      "  - {name: a, kind: tied_linear, table: e}\n"),
            "net.yaml:6:5: layer 'a': reads 5 features, and its table has 6; put a linear layer "
            "between them");
  EXPECT_EQ(toy_error("", "{tokens: 0}"),
            "net.yaml:2:17: tokens: '0' is not a whole number from 1 to 1000000");
  EXPECT_EQ(toy_error("", "{token: 8}"),
            "net.yaml:2:9: unknown key 'token'; did you mean 'tokens'?");
  EXPECT_EQ(toy_error("", "{}"), "net.yaml:2:8: the input has no 'tokens'; add tokens: ...");
}

TEST(TransformerYaml, WorkBeyondTheLimitIsRefused) {
  EXPECT_EQ(toy_error("  - {name: q, kind: linear, outputs: 9000}\n"
                      "  - {name: a, kind: attention, heads: 1000}\n",
                      "{tokens: 1000000}"),
            "net.yaml:6:5: layer 'a': its work is beyond 2^53; use smaller sizes");
}

}  // namespace
}  // namespace paceline::models
