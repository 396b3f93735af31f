// The kinds of engines, and which of them times a schedule.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

class NetworkEngine;

enum class EngineKind {
  automatic,  // the executor engine where the transport is calibrated and the schedule suits it,
              // else the step engine where no link is ever shared, else the flow engine
  step,
  flow,
  executor,
  simgrid,
};

// "auto", "step", "flow", "executor", "simgrid".
[[nodiscard]] std::string_view name(EngineKind kind);
// "step engine", "flow engine", "executor engine" or "SimGrid". `kind` must not be automatic.
[[nodiscard]] std::string described(EngineKind kind);
// Throws InputError that suggests the nearest name.
[[nodiscard]] EngineKind engine_from_name(std::string_view text);

// The engine that a plan is said to be timed by, given the engines of two of its parts: the one
// that models more of what messages do. SimGrid and the executor engine model more than the flow
// engine, which models more than the step engine; `automatic` models nothing. The order of the
// enumerators has no meaning.
[[nodiscard]] EngineKind more_detailed(EngineKind a, EngineKind b);

// The kind of network engine (network_engine.h) that serves where `kind` is asked for. Automatic
// becomes the executor engine where the transport is calibrated and suits_executor_engine() holds
// for each schedule, and the flow engine elsewhere. Throws InputError if it is the step engine, or
// the executor engine without a calibrated transport.
[[nodiscard]] EngineKind network_engine_kind(EngineKind kind,
                                             std::span<const models::Schedule> schedules,
                                             const CommunicationCost& cost);

// A network engine of the kind that network_engine_kind() names. Throws what that throws,
// UnavailableError if the engine was not built in, and InputError where the schedules are too large
// for it.
[[nodiscard]] std::unique_ptr<NetworkEngine> make_network_engine(
    EngineKind kind, std::span<const models::Schedule> schedules, const CommunicationCost& cost);

}  // namespace paceline::simulator
