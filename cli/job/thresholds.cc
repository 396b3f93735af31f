// Tests: tests/cli (end to end).
#include "cli/job/thresholds.h"

#include <utility>

#include "models/base/error.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::job {

std::vector<std::pair<std::string, std::string>> given_thresholds(const ThresholdOptions& options) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"theta", &options.theta},
      {"eta", &options.eta},
      {"group", &options.group},
      {"segments", &options.segments},
      {"rings", &options.rings},
      {"servers", &options.servers},
      {"streams", &options.streams},
      {"cycle", &options.cycle},
      {"horovod", &options.horovod},
      {"partition", &options.partition},
      {"credit", &options.credit},
      {"server-machines", &options.server_machines},
      {"server-transport", &options.server_transport},
      {"factors-every", &options.factors_every}};
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [name, text] : texts)
    if (!text->empty()) given.emplace_back(name, *text);
  if (options.host_copies) given.emplace_back("host-copies", "");
  return given;
}

simulator::ThresholdRequest parse_thresholds(const ThresholdOptions& options) {
  simulator::ThresholdRequest request;
  for (const auto& [name, text] : given_thresholds(options)) {
    const simulator::ThresholdField* field = simulator::threshold_field(name);
    PACELINE_ASSERT(field != nullptr, "every option of thresholds is a field");
    read_threshold(*field, text, request);
  }
  check_together(request);
  return request;
}

}  // namespace paceline::job
