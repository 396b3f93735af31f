// Tests: tests/simulator/export/msccl_plan_test.cc.
#include "simulator/export/msccl_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/export/msccl.h"

namespace paceline::simulator {
namespace {

// Sizes in bytes, next to each other among the plan's, whose buckets all have one schedule.
struct Run {
  std::int64_t least = 0;
  std::int64_t most = 0;
  int schedule = 0;
};

std::string plural(std::size_t count) {
  return fmt::format("{} bucket{}", count, count == 1 ? "" : "s");
}

}  // namespace

MscclPlan msccl_plan(const std::string& title, const models::Plan& plan) {
  MscclPlan exported;
  std::map<std::int64_t, std::set<int>> sizes;
  for (const models::Bucket& bucket : plan.buckets)
    sizes[static_cast<std::int64_t>(plan.bytes(bucket).value())].insert(bucket.schedule);
  std::vector<Run> runs;
  bool is_open = false;
  for (const auto& [bytes, schedules] : sizes) {
    if (schedules.size() > 1) {
      exported.notes.push_back(fmt::format(
          "buckets of {} B travel in several ways, which MSCCL tells apart by size only", bytes));
      is_open = false;
      continue;
    }
    if (!is_open || runs.back().schedule != *schedules.begin())
      runs.push_back({bytes, bytes, *schedules.begin()});
    runs.back().most = bytes;
    is_open = true;
  }
  std::set<int> refused;
  for (const Run& run : runs) {
    const models::PlannedSchedule& planned = plan.schedules[to_size(run.schedule)];
    if (refused.contains(run.schedule)) continue;
    try {
      if (!planned.has_steps())
        throw InputError("it has no steps that we know", "choose a strategy with schedules");
      models::MscclChoice choice{.least_bytes = run.least, .below_bytes = run.most + 1};
      std::string text = models::msccl(models::Collective::all_reduce, planned.schedule(),
                                       fmt::format("{}, {}", title, described(planned)), choice);
      const std::int64_t chunks =
          models::msccl_chunks(models::Collective::all_reduce, planned.schedule());
      std::size_t cut = 0;
      for (const models::Bucket& bucket : plan.buckets) {
        const auto bytes = static_cast<std::int64_t>(plan.bytes(bucket).value());
        if (run.least <= bytes && bytes <= run.most && bucket.elements % chunks != 0) ++cut;
      }
      if (cut > 0)
        exported.notes.push_back(
            fmt::format("{} of {}: the elements are no multiple of {} chunks, so that NCCL's own "
                        "all-reduce runs; pad to a multiple",
                        plural(cut), described(planned), chunks));
      exported.files.push_back({fmt::format("{:02}-{}-{}-ranks.xml", exported.files.size(),
                                            planned.algorithm, plan.ranks),
                                std::move(text)});
    } catch (const InputError& error) {
      refused.insert(run.schedule);
      exported.notes.push_back(fmt::format("{}: {}", described(planned), error.problem()));
    }
  }
  if (exported.files.empty())
    throw InputError(exported.notes.empty()
                         ? "the plan has no buckets"
                         : "no schedule of the plan has a file: " + exported.notes.front(),
                     "choose a plan with schedules of ours on fewer ranks");
  return exported;
}

}  // namespace paceline::simulator
