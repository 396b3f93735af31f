#include "models/network/yaml.h"

#include <gtest/gtest.h>

#include <random>

#include "models/base/error.h"
#include "models/network/zoo.h"

namespace paceline::models {
namespace {

std::string error_of(const std::string& text) {
  try {
    (void)parse_network_yaml(text, "net.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string with_layers(const std::string& layers) {
  return "network: net\ninput: [3, 8, 8]\nlayers:\n" + layers;
}

TEST(NetworkYaml, EveryNetworkOfTheZooGoesThroughYaml) {
  for (const ZooEntry& entry : zoo()) {
    const Network network = entry.build();
    EXPECT_EQ(parse_network_yaml(to_yaml(network), "round-trip.yaml"), network) << entry.name;
  }
}

TEST(NetworkYaml, LayersMayStandInAnyOrder) {
  const Network sorted = parse_network_yaml(
      with_layers("  - {name: a, kind: relu}\n  - {name: b, kind: relu}\n"), "net.yaml");
  const Network shuffled = parse_network_yaml(
      with_layers("  - {name: b, kind: relu, input: a}\n  - {name: a, kind: relu, input: input}\n"),
      "net.yaml");
  EXPECT_EQ(sorted, shuffled);
}

TEST(NetworkYaml, FaultsNameLineAndColumn) {
  EXPECT_EQ(error_of(""), "net.yaml:1:1: the file is empty; write a description (docs/formats.md)");
  EXPECT_EQ(error_of("- a\n"),
            "net.yaml:1:1: the file is no mapping; write keys and values, as in docs/formats.md");
  EXPECT_EQ(error_of("network: net\ninput: [3, 8, 8]\nlayers: []\n"),
            "net.yaml:3:9: network 'net' is empty; give it at least one layer");
  EXPECT_EQ(error_of("network: net\ninputs: [3, 8, 8]\n"),
            "net.yaml:2:1: unknown key 'inputs'; did you mean 'input'?");
  EXPECT_EQ(error_of("network: net\ninput: 8\nlayers: []\n"),
            "net.yaml:2:8: input is no shape; write input: [channels, height, width], input: "
            "[features] or input: {tokens: N}");
  EXPECT_EQ(error_of("network: net\ninput: [3, 0, 8]\nlayers: []\n"),
            "net.yaml:2:12: input: '0' is not a whole number from 1 to 1000000");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: convolutoin, channels: 3}\n")),
            "net.yaml:4:21: unknown kind of layer 'convolutoin'; did you mean 'convolution'?");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: convolution, channels: 3}\n")),
            "net.yaml:4:5: a layer of kind convolution has no 'kernel'; add kernel: ...");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: relu, kernel: 3}\n")),
            "net.yaml:4:27: unknown key 'kernel'; known: name, kind, input, inputs");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: convolution, channels: -3, kernel: 1}\n")),
            "net.yaml:4:44: channels: '-3' is not a whole number from 1 to 1000000");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: relu}\n  - {name: a, kind: relu}\n")),
            "net.yaml:5:5: two layers are called 'a'; give each layer a name of its own");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: relu, input: x}\n")),
            "net.yaml:4:5: layer 'a' reads 'x', which is no layer; name a layer of this network, "
            "or input");
  EXPECT_EQ(
      error_of(with_layers(
          "  - {name: a, kind: add, inputs: [input, b]}\n  - {name: b, kind: relu, input: a}\n")),
      "net.yaml:4:5: layers read each other in a circle: a reads b reads a; a network has no "
      "loops");
  EXPECT_EQ(error_of(with_layers("  - {name: a, kind: max_pool, kernel: 9}\n")),
            "net.yaml:4:5: layer 'a': kernel 9x9 is larger than its padded input 8x8; use a "
            "smaller kernel or dilation, more padding, or fewer strides before it");
  EXPECT_EQ(error_of("network: net\ninput: [3, 8, 8]\nstored_sample: 112\nlayers: []\n"),
            "net.yaml:3:16: stored_sample: '112' has no unit; write one of B, kB, MB, GB, TB, KiB, "
            "MiB, GiB, TiB, as in 64 MiB");
}

TEST(NetworkYaml, DeepNestingIsRefusedBeforeItIsParsed) {
  EXPECT_EQ(
      error_of(std::string(100000, '[')),
      "net.yaml:1: the file is nested deeper than 64 levels; descriptions are flatter than that");
  EXPECT_NE(error_of(std::string(100000, '-')), "no error");
  std::string dashes;
  for (int i = 0; i < 5000; ++i) dashes += "- ";
  EXPECT_NE(error_of(dashes).find("nested deeper"), std::string::npos);
}

// Whatever a file says, the only outcome besides a network is one InputError in one line.
TEST(NetworkYaml, DamagedFilesGiveOneLine) {
  std::mt19937 random(4711);
  const std::string good = to_yaml(zoo_network("resnet-small"));
  for (int trial = 0; trial < 1500; ++trial) {
    std::string text = good.substr(0, 200 + random() % 800);
    const int edits = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < edits; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        case 2:
          text.insert(at, std::string(1 + random() % 3, "[]{}:,-\n#&*!|>'\"%@`0"[random() % 21]));
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
      }
      if (text.empty()) text = "x";
    }
    try {
      (void)parse_network_yaml(text, "net.yaml");
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace paceline::models
