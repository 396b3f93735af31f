// Tests: tests/models/strategy_test.cc.
#include "models/plan/plan.h"

#include <array>
#include <utility>

#include "models/base/names.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<Overlap, std::string_view>, 4> names = {
    {{Overlap::wait_free, "wait-free"},
     {Overlap::none, "none"},
     {Overlap::double_buffered, "double-buffered"},
     {Overlap::priority, "priority"}}};

}  // namespace

std::string_view name(Overlap overlap) {
  for (const auto& [value, text] : names) {
    if (value == overlap) return text;
  }
  return "unknown";
}

std::string described(const PlannedSchedule& schedule) {
  if (schedule.is_library)
    return schedule.algorithm + (schedule.algorithm == "nccl" ? " (timed by its own model)"
                                                              : " (timed as it was calibrated)");
  return described(schedule.algorithm, schedule.options);
}

Overlap overlap_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, candidate] : names) {
    if (candidate == text) return value;
    known.emplace_back(candidate);
  }
  throw unknown_name("overlap policy", text, known);
}

}  // namespace paceline::models
