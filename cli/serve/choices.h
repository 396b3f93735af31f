// What the lists of the what-if page offer, as JSON (docs/formats.md).
#pragma once

#include <string>
#include <vector>

#include "models/base/document.h"

namespace paceline::serve {

struct Choice {
  std::string name;
  std::string description;
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

// Those of the catalogue.
[[nodiscard]] Choices choices();

[[nodiscard]] const Document<Choices>& choices_document();

}  // namespace paceline::serve
