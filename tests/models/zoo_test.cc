// The networks of the zoo against totals of the literature and against independent tensor lists
// (golden/tensors, from shared/data/tensors).
#include "models/network/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "models/base/error.h"
#include "models/network/shape_inference.h"
#include "models/network/work.h"
#include "tests/support/source_tree.h"

namespace paceline::models {
namespace {

TEST(Zoo, ParameterTotalsAreExact) {
  const std::map<std::string, std::int64_t> totals = {
      {"alexnet", 62378344},     {"alexnet-bn-refined", 62396616}, {"vgg16", 138357544},
      {"googlenet", 13378280},   {"bert-base", 110106428},         {"bert-large", 336226108},
      {"gpt2-small", 124439808}, {"gpt2-medium", 354823168},       {"gpt2-large", 774030080},
      {"gpt2-xl", 1557611200},   {"resnet50", 25557032},           {"resnet101", 44549160},
      {"resnet152", 60192808},   {"inception-v3", 23834568},       {"inception-v4", 42679816},
      {"cnn-small", 215370},     {"resnet-small", 174970}};
  for (const auto& [name, total] : totals)
    EXPECT_EQ(work(zoo_network(name)).parameters(), total) << name;
  EXPECT_EQ(work(zoo_network("resnet50")).gradients.size(), 161u);
}

struct TensorRow {
  std::string name;
  std::string shape;
  std::int64_t elements = 0;
  std::int64_t macs = 0;
};

std::vector<TensorRow> tensor_list(const std::string& file) {
  std::ifstream in(test::golden_path("tensors/" + file + ".csv"));
  std::vector<TensorRow> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string index, elements, macs;
    TensorRow row;
    std::getline(fields, index, ',');
    std::getline(fields, row.name, ',');
    std::getline(fields, row.shape, ',');
    std::getline(fields, elements, ',');
    std::getline(fields, macs, ',');
    row.elements = std::stoll(elements);
    row.macs = std::stoll(macs);
    rows.push_back(row);
  }
  return rows;
}

std::string shape_text(const ParameterTensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string reversed_shape_text(const ParameterTensor& tensor) {
  ParameterTensor reversed = tensor;
  std::reverse(reversed.shape.begin(), reversed.shape.end());
  return shape_text(reversed);
}

// B-Caffe's log of GoogLeNet on K80 (shared/data/googlenet-k80-layers.csv) has what its all-reduces
// moved: every tensor, rounded up to 64 elements.
TEST(Zoo, GoogLeNetHasTheTensorsOfATracedRun) {
  std::ifstream in(test::golden_path("tensors/googlenet-k80.csv"));
  std::string line;
  std::getline(in, line);
  std::vector<std::int64_t> moved;
  while (std::getline(in, line)) moved.push_back(std::stoll(line.substr(line.find(',') + 1)));
  std::vector<std::int64_t> expected;
  for (const LayerWork& layer : work(zoo_network("googlenet")).layers) {
    for (const ParameterTensor& tensor : layer.parameters)
      expected.push_back((tensor.elements + 63) / 64 * 64);
  }
  EXPECT_EQ(moved.size(), 128u);
  EXPECT_EQ(moved, expected);
}

class TensorList : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(TensorList, NamesShapesAndWorkAreThoseOfAnIndependentList) {
  const auto& [network, file] = GetParam();
  const std::vector<TensorRow> expected = tensor_list(file);
  ASSERT_FALSE(expected.empty());
  const NetworkWork net = work(zoo_network(network));
  std::vector<std::pair<const LayerWork*, const ParameterTensor*>> tensors;
  for (const LayerWork& layer : net.layers) {
    for (const ParameterTensor& tensor : layer.parameters) tensors.emplace_back(&layer, &tensor);
  }
  ASSERT_EQ(tensors.size(), expected.size());
  // VGG's list numbers its convolutions otherwise.
  const bool same_names = std::string(network) != "vgg16";
  // GPT-2's authors store the weights of a linear layer as (in, out).
  const bool stored_in_out = std::string(network).starts_with("gpt2");
  // The lists of networks of sequences have no work: it grows with the sequence.
  const bool has_work = net.sequence == 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [layer, tensor] = tensors[i];
    if (same_names) EXPECT_EQ(tensor->name, expected[i].name);
    EXPECT_TRUE(shape_text(*tensor) == expected[i].shape ||
                (stored_in_out && reversed_shape_text(*tensor) == expected[i].shape))
        << tensor->name << " " << expected[i].shape;
    EXPECT_EQ(tensor->elements, expected[i].elements) << tensor->name;
    const bool first = tensor == &layer->parameters.front();
    if (has_work) EXPECT_EQ(first ? layer->forward_flops : 0, 2 * expected[i].macs) << tensor->name;
    // Gradients come in the reverse of this order.
    EXPECT_EQ(net.gradients[expected.size() - 1 - i].name, tensor->name);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, TensorList,
    testing::Values(std::pair{"alexnet", "alexnet-nogroups"},
                    std::pair{"alexnet-bn-refined", "alexnet-bn-refined"},
                    std::pair{"vgg16", "vgg16"}, std::pair{"resnet50", "resnet50-v1.5"},
                    std::pair{"resnet101", "resnet101-v1.5"},
                    std::pair{"resnet152", "resnet152-v1.5"},
                    std::pair{"bert-base", "bert-base-pretraining"},
                    std::pair{"bert-large", "bert-large-pretraining"},
                    std::pair{"gpt2-small", "gpt2-small"}, std::pair{"gpt2-medium", "gpt2-medium"},
                    std::pair{"gpt2-large", "gpt2-large"}, std::pair{"gpt2-xl", "gpt2-xl"}));

TEST(Work, SumsOverLayersAreTheTotalsAndGradientsCoverThem) {
  for (const ZooEntry& entry : zoo()) {
    const NetworkWork net = work(entry.build());
    std::int64_t parameters = 0;
    for (const Gradient& gradient : net.gradients) parameters += gradient.elements;
    EXPECT_EQ(parameters, net.parameters()) << entry.name;
    int last = static_cast<int>(net.layers.size());
    for (const Gradient& gradient : net.gradients) {
      EXPECT_LE(gradient.layer, last);
      last = gradient.layer;
    }
  }
}

TEST(Work, GradientsOfAMatrixProductCostAsMuchAsTheProduct) {
  for (const ZooEntry& entry : zoo()) {
    const Network network = entry.build();
    const NetworkWork net = work(network);
    bool first = net.sequence == 0;  // else the first product reads an embedding, which learns
    for (std::size_t i = 0; i < net.layers.size(); ++i) {
      const LayerWork& layer = net.layers[i];
      const auto* const attention = std::get_if<Attention>(&network.layers()[i].kind);
      EXPECT_EQ(layer.weight_gradient_flops, attention == nullptr ? layer.forward_flops : 0)
          << layer.name;
      if (layer.forward_flops == 0) continue;
      // Keys and values have other widths (experts_test.cc).
      if (attention != nullptr && attention->value_features > 0) continue;
      // Attention has two products in its forward pass and four in its backward pass. The fused form
      // computes the scores once more. A half is one product of attention.
      const int halves = attention == nullptr ? 2 : attention->fused ? 5 : 4;
      EXPECT_EQ(layer.data_gradient_flops, first ? 0 : halves * layer.forward_flops / 2)
          << layer.name;
      first = false;
    }
  }
}

TEST(Zoo, NamesAreThoseOfTheNetworks) {
  for (const ZooEntry& entry : zoo()) EXPECT_EQ(entry.build().name(), entry.name);
}

TEST(Zoo, UnknownNameSuggestsTheNearest) {
  try {
    (void)zoo_network("resnet5");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown network 'resnet5'; did you mean 'resnet50'?");
  }
}

}  // namespace
}  // namespace paceline::models
