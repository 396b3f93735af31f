// Tests: tests/cli (end to end).
#include "simulator/engine/simgrid_module.h"

#include <vector>

#include "models/base/module.h"

namespace paceline::simulator {
namespace {

using Make = NetworkEngine* (*)(const models::Schedule*, std::size_t, const CommunicationCost*);
using Version = const char* (*)();

struct Module {
  Make make = nullptr;
  Version version = nullptr;
};

const Module& module() {
  static const Module loaded = [] {
    const std::vector<void*> symbols =
        load_module({.file = "paceline-simgrid.so",
                     .what = "the SimGrid engine",
                     .remedy = "choose --engine flow"},
                    {"paceline_make_simgrid_engine", "paceline_simgrid_version"});
    return Module{reinterpret_cast<Make>(symbols[0]), reinterpret_cast<Version>(symbols[1])};
  }();
  return loaded;
}

}  // namespace

std::unique_ptr<NetworkEngine> load_simgrid_engine(std::span<const models::Schedule> schedules,
                                                   const CommunicationCost& cost) {
  return std::unique_ptr<NetworkEngine>(module().make(schedules.data(), schedules.size(), &cost));
}

std::string simgrid_version() {
  return module().version();
}

}  // namespace paceline::simulator
