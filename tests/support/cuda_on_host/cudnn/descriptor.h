// cuDNN's backend descriptors as the double keeps them: attributes by their number, and what
// finalisation made of them.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/cudnn/graph.h"
#include "tests/support/cuda_on_host/cudnn/refusal.h"

namespace cuda_on_host::cudnn {

struct Content;
using ContentPointer = std::shared_ptr<const Content>;

// The value of an attribute. Integers, enumerations, truth values and pointers are numbers.
struct Value {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  std::vector<std::int64_t> numbers;
  std::vector<double> reals;
  std::vector<ContentPointer> descriptors;
  std::string text;

  [[nodiscard]] std::size_t size() const;
};

// What an engine is, and what a plan has of it.
struct Engine {
  std::int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> numerical;
  std::vector<cudnnBackendBehaviorNote_t> behavior;
  std::int64_t workspace = 0;  // bytes
};

struct Content {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  bool finalised = false;
  std::map<int, Value> values;

  // These are set in graphs, and in engines, configurations and plans that are made of graphs.
  std::shared_ptr<const Graph> graph;
  Engine engine;
  int architecture = 0;  // of device descriptions, engines and plans: 90

  [[nodiscard]] bool has(int attribute) const { return values.contains(attribute); }
  // The attribute must be there.
  [[nodiscard]] const Value& value(int attribute) const { return values.at(attribute); }
  [[nodiscard]] std::int64_t number(int attribute) const { return value(attribute).numbers.at(0); }
  [[nodiscard]] const ContentPointer& held(int attribute) const {
    return value(attribute).descriptors.at(0);
  }
  void put(int attribute, cudnnBackendAttributeType_t type, std::vector<std::int64_t> numbers);
};

// What cudnn_graph.h says of an attribute, as far as the double has it.
struct Attribute {
  cudnnBackendDescriptorType_t of;
  int name;
  cudnnBackendAttributeType_t type;
  enum class Count { one, several } count = Count::one;
  enum class Access { read_write, read_only, write_only } access = Access::read_write;
};
// Null for one that the descriptor has not.
[[nodiscard]] const Attribute* find_attribute(cudnnBackendDescriptorType_t of, int name);
// Whether the double has this kind of descriptor.
[[nodiscard]] bool is_known(cudnnBackendDescriptorType_t type);

// A descriptor that is there. Aborts (die) for one that was destroyed or never was; throws Refusal
// for null.
[[nodiscard]] Content& live(cudnnBackendDescriptor_t handle);
[[nodiscard]] ContentPointer shared(cudnnBackendDescriptor_t handle);
[[nodiscard]] cudnnBackendDescriptor_t make_descriptor(cudnnBackendDescriptorType_t type);
void destroy_descriptor(cudnnBackendDescriptor_t handle);
[[nodiscard]] int live_descriptors();
void forget_descriptors();

// Throw Refusal.
void set_attribute(Content& content, int name, cudnnBackendAttributeType_t type, std::int64_t count,
                   const void* values);
void get_attribute(const Content& content, int name, cudnnBackendAttributeType_t type,
                   std::int64_t most, std::int64_t* count, void* values);
// finalise.cc
void finalise(Content& content);

}  // namespace cuda_on_host::cudnn
