// What paceline-simgrid.so offers to simgrid_module.cc.
#include "simulator/engine/simgrid_engine.h"

extern "C" __attribute__((visibility("default"))) paceline::simulator::NetworkEngine*
paceline_make_simgrid_engine(const paceline::models::Schedule* schedules, std::size_t count,
                             const paceline::simulator::CommunicationCost* cost) {
  return new paceline::simulator::SimgridEngine(std::span(schedules, count), *cost);
}

extern "C" __attribute__((visibility("default"))) const char* paceline_simgrid_version() {
  return paceline::simulator::SimgridEngine::version();
}
