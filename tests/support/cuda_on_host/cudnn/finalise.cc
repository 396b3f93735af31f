#include "tests/support/cuda_on_host/cudnn/finalise.h"

#include "tests/support/cuda_on_host/cudnn/engines.h"

namespace cuda_on_host::cudnn {
namespace {

void finalise_graph(Content& content) {
  require(content.has(CUDNN_ATTR_OPERATIONGRAPH_OPS), "a graph without operations");
  std::vector<Node> nodes;
  for (const ContentPointer& operation : content.value(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors)
    nodes.push_back(node_of(*operation));
  auto graph = std::make_shared<const Graph>(Graph::of(std::move(nodes)));
  content.put(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64,
              {static_cast<std::int64_t>(engines_of(*graph).size())});
  content.graph = std::move(graph);
}

// Both sides have a pointer for each unique id. That they are the graph's is seen when it is executed.
void finalise_pack(const Content& content) {
  const auto count = [&](int name) { return content.has(name) ? content.value(name).size() : 0; };
  require(count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) == count(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS),
          "unique ids and pointers of a variant pack are not as many");
}

}  // namespace

void finalise(Content& content) {
  require(!content.finalised, "the descriptor is finalised");
  switch (content.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      finalise_tensor(content);
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      finalise_convolution_window(content);
      break;
    case CUDNN_BACKEND_RESAMPLE_DESCRIPTOR:
      finalise_resample_window(content);
      break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      finalise_graph(content);
      break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      finalise_pack(content);
      break;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      finalise_device(content);
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      finalise_heuristics(content);
      break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      finalise_engine(content);
      break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      finalise_configuration(content);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      finalise_plan(content);
      break;
    default:
      finalise_operation(content);
  }
  content.finalised = true;
}

}  // namespace cuda_on_host::cudnn
