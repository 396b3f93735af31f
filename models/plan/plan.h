// A plan: how the gradients of one network travel on one number of ranks.
//
// Which gradients are fused into which bucket, and for each bucket which collective schedule;
// the wire type; and how communication overlaps computation. A plan is communication only:
// learning rates and data are elsewhere. The simulator predicts it, the runtime runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/collective/catalogue.h"
#include "models/collective/schedule.h"

namespace paceline::models {

// When a bucket may travel, and which gradients an update uses.
enum class Overlap {
  wait_free,        // as soon as its last gradient is there, in backward order (Shi et al. 2018)
  none,             // after the whole backward pass
  double_buffered,  // as wait_free; the update uses the gradients of the iteration before
                    // (ChainerMN 1.3)
  priority,  // ready buckets of the first layers first; a layer's next forward waits for its own
             // update only
};

[[nodiscard]] std::string_view name(Overlap overlap);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Overlap overlap_from_name(std::string_view text);

// A library whose own all-reduce a plan may call. We know none of its steps.
enum class Library {
  nccl,      // timed by its own tuning model (simulator/cost/nccl_model.h)
  open_mpi,  // timed by a calibrated curve of MPI_Allreduce
};

// As users type it, and as its strategy is called: "nccl", "open-mpi".
[[nodiscard]] std::string_view name(Library library);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Library library_from_name(std::string_view text);

// An all-reduce that buckets of the plan use: either an entry of the catalogue with its options,
// which engines time, or a library's own.
struct PlannedSchedule {
  std::string algorithm;                // name in all_reduce_catalogue(), or of the library
  ScheduleOptions options;              // the ranks, and the options that the algorithm takes
  Schedule schedule;                    // has no steps where the all-reduce is a library's own
  std::optional<Library> library = {};  // set where the all-reduce is a library's own

  // Two are equal where their names and options are, for these define the schedule.
  bool operator==(const PlannedSchedule& other) const {
    return algorithm == other.algorithm && options == other.options && library == other.library;
  }
};

// "ring", "hierarchical k=8"; "nccl (timed by its own model)".
[[nodiscard]] std::string described(const PlannedSchedule& schedule);

// Gradients [first, first + count) in backward order, fused for one collective call.
struct Bucket {
  int first_gradient = 0;
  int gradient_count = 0;
  std::int64_t elements = 0;
  int schedule = 0;  // index into Plan::schedules

  bool operator==(const Bucket&) const = default;
};

struct Plan {
  std::string strategy;
  int ranks = 1;
  WireType wire = WireType::fp32;
  Overlap overlap = Overlap::wait_free;
  int streams = 1;  // buckets that may travel at the same time: bucket i is on stream i mod streams
  std::vector<PlannedSchedule> schedules;
  std::vector<Bucket> buckets;  // in backward order; together all gradients, each once

  bool operator==(const Plan&) const = default;

  // Bytes of a bucket on the wire.
  [[nodiscard]] Bytes bytes(const Bucket& bucket) const {
    return static_cast<double>(bucket.elements) * element_size(wire);
  }
};

}  // namespace paceline::models
