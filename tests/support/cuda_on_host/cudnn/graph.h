// Graphs as the double of cuDNN executes them: values, made of finalised descriptors or read from a
// serialised plan.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda_on_host::cudnn {

struct Tensor {
  std::int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> dims;     // N C H W
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t alignment = 0;         // bytes
  bool is_virtual = false;
  bool by_value = false;
  bool operator==(const Tensor&) const = default;
};

[[nodiscard]] std::size_t bytes_of(cudnnDataType_t type);
// 1 where there are no dimensions.
[[nodiscard]] std::int64_t elements(const Tensor& tensor);
// From the first element's first byte to the last one's last.
[[nodiscard]] std::size_t span_bytes(const Tensor& tensor);
// "tensor 3 (4x32x8x8)"
[[nodiscard]] std::string text_of(const Tensor& tensor);

// One operation. Numbers of attributes are unique in cudnn_graph.h, so that those of the window or
// mode that the operation's descriptor holds stand beside its own.
struct Node {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  std::map<int, Tensor> tensors;                     // by attribute
  std::map<int, std::vector<std::int64_t>> numbers;  // integers, enumerations and truth values
  std::map<int, double> reals;

  [[nodiscard]] bool has(int attribute) const { return tensors.contains(attribute); }
  // Aborts (die) where it is not there.
  [[nodiscard]] const Tensor& tensor(int attribute) const;
  [[nodiscard]] const std::vector<std::int64_t>& list(int attribute) const;
  [[nodiscard]] std::int64_t number(int attribute) const { return list(attribute).front(); }
  [[nodiscard]] double real(int attribute) const;
  // Whether the operation writes the tensor of this attribute.
  [[nodiscard]] bool writes(int attribute) const;
};

[[nodiscard]] std::string name_of(cudnnBackendDescriptorType_t operation);

struct Graph {
  std::vector<Node> nodes;                 // each behind those whose results it reads
  std::map<std::int64_t, Tensor> tensors;  // by unique id

  // Sorts and checks what was put in. Throws Refusal with the status of cuDNN.
  static Graph of(std::vector<Node> nodes);

  // Whether nodes of the graph write the tensor.
  [[nodiscard]] bool writes(std::int64_t uid) const;
  [[nodiscard]] bool reads(std::int64_t uid) const;
};

// The graph in JSON, and back. Throws Refusal for what is none.
[[nodiscard]] std::string serialise(const Graph& graph);
[[nodiscard]] Graph parse_graph(const std::string& text);

}  // namespace cuda_on_host::cudnn
