// From a graph to a plan: devices, heuristics, engines, configurations, plans.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/cuda_on_host/cudnn/engines.h"
#include "tests/support/cuda_on_host/cudnn/finalise.h"
#include "tests/support/cuda_on_host/cudnn/handles.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

constexpr const char* maker = "the double of cuDNN";

// What the double of libcudart describes its devices as.
constexpr const char* stated_device =
    R"({"deviceVer":900,"driverVer":13000,"cudaDeviceId":0,)"
    R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"smClockRateKHz":1980000,"memClockRateKHz":2619000,)"
    R"("l2CacheSize":52428800,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("maxRegistersPerSM":65536,"pciDeviceId":0,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920,)"
    R"~("deviceName":"NVIDIA H100 80GB HBM3 (double)"})~";

bool is_description(const nlohmann::json& j) {
  static constexpr const char* numbers[] = {"deviceVer",
                                            "driverVer",
                                            "cudaDeviceId",
                                            "regsPerBlock",
                                            "multiProcessorCount",
                                            "smClockRateKHz",
                                            "memClockRateKHz",
                                            "l2CacheSize",
                                            "warpSize",
                                            "maxSharedMemoryPerBlock",
                                            "maxSharedMemoryPerBlockOptin",
                                            "reservedSharedMemoryPerBlock",
                                            "maxRegistersPerSM",
                                            "pciDeviceId",
                                            "maxCtasPerSM",
                                            "maxThreadsPerBlock",
                                            "maxThreadsPerSM",
                                            "isTccDriver",
                                            "supportCoopLaunch",
                                            "totalGlobalMem"};
  return j.is_object() &&
         std::all_of(std::begin(numbers), std::end(numbers),
                     [&](const char* key) { return j.contains(key) && j[key].is_number(); }) &&
         j.contains("maxGridSize") && j.contains("maxBlockSize") && j.contains("deviceName");
}

// Of the attribute that names a device description, the one that names a handle, or `otherwise`; of
// the current device where there is none of them.
int architecture_of(const Content& content, int device_name, int handle_name, int otherwise = 0) {
  if (content.has(device_name)) {
    const Content& device = *content.held(device_name);
    if (device.type != CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
      die("the description of a device for cuDNN is none");
    if (device.finalised) return device.architecture;
  }
  if (handle_name != 0 && content.has(handle_name))
    return live_handle(reinterpret_cast<cudnnHandle_t>(content.number(handle_name))).architecture;
  return otherwise != 0 ? otherwise : architecture_of_current_device();
}

const Content& graph_held(const Content& content, int name, cudnnStatus_t missing) {
  require(content.has(name), missing, "no graph was set");
  const Content& graph = *content.held(name);
  if (graph.type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) die("a graph for cuDNN is none");
  require(graph.finalised, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the graph is not finalised");
  return graph;
}

template <class Enumeration>
void put_list(Content& content, int name, cudnnBackendAttributeType_t type,
              const std::vector<Enumeration>& list) {
  content.put(name, type, std::vector<std::int64_t>(list.begin(), list.end()));
}

// A finalised engine, and a configuration of it.
ContentPointer make_engine(std::shared_ptr<const Graph> graph, const Engine& engine,
                           int architecture) {
  auto made = std::make_shared<Content>();
  made->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  made->graph = std::move(graph);
  made->engine = engine;
  made->architecture = architecture;
  made->put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, {engine.index});
  put_list(*made, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine.numerical);
  put_list(*made, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, engine.behavior);
  made->finalised = true;
  return made;
}

void configure(Content& configuration, const ContentPointer& engine) {
  Value held;
  held.type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  held.descriptors = {engine};
  configuration.values[CUDNN_ATTR_ENGINECFG_ENGINE] = held;
  configuration.put(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                    {engine->engine.workspace});
}

std::string serialised(const Content& plan) {
  const nlohmann::json j = {{"cudnnVersion", CUDNN_VERSION},
                            {"madeBy", maker},
                            {"smVersion", plan.architecture * 10},
                            {"engine", plan.engine.index},
                            {"operationGraph", nlohmann::json::parse(serialise(*plan.graph))}};
  return j.dump();
}

void take_engine(Content& content, std::shared_ptr<const Graph> graph, std::int64_t index) {
  const std::vector<Engine> engines = engines_of(*graph);
  const auto at = std::find_if(engines.begin(), engines.end(),
                               [&](const Engine& e) { return e.index == index; });
  require(at != engines.end(), CUDNN_STATUS_NOT_SUPPORTED,
          "there is no engine " + std::to_string(index) + " for this graph");
  content.engine = *at;
  content.graph = std::move(graph);
}

void load_plan(Content& content, const std::string& text) {
  const nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  require(j.is_object() && j.contains("madeBy") && j["madeBy"] == maker &&
              j.contains("smVersion") && j["smVersion"].is_number_integer() &&
              j.contains("engine") && j["engine"].is_number_integer() &&
              j.contains("operationGraph"),
          "the text is no plan that the double has serialised");
  if (!content.has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP) &&
      !content.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
    die("a cuDNN plan is loaded for no device and no handle");  // cuDNN crashes
  const int architecture = architecture_of(content, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                           CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  require(j["smVersion"].get<int>() == architecture * 10, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
          "the plan was made for another architecture");
  take_engine(content, std::make_shared<const Graph>(parse_graph(j["operationGraph"].dump())),
              j["engine"].get<std::int64_t>());
  content.architecture = architecture;
}

}  // namespace

void finalise_device(Content& content) {
  if (content.has(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)) {
    const nlohmann::json j = nlohmann::json::parse(
        content.value(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).text, nullptr, false);
    require(is_description(j), "the text describes no device");
    content.architecture = j["deviceVer"].get<int>() / 10;
  } else {
    content.architecture = architecture_of(content, 0, CUDNN_ATTR_DEVICEPROP_HANDLE);
    Value text;
    text.type = CUDNN_TYPE_CHAR;
    text.text = stated_device;
    content.values[CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION] = std::move(text);
  }
}

void finalise_heuristics(Content& content) {
  const Content& graph =
      graph_held(content, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_STATUS_BAD_PARAM);
  content.architecture = architecture_of(content, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 0);
  const std::string why = objection(*graph.graph);
  note_reason(why);
  const Node& first = graph.graph->nodes[0];
  require(why.empty() || graph.graph->nodes.size() > 1 ||
              first.type != CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
          CUDNN_STATUS_NOT_SUPPORTED, why);
  Value results;
  results.type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  for (const Engine& engine : engines_of(*graph.graph)) {
    auto made = std::make_shared<Content>();
    made->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    configure(*made, make_engine(graph.graph, engine, content.architecture));
    made->finalised = true;
    results.descriptors.push_back(std::move(made));
  }
  content.values[CUDNN_ATTR_ENGINEHEUR_RESULTS] = std::move(results);
}

void finalise_engine(Content& content) {
  const Content& graph =
      graph_held(content, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  require(content.has(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), CUDNN_STATUS_NOT_SUPPORTED,
          "an engine without its index");
  const int architecture = architecture_of(content, CUDNN_ATTR_ENGINE_DEVICEPROP, 0);
  take_engine(content, graph.graph, content.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const Content made = *make_engine(content.graph, content.engine, architecture);
  for (const auto& [name, value] : made.values) content.values[name] = value;
  content.architecture = architecture;
}

void finalise_configuration(Content& content) {
  if (!content.has(CUDNN_ATTR_ENGINECFG_ENGINE))
    die("a cuDNN engine configuration without an engine");  // cuDNN crashes
  const ContentPointer engine = content.held(CUDNN_ATTR_ENGINECFG_ENGINE);
  if (engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) die("an engine of cuDNN is none");
  require(engine->finalised, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the engine is not finalised");
  configure(content, engine);
}

void finalise_plan(Content& content) {
  const bool loads = content.has(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  const bool configured = content.has(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  require(!loads || !configured, "a plan by its text and by a configuration");
  require(loads || configured, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          "a plan without its configuration");
  if (loads) {
    load_plan(content, content.value(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION).text);
  } else {
    const Content& configuration = *content.held(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (configuration.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
      die("an engine configuration of cuDNN is none");
    require(configuration.finalised, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            "the engine configuration is not finalised");
    const Content& engine = *configuration.held(CUDNN_ATTR_ENGINECFG_ENGINE);
    content.graph = engine.graph;
    content.engine = engine.engine;
    content.architecture = architecture_of(content, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                           CUDNN_ATTR_EXECUTION_PLAN_HANDLE, engine.architecture);
    Value text;
    text.type = CUDNN_TYPE_CHAR;
    text.text = serialised(content);
    content.values[CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION] = std::move(text);
  }
  content.put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
              {content.engine.workspace});
}

}  // namespace cuda_on_host::cudnn
