// The thresholds as people name them: one entry for each field of ThresholdRequest that an option, a
// row of a published result, a JSON document or a sentence has. What offers, reads, writes or checks
// thresholds goes over this table, so that all of it has the same names, limits, rules and help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/document.h"
#include "models/base/field.h"
#include "models/plan/strategy.h"
#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

// Groups of help: what every plan takes, and what models of other systems and K-FAC take.
inline constexpr std::string_view travel_group = "How gradients travel";
inline constexpr std::string_view systems_group = "Models of other systems";

// At most this many buckets may travel at the same time.
inline constexpr int most_streams = 1024;

struct ThresholdField : Field<ThresholdRequest> {
  // Whether a strategy's plan depends on the field at all. All others leave it aside.
  bool (*is_taken)(const models::Strategy& strategy);
  // The member of a document's given_thresholds, which has it where the field is given.
  std::string_view key;
  void (*add_to)(Document<ThresholdRequest>& document, std::string key);
  // Words for people, of a field that is given.
  std::string (*words)(const ThresholdRequest& request);
};

// In the order in which documents and sentences list them.
[[nodiscard]] std::span<const ThresholdField> threshold_fields();

// What of the request excludes what. Throws InputError that names an option.
void check_together(const ThresholdRequest& request);

// The fields that are given.
[[nodiscard]] std::vector<const ThresholdField*> given_fields(const ThresholdRequest& request);

// Refuses a field that is given and that none of the strategies takes. Throws InputError that names
// the option, and some strategies that take it.
void check_taken(const ThresholdRequest& request,
                 const std::vector<const models::Strategy*>& strategies);

// A field that is given, which some of the strategies take and others do not.
struct PartlyTaken {
  const ThresholdField* field = nullptr;
  std::vector<std::string_view> taken_by;
  std::vector<std::string_view> left_aside_by;
};
[[nodiscard]] std::vector<PartlyTaken> partly_taken(
    const ThresholdRequest& request, const std::vector<const models::Strategy*>& strategies);

}  // namespace paceline::simulator
