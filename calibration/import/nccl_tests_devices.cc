// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "calibration/import/table_text.h"
#include "models/base/error.h"

namespace paceline::calibration {

void NcclTestsDevices::add(int rank, std::string_view host, std::string_view device) {
  const bool is_new = devices_.emplace(rank, Device{std::string(host), std::string(device)}).second;
  repeated_ = repeated_ || !is_new;
}

bool NcclTestsDevices::are_multiples_of(int step) const {
  return std::all_of(devices_.begin(), devices_.end(),
                     [&](const auto& entry) { return entry.first % step == 0; });
}

Count NcclTestsDevices::machines(std::vector<std::string>& remarks) const {
  std::map<std::string, std::map<std::string, int>> ranks;  // by host and device
  for (const auto& [rank, device] : devices_) {
    int& count = ranks[device.host][device.name];
    count = device.name.empty() ? 1 : count + 1;
  }
  int sum = 0;
  for (const auto& [host, devices] : ranks) {
    int machines = 1;
    for (const auto& [device, count] : devices) machines = std::max(machines, count);
    sum += machines;
    if (machines > 1)
      remarks.push_back(fmt::format(
          "{} machines are called {}: as many ranks are on one and the same device of it", machines,
          in_quotes(printable(host))));
  }
  return ranks.contains("") ? Count{} : Count::of(sum);
}

NcclTestsRun NcclTestsDevices::told(int per_listed) const {
  NcclTestsRun run;
  if (devices_.empty()) return run;
  std::vector<std::string> remarks;
  run.nodes = machines(remarks);
  const int most = devices_.rbegin()->first;
  run.ranks.least = most + per_listed;
  const bool whole = devices_.begin()->first == 0 && most == (count() - 1) * per_listed;
  if (!whole) {
    run.nodes.most = Count{}.most;
    run.remarks.push_back(fmt::format(
        "the list of devices was copied in part: it has {} rank{}, {}, and so tells neither ranks "
        "nor nodes",
        count(), count() == 1 ? "" : "s",
        count() == 1 ? fmt::format("number {}", most)
                     : fmt::format("from {} to {}", devices_.begin()->first, most)));
    return run;
  }
  run.ranks.most = run.ranks.least;
  run.remarks = std::move(remarks);
  return run;
}

}  // namespace paceline::calibration
