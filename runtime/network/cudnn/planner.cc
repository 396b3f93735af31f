// Tests: tests/runtime/cudnn/planner_test.cc.
#include "runtime/network/cudnn/planner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "runtime/network/cudnn/descriptor.h"
#include "runtime/network/cudnn/operation_graph.h"

namespace paceline::runtime::cudnn {

using namespace steps;

struct Planner::Descriptors {
  Descriptor device{CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR};
};

namespace {

template <class T>
bool has(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// What cuDNN notes about an engine.
struct EngineNotes {
  std::vector<cudnnBackendNumericalNote_t> numerical;
  std::vector<cudnnBackendBehaviorNote_t> behavior;
};

EngineNotes notes_of(const Descriptor& engine) {
  return {engine.list<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                   CUDNN_TYPE_NUMERICAL_NOTE,
                                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT),
          engine.list<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                  CUDNN_TYPE_BEHAVIOR_NOTE,
                                                  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT)};
}

// Why the rules exclude an engine; empty if they do not.
std::string objection(const EngineNotes& notes, const Operation& operation,
                      models::NumberType storage, const PlanRules& rules) {
  if (rules.deterministic && has(notes.numerical, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
    return "it is not deterministic";
  const bool rounds_fp32 = storage == models::NumberType::fp32 &&
                           (has(notes.numerical, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ||
                            has(notes.numerical, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  // Engines that are compiled at run time have the note also where nothing is multiplied.
  if (rounds_fp32 && !rules.tf32 && std::holds_alternative<Convolution>(operation))
    return "it rounds its operands to TF32";
  if (storage != models::NumberType::fp32 &&
      has(notes.numerical, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
    return "it converts its operands down";
  if (has(notes.numerical, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION))
    return "it sums in fewer bits";
  return "";
}

}  // namespace

std::int64_t cudnn_version() {
  return static_cast<std::int64_t>(cudnnGetVersion());
}

DeviceDescription description_of_device(int index) {
  Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set_number32(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, index)
      .finalise("the description of device " + std::to_string(index));
  return device_of_properties(device.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
}

Planner::Planner(DeviceDescription device)
    : device_(std::move(device)), descriptors_(std::make_unique<Descriptors>()) {
  descriptors_->device.set_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, device_.properties)
      .finalise("the description of " + device_.name);
}

Planner::~Planner() = default;

Plan Planner::plan(const Operation& operation, models::NumberType storage,
                   const PlanRules& rules) const {
  const std::string what = "plan " + key(operation, storage) + " for " + device_.name;
  const Descriptor graph = operation_graph(operation, storage);
  std::string reason;
  std::vector<Descriptor> offered;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!offered.empty()) break;
    try {
      Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
          .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
          .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, descriptors_->device)
          .finalise("the heuristics");
      offered = heuristics.held(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      if (offered.empty()) reason = last_words();
    } catch (const RunError& error) {
      reason = error.what();
    }
  }
  if (offered.empty()) {
    if (reason.find("libcuda == nullptr") != std::string::npos)
      reason = "it is compiled at run time, and there is no driver (libcuda.so.1)";
    throw RunError(what, "cuDNN offers no configuration: " + reason);
  }

  for (std::size_t i = 0; i < offered.size(); ++i) {
    const Descriptor engine =
        offered[i].only_held(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    const EngineNotes notes = notes_of(engine);
    if (const std::string why = objection(notes, operation, storage, rules); !why.empty()) {
      reason = why;
      continue;
    }
    Descriptor built(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    try {
      built.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, offered[i])
          .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, descriptors_->device)
          .finalise("the plan");
    } catch (const RunError& error) {
      reason = error.what();
      continue;
    }
    const std::int64_t workspace = built.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    if (workspace > rules.workspace) {
      reason = "it wants " + std::to_string(workspace) + " bytes of workspace";
      continue;
    }
    return {.engine = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
            .workspace = workspace,
            .configurations = static_cast<int>(offered.size()),
            .chosen = static_cast<int>(i),
            .compiled = has(notes.behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION),
            .serialised = built.text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)};
  }
  throw RunError(what, "none of " + std::to_string(offered.size()) +
                           " configurations will do; of the last: " + reason);
}

Descriptor Planner::load(const std::string& serialised, cudnnHandle_t handle) const {
  const auto finalised = [&](Descriptor plan) {
    plan.set_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, serialised)
        .finalise("the serialised plan");
    return plan;
  };
  if (handle != nullptr) {
    try {
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
      return finalised(std::move(plan));
    } catch (const RunError&) {  // the description may do
    }
  }
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, descriptors_->device);
  return finalised(std::move(plan));
}

bool Planner::loads(const std::string& serialised) const {
  try {
    static_cast<void>(load(serialised));
    return true;
  } catch (const RunError&) {
    return false;
  }
}

}  // namespace paceline::runtime::cudnn
