// A network as a graph of layers: what the simulator reads and the runtime will instantiate.
//
// A Network is valid by construction: it has layers, names are unique, inputs exist and come before
// their readers (so it is acyclic), every layer but the last is read by another, layers have as
// many inputs as their kind takes, and sizes are from 1 (padding: 0) to largest_size. Shapes are
// inferred, not stated, and need not fit together before they are (shape_inference.h).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/base/units.h"
#include "models/network/layer.h"
#include "models/network/shape.h"

namespace paceline::models {

inline constexpr int network_input = -1;

// Whether a text may name a network or a layer: 1 to 60 bytes, all of them printable UTF-8.
[[nodiscard]] bool is_name(std::string_view text);

struct Layer {
  std::string name;
  LayerKind kind;
  std::vector<int> inputs;  // indices of layers before it, or network_input
  bool operator==(const Layer&) const = default;
};

class Network {
 public:
  // The same network for samples of another length. Throws InputError unless it reads a sequence,
  // and the length is from 1 to largest_size; layers may bear fewer (shape_inference.h).
  [[nodiscard]] Network with_sequence(std::int64_t elements) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Shape& input() const { return input_; }
  // Bytes of one training sample as stored; 0 if unknown.
  [[nodiscard]] Bytes stored_sample_bytes() const { return stored_sample_; }
  // In topological order.
  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
  bool operator==(const Network&) const = default;

 private:
  friend class NetworkBuilder;
  Network() = default;
  std::string name_;
  Shape input_;
  Bytes stored_sample_;
  std::vector<Layer> layers_;
};

// Builds a Network layer by layer. Layers are referred to by name; "input" is the network's input.
// Names have up to 60 bytes of printable UTF-8, as is_name says.
class NetworkBuilder {
 public:
  // Throws InputError if the name is none, or the input has a size out of range or more than 2^40
  // elements, or the stored sample is neither 0 (unknown) nor within limits.h.
  NetworkBuilder(std::string name, Shape input, Bytes stored_sample = Bytes{0});

  // Adds a layer that reads the one added last. Returns its name. Throws InputError.
  std::string add(std::string name, LayerKind kind);
  // Adds a layer that reads the named ones, which must have been added before. Throws InputError.
  std::string add(std::string name, LayerKind kind, const std::vector<std::string>& inputs);
  // Throws InputError if there are no layers, or one but the last is read by nobody.
  [[nodiscard]] Network build() const;

 private:
  void check_table(const Layer& layer, const std::string& table) const;

  Network network_;
  std::unordered_map<std::string, int> index_;
};

}  // namespace paceline::models
