// Tests: tests/models/strategy_test.cc.
#include "models/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<Library, std::string_view>, 2> library_names = {
    {{Library::nccl, "nccl"}, {Library::open_mpi, "open-mpi"}}};

constexpr std::array<std::pair<Overlap, std::string_view>, 4> overlap_names = {
    {{Overlap::wait_free, "wait-free"},
     {Overlap::none, "none"},
     {Overlap::double_buffered, "double-buffered"},
     {Overlap::priority, "priority"}}};

}  // namespace

std::string_view name(Overlap overlap) {
  return name_in(overlap_names, overlap);
}

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

bool Plan::is_of_other_system() const {
  const auto is_plain = [this](const Bucket& bucket) {
    return bucket.wait == Seconds{0} && bucket.first_element == 0 &&
           (&bucket == &buckets.back() || (&bucket)[1].first_gradient != bucket.first_gradient);
  };
  const auto is_served = [](const PlannedSchedule& schedule) {
    return schedule.served.has_value();
  };
  if (k_fac() != nullptr || std::any_of(schedules.begin(), schedules.end(), is_served)) return true;
  return dispatch != Dispatch{} || !std::all_of(buckets.begin(), buckets.end(), is_plain);
}

bool Plan::only_waits() const {
  if (!is_of_other_system()) return false;
  Plan plain = *this;
  plain.dispatch.cycle = Seconds{0};
  for (Bucket& bucket : plain.buckets) bucket.wait = Seconds{0};
  return !plain.is_of_other_system();
}

std::string described(const PlannedSchedule& schedule) {
  if (schedule.library)
    return schedule.algorithm + (*schedule.library == Library::nccl
                                     ? " (timed by its own model)"
                                     : " (timed as it was calibrated)");
  if (schedule.served)
    return fmt::format("{}, {} over {}", schedule.algorithm,
                       schedule.served->server < 0
                           ? fmt::format("{} servers", schedule.served->servers)
                           : fmt::format("server {}", schedule.served->server),
                       name(schedule.served->transport));
  if (schedule.k_fac)
    return fmt::format("{}, owners {}, factors every {}", schedule.algorithm,
                       name(schedule.k_fac->owners), schedule.k_fac->factors_every);
  return described(schedule.algorithm, schedule.options);
}

void check_k_fac_overlap(Overlap overlap) {
  if (overlap == Overlap::wait_free || overlap == Overlap::none) return;
  throw InputError({"--overlap"}, fmt::format("k-fac has no overlap {}", name(overlap)),
                   "choose wait-free, which sends the factors A beside the backward pass, or none");
}

Overlap overlap_from_name(std::string_view text) {
  return value_named(overlap_names, "overlap policy", text);
}

}  // namespace paceline::models
