// Tests: tests/cli (end to end).
#include "simulator/engine/engine_kind.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "simulator/engine/executor_engine.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/simgrid_module.h"

namespace paceline::simulator {
namespace {

constexpr std::array<std::pair<EngineKind, std::string_view>, 5> kinds = {
    {{EngineKind::automatic, "auto"},
     {EngineKind::step, "step"},
     {EngineKind::flow, "flow"},
     {EngineKind::executor, "executor"},
     {EngineKind::simgrid, "simgrid"}}};

// How much of what messages do an engine sees.
int detail(EngineKind kind) {
  switch (kind) {
    case EngineKind::automatic:
      break;
    case EngineKind::step:
      return 0;  // messages of one step share links
    case EngineKind::flow:
      return 1;  // all messages share links
    case EngineKind::executor:
      return 2;  // and wait for segments and sends that are held back
    case EngineKind::simgrid:
      return 3;  // the reference, which is only timed by when asked for
  }
  PACELINE_ASSERT(false, "an engine that times is not automatic");
  return 0;
}

}  // namespace

EngineKind more_detailed(EngineKind a, EngineKind b) {
  return detail(b) > detail(a) ? b : a;
}

std::string_view name(EngineKind kind) {
  return name_in(kinds, kind);
}

std::string described(EngineKind kind) {
  return kind == EngineKind::simgrid ? "SimGrid" : std::string(name(kind)) + " engine";
}

EngineKind engine_from_name(std::string_view text) {
  return value_named(kinds, "engine", text);
}

EngineKind network_engine_kind(EngineKind kind, std::span<const models::Schedule> schedules,
                               const CommunicationCost& cost) {
  if (kind == EngineKind::step)
    throw InputError("the step engine does not see that buckets in flight share links",
                     "choose --engine flow, or --streams 1");
  if (kind == EngineKind::executor && !cost.transport)
    throw InputError("the executor engine needs a calibrated transport",
                     "give a --profile that paceline calibrate measured, or another --engine");
  if (kind != EngineKind::automatic) return kind;
  const bool by_executor =
      cost.transport && std::all_of(schedules.begin(), schedules.end(), suits_executor_engine);
  return by_executor ? EngineKind::executor : EngineKind::flow;
}

std::unique_ptr<NetworkEngine> make_network_engine(EngineKind kind,
                                                   std::span<const models::Schedule> schedules,
                                                   const CommunicationCost& cost) {
  kind = network_engine_kind(kind, schedules, cost);
  if (kind == EngineKind::simgrid) return load_simgrid_engine(schedules, cost);
  if (kind == EngineKind::executor) return std::make_unique<ExecutorEngine>(schedules, cost);
  return std::make_unique<FlowEngine>(schedules, cost);
}

}  // namespace paceline::simulator
