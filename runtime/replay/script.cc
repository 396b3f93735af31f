// Tests: tests/cli/replay_test.py (end to end).
#include "runtime/replay/script.h"

#include <utility>

#include "models/base/json.h"
#include "models/base/json_reader.h"
#include "models/plan/plan_json.h"

namespace paceline::runtime {

std::string to_json(const ReplayScript& script, const models::NetworkWork& network) {
  Json json = {
      {"update_s", script.update.value()}, {"layers", Json::array()}, {"plans", Json::array()}};
  for (const LayerDuration& layer : script.layers)
    json["layers"].push_back(
        {{"forward_s", layer.forward.value()}, {"backward_s", layer.backward.value()}});
  for (const models::Plan& plan : script.plans)
    json["plans"].push_back(json_of(models::plan_document(plan, network)));
  return json.in_one_line();
}

ReplayScript parse_replay_script(const std::string& text, const models::NetworkWork& network,
                                 int ranks) {
  const std::string sender = "rank 0";
  const JsonDocument document(text, sender, "the script", "run the same program on all ranks");
  const JsonValue root = document.root();
  ReplayScript script{.plans = {}, .layers = {}, .update = Seconds{root.at("update_s").number()}};
  root.at("layers").for_each([&](const JsonValue& layer) {
    script.layers.push_back(
        {Seconds{layer.at("forward_s").number()}, Seconds{layer.at("backward_s").number()}});
  });
  root.at("plans").for_each([&](const JsonValue& entry) {
    models::PlanDocument plan = models::read_plan(entry);
    check_plan(plan, sender, network, ranks);
    script.plans.push_back(std::move(plan.plan));
  });
  return script;
}

}  // namespace paceline::runtime
