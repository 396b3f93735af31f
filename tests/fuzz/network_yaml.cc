// Any bytes as a network file: a network whose work can be counted, or an InputError.
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "models/network/work.h"
#include "models/network/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  try {
    const models::NetworkWork work = models::work(
        models::parse_network_yaml({reinterpret_cast<const char*>(data), size}, "network.yaml"));
    PACELINE_ASSERT(work.parameters() >= 0 && work.forward_flops() >= 0, "work is counted");
  } catch (const InputError&) {
  }
  return 0;
}
