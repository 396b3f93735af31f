// SimGrid as a module that is loaded on demand: a program that links SimGrid starts 60 ms later.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/network_engine.h"

namespace paceline::simulator {

// A SimgridEngine (simgrid_engine.h) from paceline-simgrid.so, which lies beside the executable or
// in ../lib/paceline from there. Throws UnavailableError if it is not there or was built without
// SimGrid, and what the engine's constructor throws.
[[nodiscard]] std::unique_ptr<NetworkEngine> load_simgrid_engine(
    std::span<const models::Schedule> schedules, const CommunicationCost& cost);
// The version of SimGrid that the module was loaded with, as "3.32.0". Throws the same.
[[nodiscard]] std::string simgrid_version();

}  // namespace paceline::simulator
