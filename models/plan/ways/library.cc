// Tests: tests/models/strategy_test.cc, tests/models/plan_json_test.cc.
#include "models/plan/ways/library.h"

#include <fmt/format.h>

#include "models/base/json_reader.h"
#include "models/plan/ways/documents.h"
#include "models/plan/ways/plan_in_making.h"

namespace paceline::models {
namespace {

Json json(const PlannedSchedule& planned) {
  return {{"library", name(*planned.library())}};
}

PlannedSchedule read(const JsonValue& entry, std::string_view /*strategy*/, int ranks) {
  entry.check_keys({"library"});
  return called(
      entry.at("library").named([](const std::string& text) { return library_from_name(text); }),
      ranks);
}

std::string in_words(const PlannedSchedule& schedule) {
  return schedule.algorithm + (schedule.library() == Library::nccl
                                   ? " (timed by its own model)"
                                   : " (timed as it was calibrated)");
}

}  // namespace

const WayDocument library_document = {"library", json, read, nullptr, in_words};

bool Called::allows(const PlannedSchedule& schedule) const {
  return schedule.library() == library;
}

std::string Called::allowed() const {
  return fmt::format(R"({{"library": "{}"}})", name(library));
}

int Called::schedule_of(const Bucket& /*bucket*/, PlanInMaking& plan) const {
  return plan.place_of(called(library, plan.plan.ranks));
}

}  // namespace paceline::models
