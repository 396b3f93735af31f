// The twin of simgrid_engine.cc where SimGrid is not there.
#include "models/base/error.h"
#include "simulator/engine/simgrid_engine.h"

namespace paceline::simulator {

struct SimgridEngine::Model {};

bool SimgridEngine::is_built_in() {
  return false;
}

const char* SimgridEngine::version() {
  return "none";
}

SimgridEngine::SimgridEngine(std::span<const models::Schedule>, const CommunicationCost&) {
  throw UnavailableError(
      "built without SimGrid: install libsimgrid-dev 3.32 and pkg-config, and configure again");
}

SimgridEngine::~SimgridEngine() = default;

Completion SimgridEngine::completion(int, Bytes) {
  assertion_failed("is_built_in()", "no engine without SimGrid", __FILE__, __LINE__);
}

Completion SimgridEngine::completion(int, Bytes, std::span<const Seconds>) {
  assertion_failed("is_built_in()", "no engine without SimGrid", __FILE__, __LINE__);
}

void SimgridEngine::run(const std::function<void(Launcher&)>&, const Finished&) {
  assertion_failed("is_built_in()", "no engine without SimGrid", __FILE__, __LINE__);
}

}  // namespace paceline::simulator
