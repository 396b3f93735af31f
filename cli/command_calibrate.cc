// paceline calibrate: parameters from measurements.
#include "cli/command.h"

namespace paceline::cli {

void add_calibrate(Command& app) {
  Command& command = app.add_command("calibrate",
                                     "Profiles from measurements: of the cluster that it is "
                                     "started on, or of other tools' output");
  add_calibrate_cluster(command);
  add_calibrate_import(command);
}

}  // namespace paceline::cli
