// A cluster description (docs/formats.md) from what a file says of a machine.
//
// Links and devices are those of the catalogue, with its rates and sources. Nothing is made up: what
// neither the file nor the user says is a comment in the description, and named in `missing`. Two
// things are worked out, and the description says how: the number of NVLinks of a GPU, where the file
// has that of a pair, and the share of a link of the catalogue that fewer NVLinks give.
#pragma once

#include <string>
#include <vector>

#include "calibration/import/imported_machine.h"

namespace paceline::calibration {

// What the user knows and the file does not say; empty and 0 where they say nothing.
struct MachineContext {
  std::string file = {};  // named in the description
  std::string name = {};  // of the cluster
  std::string tool = {};
  int nodes = 0;
  std::string device = {};  // names of the catalogue
  std::string nic = {};
  std::string intra = {};
};

struct ClusterDescription {
  std::string yaml;
  std::vector<std::string> missing;  // keys that it cannot be read without
};

// Throws InputError if the context contradicts the file, or names nothing in the catalogue.
[[nodiscard]] ClusterDescription cluster_description(const ImportedMachine& machine,
                                                     const MachineContext& context);

}  // namespace paceline::calibration
