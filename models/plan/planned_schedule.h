// One of a plan's all-reduces, which sums some of its buckets.
//
// It travels in one of several ways. Each way has a type, whose value holds the options of this
// all-reduce; a file in models/plan/ways, which reads and writes it in documents; and, unless engines
// time it as a schedule, a file in simulator/prediction/ways, which predicts it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "models/collective/catalogue.h"
#include "models/collective/schedule.h"
#include "models/layout/sharding.h"
#include "models/plan/k_fac.h"
#include "models/plan/servers.h"

namespace paceline::models {

// A library whose own all-reduce a plan may call. We know none of its steps.
enum class Library {
  nccl,      // timed by its own tuning model (simulator/cost/nccl_model.h)
  open_mpi,  // timed by a calibrated curve of MPI_Allreduce
};

// The name that users type, which is also that of its strategy: "nccl", "open-mpi".
[[nodiscard]] std::string_view name(Library library);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Library library_from_name(std::string_view text);
// The library of that name; nothing for any other text.
[[nodiscard]] std::optional<Library> library_named(std::string_view text);

// The ways to travel.
using Way =
    std::variant<Schedule,   // an entry of the catalogue of all-reduces, which engines time
                 Library,    // a library's own all-reduce
                 ServerUse,  // servers of another system sum
                 KfacUse,    // the owners of layers sum
                 ShardUse>;  // sums and parameters are shared out (models/layout/sharding.h)

struct PlannedSchedule {
  std::string algorithm;    // name in all_reduce_catalogue(), or of the library, or of the strategy
  ScheduleOptions options;  // the ranks, and the options that the algorithm takes
  Way way;

  // Whether it is an entry of the catalogue.
  [[nodiscard]] bool has_steps() const { return std::holds_alternative<Schedule>(way); }
  // The steps. Throws std::bad_variant_access unless has_steps().
  [[nodiscard]] const Schedule& schedule() const { return std::get<Schedule>(way); }
  // The library whose all-reduce it is; nothing where it is of another way.
  [[nodiscard]] std::optional<Library> library() const;

  // Two are equal where their names, options and ways are, because these define the steps.
  bool operator==(const PlannedSchedule& other) const;
};

// An entry of the catalogue, with those of the options that the algorithm takes. Throws InputError
// where there is no algorithm of the name, or no schedule for these options.
[[nodiscard]] PlannedSchedule scheduled(std::string_view algorithm, const ScheduleOptions& wanted);
// A library's own all-reduce.
[[nodiscard]] PlannedSchedule called(Library library, int ranks);

// An all-reduce in words: "ring", "hierarchical k=8", "nccl (timed by its own model)".
[[nodiscard]] std::string described(const PlannedSchedule& schedule);

}  // namespace paceline::models
