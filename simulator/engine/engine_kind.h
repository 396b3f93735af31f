// Which engine times a schedule.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/shared_links.h"

namespace paceline::simulator {

enum class EngineKind {
  automatic,  // executor where the transport is calibrated and the schedule suits it; else step
              // where no link is ever shared, else flow
  step,
  flow,
  executor,
  simgrid,
};

// "auto", "step", "flow", "executor", "simgrid".
[[nodiscard]] std::string_view name(EngineKind kind);
// "step engine", "flow engine", "SimGrid"; of a kind that is not automatic.
[[nodiscard]] std::string described(EngineKind kind);
// Throws InputError that suggests the nearest name.
[[nodiscard]] EngineKind engine_from_name(std::string_view text);

// The engine that follows shared links where `kind` is asked for. Throws InputError if it is the
// step engine, or the executor engine without a calibrated transport.
[[nodiscard]] EngineKind shared_link_kind(EngineKind kind,
                                          std::span<const models::Schedule> schedules,
                                          const CommunicationCost& cost);

// An engine of a kind that follows shared links; automatic: as shared_link_kind() says. Throws
// UnavailableError if it was not built in, and InputError where the schedules are too large for it.
[[nodiscard]] std::unique_ptr<SharedLinkEngine> make_shared_link_engine(
    EngineKind kind, std::span<const models::Schedule> schedules, const CommunicationCost& cost);

}  // namespace paceline::simulator
