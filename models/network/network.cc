// Tests: tests/models/network_test.cc.
#include "models/network/network.h"

#include <fmt/format.h>

#include "models/base/names.h"

namespace paceline::models {

NetworkBuilder::NetworkBuilder(std::string name, Shape input, Bytes stored_sample) {
  network_.name_ = std::move(name);
  network_.input_ = input;
  network_.stored_sample_ = stored_sample;
  index_.emplace("input", network_input);
}

std::string NetworkBuilder::add(std::string name, LayerKind kind) {
  const std::string previous = network_.layers_.empty() ? "input" : network_.layers_.back().name;
  return add(std::move(name), std::move(kind), {previous});
}

std::string NetworkBuilder::add(std::string name, LayerKind kind, const std::vector<std::string>& inputs) {
  if (name.empty()) throw InputError("a layer has no name", "give each layer a name of its own");
  if (index_.contains(name)) {
    throw InputError(fmt::format("two layers are called '{}'", name), "give each layer a name of its own");
  }
  const bool many = takes_many(kind);
  if (many ? inputs.size() < 2 : inputs.size() != 1) {
    throw InputError(fmt::format("layer '{}': {} takes {}, and has {}", name, models::name(kind),
                                 many ? "two or more inputs" : "one input", inputs.size()),
                     many ? "write inputs: [a, b]" : "write input: a, or leave it out to read the layer before");
  }
  Layer layer{name, std::move(kind), {}};
  for (const std::string& input : inputs) {
    const auto found = index_.find(input);
    if (found == index_.end()) {
      std::vector<std::string> known = {"input"};
      for (const Layer& other : network_.layers_) known.push_back(other.name);
      const auto near = nearest_name(input, known);
      throw InputError(fmt::format("layer '{}' reads '{}', which is no layer", name, input),
                       near ? "did you mean '" + *near + "'?" : "name a layer of this network, or input");
    }
    layer.inputs.push_back(found->second);
  }
  index_.emplace(name, static_cast<int>(network_.layers_.size()));
  network_.layers_.push_back(std::move(layer));
  return name;
}

Network NetworkBuilder::build() const {
  if (network_.layers_.empty()) throw InputError(fmt::format("network '{}' is empty", network_.name_), "give it at least one layer");
  std::vector<bool> is_read(network_.layers_.size());
  for (const Layer& layer : network_.layers_) {
    for (const int input : layer.inputs) {
      if (input != network_input) is_read[static_cast<std::size_t>(input)] = true;
    }
  }
  for (std::size_t i = 0; i + 1 < is_read.size(); ++i) {
    if (!is_read[i]) {
      throw InputError(fmt::format("nothing reads layer '{}'", network_.layers_[i].name),
                       "connect it, or leave it out; only the last layer has no reader");
    }
  }
  return network_;
}

}  // namespace paceline::models
