// Tests: tests/models/cluster_test.cc.
#include "models/cluster/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/names.h"

namespace paceline::models {

std::string_view name(FabricKind kind) {
  return name_in(fabric_kinds, kind);
}

std::string_view name(IntraKind kind) {
  return name_in(intra_kinds, kind);
}

std::string described(const Fabric& fabric) {
  std::string text;
  switch (fabric.kind) {
    case FabricKind::flat:
      return "flat";
    case FabricKind::fat_tree:
      text = fabric.levels.size() == 1 ? "two-level fat tree" : "three-level fat tree";
      for (std::size_t level = 0; level < fabric.levels.size(); ++level)
        text += fmt::format(", {} {} at {}:1", fabric.levels[level].members,
                            level == 0 ? "nodes a leaf" : "leaves a pod",
                            fabric.levels[level].oversubscription);
      return text;
    case FabricKind::torus:
      return fmt::format("{} torus", fmt::join(fabric.shape, " x "));
    case FabricKind::rail:
      return fmt::format("rails, spine at {}:1", fabric.oversubscription);
  }
  return "unknown";
}

}  // namespace paceline::models
