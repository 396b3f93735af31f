// What the lists of the what-if page offer, as JSON (docs/formats.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/base/document.h"
#include "models/cluster/cluster.h"
#include "models/network/network.h"

namespace paceline::serve {

struct Choice {
  std::string name;
  std::string description;
  bool is_own = false;  // of a file that the command was given
};

struct ClusterChoice {
  Choice choice;
  int ranks = 1;
  int ranks_per_node = 1;
};

struct Choices {
  std::vector<Choice> models;
  std::vector<ClusterChoice> clusters;
};

// Own networks and clusters, by the paths of the files that they were read from: pages ask for them by
// these, as the command takes them.
struct OwnFiles {
  std::map<std::string, models::Network> networks;
  std::map<std::string, models::Cluster> clusters;
};

// Own ones, and those of the catalogue.
[[nodiscard]] Choices choices(const OwnFiles& own);

[[nodiscard]] const Document<Choices>& choices_document();

}  // namespace paceline::serve
