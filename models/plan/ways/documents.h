// How each way to travel is written, read and described: an entry for each alternative of Way.
#pragma once

#include <string>
#include <string_view>

#include "models/base/json.h"

namespace paceline {
class JsonValue;
}

namespace paceline::models {

struct Plan;
struct PlannedSchedule;

struct WayDocument {
  // The member of an all-reduce in a plan's document that only this way has.
  const char* key;
  Json (*json)(const PlannedSchedule& schedule);
  PlannedSchedule (*read)(const JsonValue& entry, std::string_view strategy, int ranks);
  // Throws InputError where the plan with this root has what the way does not allow; may be null.
  void (*check)(const JsonValue& root, const Plan& plan);
  std::string (*described)(const PlannedSchedule& schedule);
};

extern const WayDocument scheduled_document;
extern const WayDocument library_document;
extern const WayDocument served_document;
extern const WayDocument k_fac_document;
extern const WayDocument sharded_document;

// The entry of the schedule's way.
[[nodiscard]] const WayDocument& document_of(const PlannedSchedule& schedule);
// The entry of the way of an all-reduce in a document; that of an algorithm where nothing says another.
[[nodiscard]] const WayDocument& document_of(const JsonValue& entry);

}  // namespace paceline::models
