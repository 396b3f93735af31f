// paceline calibrate: parameters from measurements.
#include "cli/command.h"

namespace paceline::cli {

void add_calibrate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Profiles from measurements: of the cluster that it is started on, or of other tools' output");
  add_calibrate_cluster(*command);
  add_calibrate_import(*command);
}

}  // namespace paceline::cli
