#include "tests/support/cuda_on_host/cudnn/execution.h"

#include <algorithm>
#include <cstring>

#include "tests/support/cuda_on_host/cudnn/interpreter.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

constexpr int poison = 0xff;

std::byte* at_address(std::int64_t number) {
  return reinterpret_cast<std::byte*>(number);  // NOLINT: pointers are kept as numbers
}

std::map<std::int64_t, std::byte*> pointers_of(const Content& pack) {
  std::map<std::int64_t, std::byte*> pointers;
  if (!pack.has(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)) return pointers;
  const auto& uids = pack.value(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).numbers;
  const auto& data = pack.value(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).numbers;
  for (std::size_t i = 0; i < uids.size(); ++i)
    if (!pointers.emplace(uids[i], at_address(data[i])).second)
      die("a cuDNN variant pack names tensor " + std::to_string(uids[i]) + " twice");
  return pointers;
}

// What an execution touches, found and checked.
struct Bound {
  Memory memory;  // of tensors and numbers
  std::byte* workspace = nullptr;
};

float number_at(const Tensor& tensor, const std::byte* host) {
  const Allocation* const a = find_allocation(host);
  if (a != nullptr && a->kind == MemoryKind::device)
    die(text_of(tensor) + " is by value, and " + place_of(host) + " was given for it");
  if (tensor.type != CUDNN_DATA_FLOAT) die(text_of(tensor) + " is by value, and not FP32");
  float number = 0;
  std::memcpy(&number, host, sizeof number);
  return number;
}

Bound bind(const Content& plan, const Content& pack) {
  std::map<std::int64_t, std::byte*> pointers = pointers_of(pack);
  Bound bound;
  for (const auto& [uid, tensor] : plan.graph->tensors) {
    const auto at = pointers.find(uid);
    if (tensor.is_virtual) {
      if (at != pointers.end()) die(text_of(tensor) + " is virtual, and stands in a variant pack");
      continue;
    }
    require(at != pointers.end() && at->second != nullptr,
            "the variant pack has no memory for " + text_of(tensor));
    if (reinterpret_cast<std::uintptr_t>(at->second) %
            static_cast<std::uintptr_t>(tensor.alignment) !=
        0)
      die(text_of(tensor) + " is not aligned to " + std::to_string(tensor.alignment) + " bytes");
    if (tensor.by_value)
      bound.memory.numbers[uid] = number_at(tensor, at->second);
    else
      bound.memory.tensors[uid] = at->second;
    pointers.erase(at);
  }
  if (!pointers.empty())
    die("tensor " + std::to_string(pointers.begin()->first) +
        " stands in a variant pack, and not in the plan");
  if (plan.engine.workspace > 0) {
    if (pack.has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE))
      bound.workspace = at_address(pack.number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
    if (bound.workspace == nullptr)
      die("a cuDNN plan that needs " + std::to_string(plan.engine.workspace) +
          " bytes of workspace was given none");
    if (reinterpret_cast<std::uintptr_t>(bound.workspace) % 16 != 0)
      die("the workspace of a cuDNN plan is not aligned to 16 bytes");
  }
  return bound;
}

std::vector<Access> accesses_of(const Content& plan, const Bound& bound) {
  std::vector<Access> list;
  for (const auto& [uid, first] : bound.memory.tensors) {
    const std::size_t bytes = span_bytes(plan.graph->tensors.at(uid));
    if (bytes > 0) list.push_back({first, bytes, plan.graph->writes(uid)});
  }
  if (bound.workspace != nullptr)
    list.push_back({bound.workspace, static_cast<std::size_t>(plan.engine.workspace), true});
  return list;
}

bool is_elementwise(const Graph& graph, const Tensor& a, const Tensor& b) {
  const bool pointwise = std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  });
  const auto is_running = [&](const Tensor& t, int before, int after) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return (node.has(before) && node.tensor(before).uid == t.uid) ||
             (node.has(after) && node.tensor(after).uid == t.uid);
    });
  };
  const auto both = [&](int before, int after) {
    return is_running(a, before, after) && is_running(b, before, after);
  };
  return a.dims == b.dims && a.strides == b.strides && a.type == b.type &&
         (pointwise ||
          both(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
               CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC) ||
          both(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
               CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC));
}

// What is written overlaps nothing else. A pointwise graph and running statistics may work in place.
void check_overlaps(const Content& plan, const Bound& bound, const std::string& what) {
  const Graph& graph = *plan.graph;
  for (const auto& [uid, first] : bound.memory.tensors) {
    const Tensor& tensor = graph.tensors.at(uid);
    const std::byte* const end = first + span_bytes(tensor);
    if (bound.workspace != nullptr && first < bound.workspace + plan.engine.workspace &&
        bound.workspace < end)
      die(what + ": " + text_of(tensor) + " overlaps the workspace");
    if (!graph.writes(uid)) continue;
    for (const auto& [other_uid, other] : bound.memory.tensors) {
      const Tensor& second = graph.tensors.at(other_uid);
      if (other_uid == uid || other >= end || first >= other + span_bytes(second)) continue;
      if (first == other && !graph.writes(other_uid) && is_elementwise(graph, tensor, second))
        continue;
      die(what + ": " + text_of(tensor) + " is written, and overlaps " + text_of(second));
    }
  }
}

std::string text_of(const Content& plan) {
  std::string text = "cuDNN's ";
  for (std::size_t i = 0; i < plan.graph->nodes.size(); ++i)
    text += (i == 0 ? "" : " + ") + name_of(plan.graph->nodes[i].type);
  return text;
}

}  // namespace

void execute(const cudnnContext& handle, const ContentPointer& plan, const Content& pack) {
  require(plan->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "no plan with a variant pack");
  require(plan->finalised && pack.finalised, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          "the plan or the variant pack is not finalised");
  if (handle.device != current_device())
    die("a cuDNN handle of device " + std::to_string(handle.device) + " is used on device " +
        std::to_string(current_device()));
  require(plan->architecture == handle.architecture, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
          "the plan was made for another architecture than the handle's device has");
  const auto bound = std::make_shared<const Bound>(bind(*plan, pack));
  const std::string what = text_of(*plan);
  check_overlaps(*plan, *bound, what);
  Stream* const stream = stream_of(handle.stream);
  require(launch_error(*stream) == cudaSuccess, CUDNN_STATUS_EXECUTION_FAILED,
          "the stream takes no launch");
  const int device = handle.device;
  enqueue(stream, [plan, bound, what, device] {
    auto operation = std::make_shared<Operation>();
    operation->what = what;
    operation->is_work = true;
    operation->accesses = accesses_of(*plan, *bound);
    check_accesses(*operation, device);
    operation->run = [plan, bound] {
      if (bound->workspace != nullptr)
        std::memset(bound->workspace, poison, static_cast<std::size_t>(plan->engine.workspace));
      interpret(*plan->graph, plan->engine.index, bound->memory);
    };
    return operation;
  });
}

}  // namespace cuda_on_host::cudnn
