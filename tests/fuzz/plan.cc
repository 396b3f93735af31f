// Any bytes as a plan: one that is written and read back as it is, and that fits the network that it
// describes and no other; or an InputError.
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "models/plan/plan_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  try {
    const models::PlanDocument document =
        models::parse_plan({reinterpret_cast<const char*>(data), size}, "plan.json");
    const std::string text = models::to_json(document);
    PACELINE_ASSERT(models::parse_plan(text, "again.json") == document, "what is read is written");
    models::NetworkWork network;
    network.name = document.network;
    for (const models::PlannedGradient& gradient : document.gradients)
      network.gradients.push_back({gradient.name, gradient.elements, 0});
    models::check_plan(document, "plan.json", network, document.plan.ranks);
  } catch (const InputError&) {
  }
  return 0;
}
