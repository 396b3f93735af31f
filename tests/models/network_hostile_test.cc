// Faults that a user or a caller can put into a network, each with the exact text of its error,
// beyond those of network_yaml_test.cc and network_test.cc.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "models/base/error.h"
#include "models/network/network.h"
#include "models/network/work.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using test::error_of;

std::string yaml_error(const std::string& text) {
  return error_of([&] { return parse_network_yaml(text, "net.yaml"); });
}

// The error for a network whose layers are these lines; the first is line 4 of the file.
std::string layers_error(const std::string& layers) {
  return yaml_error("network: net\ninput: [3, 8, 8]\nlayers:\n" + layers);
}

// The error for a network of one layer, whose brace opens at column 5.
std::string layer_error(const std::string& layer) {
  return layers_error("  - {name: a, " + layer + "}\n");
}

std::string builder_error(Shape input, LayerKind kind) {
  return error_of([&] {
    NetworkBuilder net("net", input);
    net.add("a", std::move(kind));
    return work(net.build());
  });
}

TEST(NetworkYamlFaults, OfTheFile) {
  EXPECT_EQ(yaml_error("network: [\n"),
            "net.yaml:2:1: this is not YAML: end of sequence flow not found");
  EXPECT_EQ(yaml_error(std::string((16u << 20) + 1, ' ')),
            "net.yaml: the file is larger than 16 MiB; give a description, not data");
  EXPECT_EQ(yaml_error("network: a\n---\nnetwork: b\n"),
            "net.yaml:2:1: a second document starts here; write one document in each file");
  EXPECT_EQ(yaml_error("network: a\nnetwork: b\n"),
            "net.yaml:2:1: key 'network' stands twice; keep one of them");
}

TEST(NetworkYamlFaults, OfItsHead) {
  EXPECT_EQ(yaml_error("input: [3]\nlayers: []\n"),
            "net.yaml:1:1: the network has no 'network'; add network: ...");
  EXPECT_EQ(yaml_error("network: [a]\ninput: [3]\nlayers: []\n"),
            "net.yaml:1:10: network is no single value; write network: value");
  EXPECT_EQ(yaml_error("network: \"a\\nb\"\ninput: [3]\nlayers: []\n"),
            "net.yaml:1:10: 'a?b' is no name for a network; choose another, up to 60 printable "
            "characters");
  EXPECT_EQ(yaml_error("network: a\ninput: [3, 8]\nlayers: []\n"),
            "net.yaml:2:8: input is no shape; write input: [channels, height, width], input: "
            "[features] or input: {tokens: N}");
  EXPECT_EQ(yaml_error("network: a\ninput: [3, x, 8]\nlayers: []\n"),
            "net.yaml:2:12: input: 'x' is not a whole number from 1 to 1000000");
  EXPECT_EQ(yaml_error("network: a\ninput: [1000000, 1000000, 2]\nlayers: []\n"),
            "net.yaml:2:8: the input has more than 10^12 elements; use smaller sizes");
  EXPECT_EQ(yaml_error("network: a\ninput: [3]\nstored_sample: 1e4 TB\nlayers: []\n"),
            "net.yaml:3:16: stored_sample: '1e4 TB' is out of range; write 1 B to 1000 TB, or "
            "leave it out");
  EXPECT_EQ(yaml_error("network: a\ninput: [3]\n"),
            "net.yaml:1:1: the network has no 'layers'; add layers: ...");
  EXPECT_EQ(yaml_error("network: a\ninput: [3]\nlayers: {name: a}\n"),
            "net.yaml:3:9: layers is no list; write - {name: conv1, kind: convolution, ...}");
  std::string many = "network: a\ninput: [3]\nlayers:\n";
  for (int i = 0; i <= 100000; ++i) many += "- a\n";
  EXPECT_EQ(yaml_error(many), "net.yaml:4:1: 100001 layers; at most 100000 are read");
}

TEST(NetworkYamlFaults, OfTheFrameOfALayer) {
  EXPECT_EQ(layers_error("  - conv1\n"),
            "net.yaml:4:5: a layer is no mapping; write {name: conv1, kind: convolution, ...}");
  EXPECT_EQ(layers_error("  - {name: a}\n"),
            "net.yaml:4:5: a layer has no 'kind'; add kind: convolution, or another kind");
  EXPECT_EQ(layers_error("  - {kind: relu}\n"),
            "net.yaml:4:5: a layer of kind relu has no 'name'; add name: ...");
  EXPECT_EQ(layer_error("kind: [relu]"),
            "net.yaml:4:21: kind is no single value; write kind: value");
  EXPECT_EQ(layer_error("kind: relu, knid: relu"),
            "net.yaml:4:27: unknown key 'knid'; did you mean 'kind'?");
  EXPECT_EQ(layers_error("  - {name: input, kind: relu}\n"),
            "net.yaml:4:12: 'input' is no name for a layer; choose another, up to 60 printable "
            "characters");
  EXPECT_EQ(layers_error("  - {name: " + std::string(61, 'x') + ", kind: relu}\n"),
            "net.yaml:4:12: '" + std::string(60, 'x') +
                "...' is no name for a layer; choose another, up to 60 printable characters");
  EXPECT_EQ(layer_error("kind: relu, input: input, inputs: [input]"),
            "net.yaml:4:5: a layer has both 'input' and 'inputs'; keep one of them");
  EXPECT_EQ(layer_error("kind: add, inputs: input"),
            "net.yaml:4:34: inputs is no list; write inputs: [a, b]");
  EXPECT_EQ(
      layer_error("kind: add, inputs: [input]"),
      "net.yaml:4:5: layer 'a': add takes two or more inputs, and has 1; write inputs: [a, b]");
  EXPECT_EQ(layer_error("kind: relu, inputs: [input, input]"),
            "net.yaml:4:5: layer 'a': relu takes one input, and has 2; write input: a, or leave it "
            "out to read the layer before");
  EXPECT_EQ(layers_error("  - {name: a, kind: relu}\n  - {name: b, kind: relu, input: input}\n"),
            "net.yaml:4:5: nothing reads layer 'a'; connect it, or leave it out; only the last "
            "layer has no reader");
}

TEST(NetworkYamlFaults, OfAttributes) {
  EXPECT_EQ(layer_error("kind: convolution, kernel: 3"),
            "net.yaml:4:5: a layer of kind convolution has no 'channels'; add channels: ...");
  EXPECT_EQ(layer_error("kind: fully_connected"),
            "net.yaml:4:5: a layer of kind fully_connected has no 'outputs'; add outputs: ...");
  EXPECT_EQ(layer_error("kind: adaptive_average_pool"),
            "net.yaml:4:5: a layer of kind adaptive_average_pool has no 'output'; add output: ...");
  EXPECT_EQ(layer_error("kind: max_pool, kernel: [1, 2, 3]"),
            "net.yaml:4:39: kernel has 3 numbers; write kernel: 3 or kernel: [3, 5]");
  EXPECT_EQ(layer_error("kind: max_pool, kernel: [1, 0]"),
            "net.yaml:4:43: kernel: '0' is not a whole number from 1 to 1000000");
  EXPECT_EQ(layer_error("kind: max_pool, kernel: {h: 3}"),
            "net.yaml:4:39: kernel is no single value; write kernel: value");
  EXPECT_EQ(layer_error("kind: max_pool, kernel: 2, padding: -1"),
            "net.yaml:4:51: padding: '-1' is not a whole number from 0 to 1000000");
  EXPECT_EQ(layer_error("kind: fully_connected, outputs: 3.5"),
            "net.yaml:4:47: outputs: '3.5' is not a whole number from 1 to 1000000");
  EXPECT_EQ(layer_error("kind: fully_connected, outputs: 99999999999999999999999"),
            "net.yaml:4:47: outputs: '99999999999999999999999' is not a whole number from 1 to "
            "1000000");
  EXPECT_EQ(layer_error("kind: fully_connected, outputs: 3, bias: maybe"),
            "net.yaml:4:56: bias: 'maybe' is no truth value; write true or false");
  EXPECT_EQ(layer_error("kind: dropout, probability: nan"),
            "net.yaml:4:43: probability: 'nan' is not a number from 0 to 1");
}

TEST(NetworkYamlFaults, OfShapes) {
  EXPECT_EQ(layer_error("kind: convolution, channels: 1, kernel: 3, dilation: 4"),
            "net.yaml:4:5: layer 'a': kernel 3x3, dilated to 9x9, is larger than its padded input "
            "8x8; use a smaller kernel or dilation, more padding, or fewer strides before it");
  EXPECT_EQ(
      layer_error("kind: max_pool, kernel: 2, padding: 2"),
      "net.yaml:4:5: layer 'a': padding 2x2 is more than half of kernel 2x2; pad at most half "
      "of the kernel");
  EXPECT_EQ(layer_error("kind: softmax_cross_entropy"),
            "net.yaml:4:5: layer 'a': reads an image 3x8x8; put flatten or fully_connected before "
            "it");
  EXPECT_EQ(layers_error("  - {name: a, kind: max_pool, kernel: 2}\n"
                         "  - {name: b, kind: add, inputs: [a, input]}\n"),
            "net.yaml:5:5: layer 'b': adds 3x4x4 and 3x8x8; inputs of add must have one shape");
  EXPECT_EQ(layers_error("  - {name: a, kind: max_pool, kernel: 2}\n"
                         "  - {name: b, kind: concat, inputs: [a, input]}\n"),
            "net.yaml:5:5: layer 'b': concatenates 3x4x4 and 3x8x8; inputs of concat may differ in "
            "channels only");
  for (const std::string kind :
       {"lrn", "adaptive_average_pool, output: 1", "max_pool, kernel: 1"}) {
    EXPECT_EQ(layers_error("  - {name: a, kind: flatten}\n  - {name: b, kind: " + kind + "}\n"),
              "net.yaml:5:5: layer 'b': " + kind.substr(0, kind.find(',')) +
                  " needs an image, and reads a vector of 192; put it before flatten");
  }
}

TEST(NetworkYamlFaults, NoCountOverflows) {
  EXPECT_EQ(
      layer_error("kind: adaptive_average_pool, output: 1000000"),
      "net.yaml:4:5: layer 'a': its output 3x1000000x1000000 has more than 2^40 elements; use "
      "smaller sizes");
  EXPECT_EQ(layer_error("kind: convolution, channels: 1000000, kernel: 1000000, padding: 500000"),
            "net.yaml:4:5: layer 'a': its work is beyond 2^53; use smaller sizes");
  EXPECT_EQ(layer_error("kind: convolution, channels: 1000000, kernel: 1000, padding: 500, "
                        "stride: 1000000"),
            "net.yaml:4:5: layer 'a': its weight has more than 2^40 elements; use smaller sizes");
  // Each layer's work is in range, and their sum would not be.
  std::string many;
  for (int i = 1; i <= 2500; ++i) {
    many += "  - {name: c" + std::to_string(i) +
            ", kind: convolution, channels: 90000, kernel: [5, 9], padding: [2, 4]}\n";
  }
  EXPECT_EQ(
      yaml_error("network: net\ninput: [90000, 100, 100]\nlayers:\n" + many),
      "net.yaml:162:5: layer 'c159': the work up to this layer is beyond 2^60; use smaller sizes");
}

// 9008 times 10^12 elements are more than 2^53.
TEST(NetworkBuilderFaults, AnAddDoesNotReadBeyondWhatCanBeCounted) {
  const auto add_of = [](std::size_t inputs) {
    return error_of([&] {
      NetworkBuilder net("net", Shape::image(1000000, 1000, 1000));
      net.add("sum", Add{}, std::vector<std::string>(inputs, "input"));
      return work(net.build());
    });
  };
  EXPECT_EQ(add_of(9007), "no error");
  EXPECT_EQ(add_of(9008),
            "layer 'sum': its inputs have more than 2^53 elements; use smaller sizes");
}

TEST(NetworkYamlFaults, ALongNameIsCutAndALongCircleToo) {
  EXPECT_EQ(layer_error("kind: relu, input: " + std::string(100000, 'x')),
            "net.yaml:4:5: layer 'a' reads '" + std::string(60, 'x') +
                "...', which is no layer; name a layer of this network, or input");
  std::string circle = "  - {name: l0, kind: relu, input: l50}\n";
  for (int i = 1; i <= 50; ++i) circle += "  - {name: l" + std::to_string(i) + ", kind: relu}\n";
  EXPECT_EQ(layers_error(circle),
            "net.yaml:4:5: layers read each other in a circle: l0 reads l50 reads l49 reads l48 "
            "reads l47 reads l46 reads l45 reads l44 reads ... reads l0; a network has no loops");
  EXPECT_EQ(layer_error("kind: relu, input: a"),
            "net.yaml:4:5: layers read each other in a circle: a reads a; a network has no loops");
}

TEST(NetworkYamlFaults, AnchorsThatHoldThemselvesAreRefused) {
  EXPECT_EQ(yaml_error("network: &a [*a]\ninput: [3]\nlayers: &b [*b]\n"),
            "net.yaml:1:10: network is no single value; write network: value");
  EXPECT_EQ(layers_error("  - &x {name: a, kind: add, inputs: [*x, *x]}\n"),
            "net.yaml:4:5: inputs is no single value; write inputs: value");
}

// The depth check counts brackets, and can be led to count too few of them.
TEST(NetworkYamlFaults, NestingBehindCommentsAndStringsDoesNotCrash) {
  for (const std::string open : {"[ #]\n", "['] ',", "{']}': ", "[\"]\", "}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_NE(yaml_error(text).find("this is not YAML"), std::string::npos) << open;
  }
}

TEST(NetworkBuilderFaults, AttributesAreInRange) {
  const std::string remedy =
      " is out of range; sizes are from 1 (padding: 0) to 1000000, probabilities from 0 to 1";
  const Shape image = Shape::image(4, 8, 8);
  const std::vector<std::pair<LayerKind, std::string>> faults = {
      {Convolution{.channels = 0, .kernel = square(1)}, "channels 0"},
      {Convolution{.channels = 1, .kernel = {3, -1}}, "kernel 3x-1"},
      {Convolution{.channels = 1, .kernel = square(1), .stride = {0, 1}}, "stride 0x1"},
      {Convolution{.channels = 1, .kernel = square(1), .padding = {0, -1}}, "padding 0x-1"},
      {Convolution{.channels = 1, .kernel = square(1), .dilation = {0, 0}}, "dilation 0x0"},
      {Convolution{.channels = 1, .kernel = square(1), .groups = 0}, "groups 0"},
      {FullyConnected{1000001}, "outputs 1000001"},
      {MaxPool{{.kernel = square(0)}}, "kernel 0x0"},
      {AveragePool{{.kernel = square(1), .stride = square(0)}}, "stride 0x0"},
      {AdaptiveAveragePool{{0, 1}}, "output 0x1"},
      {Lrn{0}, "size 0"},
      {Embedding{.entries = 0}, "entries 0"},
      {Embedding{.features = 1000001}, "features 1000001"},
      {Linear{0}, "outputs 0"},
      {Attention{.heads = 0}, "heads 0"},
      {Attention{.dropout = 1.5}, "dropout 1.5"},
      {SelectTokens{0}, "share 0"},
      {SelectTokens{std::numeric_limits<double>::quiet_NaN()}, "share nan"},
      {Dropout{-0.5}, "probability -0.5"},
      {Dropout{std::numeric_limits<double>::quiet_NaN()}, "probability nan"}};
  for (const auto& [kind, fault] : faults)
    EXPECT_EQ(builder_error(image, kind), "layer 'a': " + fault + remedy);
}

TEST(NetworkBuilderFaults, InputsAreInRange) {
  const std::string remedy =
      " is out of range; sizes are from 1 to 1000000, with at most 2^40 elements in all";
  EXPECT_EQ(builder_error(Shape::image(3, 0, 8), Relu{}), "network 'net': input 3x0x8" + remedy);
  EXPECT_EQ(builder_error(Shape::vector(-1), Relu{}), "network 'net': input -1" + remedy);
  EXPECT_EQ(builder_error(Shape::image(1000000, 1000000, 1000000), Relu{}),
            "network 'net': input 1000000x1000000x1000000" + remedy);
  EXPECT_EQ(error_of([] { return NetworkBuilder("net", Shape::vector(1), Bytes{-1}); }),
            "network 'net': a stored sample of -1 bytes is out of range; write 1 to 1e15 bytes, or "
            "0 if unknown");
}

TEST(NetworkBuilderFaults, NamesArePrintableAndShort) {
  const std::string remedy = "; choose another, up to 60 printable characters";
  EXPECT_EQ(error_of([] { return NetworkBuilder("a\nb", Shape::vector(1)); }),
            "'a?b' is no name for a network" + remedy);
  const auto layer_called = [](const std::string& name) {
    return error_of([&] { return NetworkBuilder("net", Shape::vector(1)).add(name, Relu{}); });
  };
  EXPECT_EQ(layer_called(""), "'' is no name for a layer" + remedy);
  EXPECT_EQ(layer_called("input"), "'input' is no name for a layer" + remedy);
  EXPECT_EQ(layer_called("\xff"), "'?' is no name for a layer" + remedy);
  EXPECT_EQ(layer_called(std::string(60, 'x')), "no error");
  EXPECT_EQ(layer_called("gr\xc3\xb6\xc3\x9f"
                         "er"),
            "no error");
}

// Names of characters that a name may hold, among them many that YAML gives a meaning.
rc::Gen<std::string> a_name() {
  const auto piece = rc::gen::element<std::string>(
      "a", "Z", "7", " ", ":", "#", ",", "[", "]", "{", "}", "&", "*", "!", "|", ">", "'", "\"",
      "%", "@", "`", "\\", "-", "?", "~", "=", "<<", "null", "true", "\xc3\xa9", "\xe2\x80\xa8");
  return rc::gen::suchThat(
      rc::gen::map(rc::gen::container<std::vector<std::string>>(piece),
                   [](const std::vector<std::string>& pieces) {
                     std::string name;
                     for (const std::string& text : pieces) name += text;
                     return name;
                   }),
      [](const std::string& name) { return is_name(name) && name != "input"; });
}

RC_GTEST_PROP(NetworkYaml, AnyNameGoesThroughYaml, ()) {
  const std::string network = *a_name();
  const std::string first = *a_name();
  const std::string second = *a_name();
  RC_PRE(first != second);
  NetworkBuilder net(network, Shape::vector(4));
  net.add(first, Relu{});
  net.add(second, Add{}, {"input", first});
  net.add("last", Add{}, {first, second});
  const Network built = net.build();
  RC_ASSERT(parse_network_yaml(to_yaml(built), "net.yaml") == built);
}

// Whatever a file says, the only outcome besides a network is one InputError in one short line;
// and what is read goes through YAML again.
TEST(NetworkYaml, ShuffledFilesGiveANetworkOrOneShortLine) {
  std::mt19937 random(2018);
  const std::vector<std::string> pieces = {"network: n\n",
                                           "input: [3, 8, 8]\n",
                                           "layers:\n",
                                           "  - {name: a, kind: relu}\n",
                                           "  - ",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           ": ",
                                           ", ",
                                           "name",
                                           "kind",
                                           "inputs",
                                           "input",
                                           "&x ",
                                           "*x",
                                           "<<: *x",
                                           "\n",
                                           "  ",
                                           "convolution",
                                           "kernel",
                                           "channels",
                                           "add",
                                           "tokens",
                                           "embedding",
                                           "table",
                                           "input",
                                           "0.5",
                                           "0",
                                           "-1",
                                           "1e9",
                                           "3",
                                           "null",
                                           "~",
                                           "!!int ",
                                           "\t",
                                           "#",
                                           "'",
                                           "\"",
                                           "|\n",
                                           ">-\n",
                                           "? ",
                                           "---\n",
                                           "...\n",
                                           "%YAML 1.2\n",
                                           "\xef\xbb\xbf",
                                           std::string(1, '\0'),
                                           "\xff",
                                           "\r"};
  const std::string base =
      "network: n\ninput: [3, 8, 8]\nlayers:\n"
      "  - {name: a, kind: convolution, channels: 4, kernel: [3, 1], stride: 2, bias: false}\n"
      "  - {name: b, kind: relu}\n  - {name: c, kind: concat, inputs: [a, b]}\n";
  const std::string of_sequences =
      "network: n\ninput: {tokens: 8}\nlayers:\n"
      "  - {name: e, kind: embedding, entries: 9, features: 6}\n"
      "  - {name: a, kind: attention, heads: 2, causal: true, dropout: 0.5}\n"
      "  - {name: s, kind: select_tokens, share: 0.3}\n"
      "  - {name: l, kind: linear, outputs: 6, bias: false}\n"
      "  - {name: t, kind: tied_linear, table: e}\n";
  int networks = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    std::string text = trial % 3 == 0 ? "" : trial % 3 == 1 ? base : of_sequences;
    const int edits = 1 + static_cast<int>(random() % (trial % 3 == 0 ? 30 : 4));
    for (int i = 0; i < edits; ++i)
      text.insert(random() % (text.size() + 1), pieces[random() % pieces.size()]);
    try {
      const Network read = parse_network_yaml(text, "net.yaml");
      EXPECT_EQ(parse_network_yaml(to_yaml(read), "again.yaml"), read) << text;
      ++networks;
    } catch (const InputError& error) {
      const std::string line = error.what();
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      EXPECT_LT(line.size(), 500u) << line;
      EXPECT_EQ(line.rfind("net.yaml", 0), 0u) << line;
    }
  }
  EXPECT_GT(networks, 20);  // the edits are small enough that some files stay good
}

}  // namespace
}  // namespace paceline::models
