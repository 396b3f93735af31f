// paceline calibrate: parameters from measurements.
#include "cli/command.h"

namespace paceline::cli {

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Profiles from measurements: of the cluster that it is started on");
  add_calibrate_cluster(*command);
}

}  // namespace paceline::cli
