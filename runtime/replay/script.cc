// Tests: tests/cli/replay_test.py (end to end).
#include "runtime/replay/script.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "models/plan/plan_json.h"

namespace paceline::runtime {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string to_json(const ReplayScript& script, const models::NetworkWork& network) {
  Json json = {
      {"update_s", script.update.value()}, {"layers_s", Json::array()}, {"plans", Json::array()}};
  for (const LayerDuration& layer : script.layers)
    json["layers_s"].push_back({layer.forward.value(), layer.backward.value()});
  for (const models::Plan& plan : script.plans)
    json["plans"].push_back(to_json(models::plan_document(plan, network)));
  return json.dump();
}

ReplayScript parse_replay_script(const std::string& text, const models::NetworkWork& network,
                                 int ranks) {
  const Json json = Json::parse(text);
  ReplayScript script{.plans = {}, .layers = {}, .update = Seconds{json["update_s"]}};
  for (const Json& layer : json["layers_s"])
    script.layers.push_back({Seconds{layer[0]}, Seconds{layer[1]}});
  for (const Json& plan : json["plans"]) {
    const std::string sender = "the plan of rank 0";
    models::PlanDocument document = models::parse_plan(plan.get<std::string>(), sender);
    check_plan(document, sender, network, ranks);
    script.plans.push_back(std::move(document.plan));
  }
  return script;
}

}  // namespace paceline::runtime
