// Tests: tests/cli (end to end).
#include "simulator/engine/engine_kind.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/simgrid_module.h"

namespace paceline::simulator {
namespace {

constexpr std::array<std::pair<EngineKind, std::string_view>, 4> kinds = {
    {{EngineKind::automatic, "auto"},
     {EngineKind::step, "step"},
     {EngineKind::flow, "flow"},
     {EngineKind::simgrid, "simgrid"}}};

}  // namespace

std::string_view name(EngineKind kind) {
  for (const auto& [value, text] : kinds) {
    if (value == kind) return text;
  }
  return "unknown";
}

std::string described(EngineKind kind) {
  return kind == EngineKind::simgrid ? "SimGrid" : std::string(name(kind)) + " engine";
}

EngineKind engine_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, candidate] : kinds) {
    if (candidate == text) return value;
    known.emplace_back(candidate);
  }
  throw unknown_name("engine", text, known);
}

EngineKind shared_link_kind(EngineKind kind) {
  if (kind == EngineKind::step)
    throw InputError("the step engine does not see that buckets in flight share links",
                     "choose --engine flow, or --streams 1");
  return kind == EngineKind::automatic ? EngineKind::flow : kind;
}

std::unique_ptr<SharedLinkEngine> make_shared_link_engine(
    EngineKind kind, std::span<const models::Schedule> schedules, const CommunicationCost& cost) {
  if (kind == EngineKind::simgrid) return load_simgrid_engine(schedules, cost);
  return std::make_unique<FlowEngine>(schedules, cost);
}

}  // namespace paceline::simulator
