// Uses something of each library, so that each is linked.
#include <iostream>

#include "calibration/shipped_profiles.h"
#include "experiments/agreement/topologies.h"
#include "runtime/training/recipe.h"
#include "runtime/transport/mpi_transport.h"
#include "runtime/transport/thread_transport.h"
#include "simulator/engine/simgrid_engine.h"

int main(int argc, char**) {
  if (argc > 1) return paceline::runtime::mpi_transport() != nullptr ? 0 : 1;  // linked, not called
  std::cout << "SimGrid " << paceline::simulator::SimgridEngine::version() << ", "
            << paceline::runtime::thread_transports(2).size() << " ranks, "
            << paceline::runtime::shipped_recipes().size() << " recipes, "
            << paceline::calibration::shipped_profile_names().size() << " profiles, "
            << paceline::experiments::topologies().size() << " topologies\n";
  return 0;
}
