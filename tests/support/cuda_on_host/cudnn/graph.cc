#include "tests/support/cuda_on_host/cudnn/graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/cuda_on_host/cudnn/refusal.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

constexpr int outputs[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                           CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                           CUDNN_ATTR_OPERATION_POINTWISE_DXDESC,
                           CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
                           CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC,
                           CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
                           CUDNN_ATTR_OPERATION_NORM_FWD_YDESC,
                           CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
                           CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
                           CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
                           CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC,
                           CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC};

// Training writes the batch's mean and inverse deviation, and inference reads them.
bool node_writes(const Node& node, int attribute) {
  if (attribute == CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC ||
      attribute == CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC)
    return node.number(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_TRAINING;
  return std::find(std::begin(outputs), std::end(outputs), attribute) != std::end(outputs);
}

nlohmann::json document(const Tensor& t) {
  return {{"uid", t.uid},          {"type", static_cast<int>(t.type)}, {"dims", t.dims},
          {"strides", t.strides},  {"alignment", t.alignment},         {"virtual", t.is_virtual},
          {"by_value", t.by_value}};
}

Tensor tensor_of(const nlohmann::json& j) {
  Tensor t;
  t.uid = j.at("uid").get<std::int64_t>();
  t.type = static_cast<cudnnDataType_t>(j.at("type").get<int>());
  t.dims = j.at("dims").get<std::vector<std::int64_t>>();
  t.strides = j.at("strides").get<std::vector<std::int64_t>>();
  t.alignment = j.at("alignment").get<std::int64_t>();
  t.is_virtual = j.at("virtual").get<bool>();
  t.by_value = j.at("by_value").get<bool>();
  return t;
}

}  // namespace

std::size_t bytes_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return 1;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    default:
      die("the double of cuDNN has no data type " + std::to_string(static_cast<int>(type)));
  }
}

std::int64_t elements(const Tensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.dims) count *= size;
  return count;
}

std::size_t span_bytes(const Tensor& tensor) {
  if (elements(tensor) == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    last += (tensor.dims[i] - 1) * tensor.strides[i];
  return static_cast<std::size_t>(last + 1) * bytes_of(tensor.type);
}

std::string text_of(const Tensor& tensor) {
  std::string text = "tensor " + std::to_string(tensor.uid) + " (";
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i == 0 ? "" : "x") + std::to_string(tensor.dims[i]);
  return text + ")";
}

const Tensor& Node::tensor(int attribute) const {
  const auto at = tensors.find(attribute);
  if (at == tensors.end())
    die(name_of(type) + " of cuDNN without attribute " + std::to_string(attribute));
  return at->second;
}
const std::vector<std::int64_t>& Node::list(int attribute) const {
  const auto at = numbers.find(attribute);
  if (at == numbers.end() || at->second.empty())
    die(name_of(type) + " of cuDNN without attribute " + std::to_string(attribute));
  return at->second;
}
double Node::real(int attribute) const {
  const auto at = reals.find(attribute);
  if (at == reals.end())
    die(name_of(type) + " of cuDNN without attribute " + std::to_string(attribute));
  return at->second;
}
bool Node::writes(int attribute) const {
  return node_writes(*this, attribute);
}

std::string name_of(cudnnBackendDescriptorType_t operation) {
  switch (operation) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return "convolution";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return "data gradient";
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return "filter gradient";
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return "pointwise operation";
    case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
      return "pool";
    case CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR:
      return "gradient of a pool";
    case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
      return "norm";
    case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
      return "gradient of a norm";
    default:
      return "operation " + std::to_string(static_cast<int>(operation));
  }
}

Graph Graph::of(std::vector<Node> unsorted) {
  require(!unsorted.empty(), "a graph of no operations");
  Graph graph;
  std::map<std::int64_t, std::size_t> writer;
  for (std::size_t i = 0; i < unsorted.size(); ++i)
    for (const auto& [attribute, tensor] : unsorted[i].tensors) {
      const auto [at, is_new] = graph.tensors.emplace(tensor.uid, tensor);
      require(is_new || at->second == tensor,
              "two tensors have the unique id " + std::to_string(tensor.uid));
      if (!unsorted[i].writes(attribute)) continue;
      require(writer.emplace(tensor.uid, i).second, text_of(tensor) + " is written twice");
    }
  // Repeatedly what has all its inputs; what is left stands in a circle.
  std::vector<bool> taken(unsorted.size());
  while (graph.nodes.size() < unsorted.size()) {
    const std::size_t before = graph.nodes.size();
    for (std::size_t i = 0; i < unsorted.size(); ++i) {
      if (taken[i]) continue;
      const bool ready = std::all_of(unsorted[i].tensors.begin(), unsorted[i].tensors.end(),
                                     [&](const auto& entry) {
                                       if (unsorted[i].writes(entry.first)) return true;
                                       const auto from = writer.find(entry.second.uid);
                                       return from == writer.end() || taken[from->second];
                                     });
      if (!ready) continue;
      taken[i] = true;
      graph.nodes.push_back(unsorted[i]);
    }
    require(graph.nodes.size() > before, "the operations wait for one another");
  }
  return graph;
}

bool Graph::writes(std::int64_t uid) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return std::any_of(node.tensors.begin(), node.tensors.end(), [&](const auto& entry) {
      return entry.second.uid == uid && node.writes(entry.first);
    });
  });
}
bool Graph::reads(std::int64_t uid) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return std::any_of(node.tensors.begin(), node.tensors.end(), [&](const auto& entry) {
      return entry.second.uid == uid && !node.writes(entry.first);
    });
  });
}

std::string serialise(const Graph& graph) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const Node& node : graph.nodes) {
    nlohmann::json j = {{"type", static_cast<int>(node.type)},
                        {"tensors", nlohmann::json::object()},
                        {"numbers", nlohmann::json::object()},
                        {"reals", nlohmann::json::object()}};
    for (const auto& [name, tensor] : node.tensors)
      j["tensors"][std::to_string(name)] = document(tensor);
    for (const auto& [name, list] : node.numbers) j["numbers"][std::to_string(name)] = list;
    for (const auto& [name, real] : node.reals) j["reals"][std::to_string(name)] = real;
    nodes.push_back(std::move(j));
  }
  return nodes.dump();
}

Graph parse_graph(const std::string& text) {
  std::vector<Node> nodes;
  try {
    for (const nlohmann::json& j : nlohmann::json::parse(text)) {
      Node node;
      node.type = static_cast<cudnnBackendDescriptorType_t>(j.at("type").get<int>());
      for (const auto& [name, value] : j.at("tensors").items())
        node.tensors[std::stoi(name)] = tensor_of(value);
      for (const auto& [name, value] : j.at("numbers").items())
        node.numbers[std::stoi(name)] = value.get<std::vector<std::int64_t>>();
      for (const auto& [name, value] : j.at("reals").items())
        node.reals[std::stoi(name)] = value.get<double>();
      nodes.push_back(std::move(node));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Refusal{CUDNN_STATUS_BAD_PARAM, error.what()};
  } catch (const std::logic_error& error) {  // of stoi
    throw Refusal{CUDNN_STATUS_BAD_PARAM, error.what()};
  }
  return Graph::of(std::move(nodes));
}

}  // namespace cuda_on_host::cudnn
