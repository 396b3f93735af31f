// Any bytes as a SimGrid platform: an InputError, or a platform that is the same when it is written
// and read again.
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "models/cluster/simgrid_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  models::Platform platform;
  try {
    platform = models::parse_simgrid_xml({reinterpret_cast<const char*>(data), size}, "p.xml");
  } catch (const InputError&) {
    return 0;
  }
  constexpr std::size_t most_written = 64;
  if (platform.hosts.size() > most_written) return 0;
  const models::Platform again =
      models::parse_simgrid_xml(models::simgrid_xml(platform), "written.xml");
  PACELINE_ASSERT(again.hosts == platform.hosts, "hosts survive");
  PACELINE_ASSERT(again.route_links == platform.route_links, "routes survive");
  PACELINE_ASSERT(again.links.size() == platform.links.size(), "links survive");
  for (std::size_t i = 0; i < again.links.size(); ++i) {
    PACELINE_ASSERT(again.links[i].bandwidth == platform.links[i].bandwidth &&
                        again.links[i].latency == platform.links[i].latency,
                    "figures survive");
  }
  return 0;
}
