// Tests: tests/models/strategy_test.cc.
#include "models/plan/planned_schedule.h"

#include <array>
#include <utility>

#include "models/base/json_reader.h"
#include "models/base/names.h"
#include "models/plan/ways/documents.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<Library, std::string_view>, 2> library_names = {
    {{Library::nccl, "nccl"}, {Library::open_mpi, "open-mpi"}}};

// In the order of the alternatives of Way.
constexpr std::array<const WayDocument*, std::variant_size_v<Way>> ways = {
    &scheduled_document, &library_document, &served_document, &k_fac_document, &sharded_document};

}  // namespace

std::string_view name(Library library) {
  return name_in(library_names, library);
}

Library library_from_name(std::string_view text) {
  return value_named(library_names, "library", text);
}

std::optional<Library> library_named(std::string_view text) {
  for (const auto& [library, known] : library_names)
    if (known == text) return library;
  return std::nullopt;
}

std::optional<Library> PlannedSchedule::library() const {
  const auto* library = std::get_if<Library>(&way);
  return library == nullptr ? std::nullopt : std::optional(*library);
}

bool PlannedSchedule::operator==(const PlannedSchedule& other) const {
  const auto same_use = [&]<class Use>(const Use& use) {
    if constexpr (std::is_same_v<Use, Schedule>)
      return other.has_steps();
    else
      return std::holds_alternative<Use>(other.way) && use == std::get<Use>(other.way);
  };
  return std::visit(same_use, way) && options == other.options && algorithm == other.algorithm;
}

PlannedSchedule scheduled(std::string_view algorithm, const ScheduleOptions& wanted) {
  const CollectiveAlgorithm& entry = collective_algorithm(algorithm);
  const ScheduleOptions options = taken_options(entry, wanted);
  return {std::string(algorithm), options, entry.build(options)};
}

PlannedSchedule called(Library library, int ranks) {
  return {std::string(name(library)), {.ranks = ranks}, library};
}

const WayDocument& document_of(const PlannedSchedule& schedule) {
  return *ways[schedule.way.index()];
}

const WayDocument& document_of(const JsonValue& entry) {
  for (const WayDocument* way : ways)
    if (way != &scheduled_document && entry.has(way->key)) return *way;
  return scheduled_document;
}

std::string described(const PlannedSchedule& schedule) {
  return document_of(schedule).described(schedule);
}

}  // namespace paceline::models
