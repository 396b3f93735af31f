// Any bytes as a cluster file: a cluster, or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "models/base/error.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  const auto platform = [](const std::string&) {
    return std::string(
        "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-7\" "
        "speed=\"1Gf\" bw=\"10GBps\" lat=\"1us\"/></platform>");
  };
  try {
    const models::Cluster cluster = models::parse_cluster_yaml(
        {reinterpret_cast<const char*>(data), size}, "cluster.yaml", platform);
    PACELINE_ASSERT(cluster.ranks() >= 1, "a cluster has ranks");
    PACELINE_ASSERT(!described(cluster.fabric).empty(), "a fabric is described");
    PACELINE_ASSERT(!described_placement(cluster).empty(), "a placement is described");
  } catch (const InputError&) {
  }
  return 0;
}
