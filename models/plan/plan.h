// A plan: how the gradients of one network travel on one number of ranks.
//
// It says which gradients are fused into which bucket, which collective schedule each bucket takes,
// the number type on the wire, and how communication overlaps computation. It says nothing of
// learning rates or data. The simulator predicts a plan, the runtime runs it, and plan_json.h writes
// it as a document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/layout/layout.h"
#include "models/plan/dispatch.h"
#include "models/plan/planned_schedule.h"

namespace paceline::models {

// When a bucket may travel, and which gradients an update uses.
enum class Overlap {
  // A bucket travels as soon as its last gradient is there, in backward order (Shi et al. 2018).
  wait_free,
  // Buckets travel after the whole backward pass.
  none,
  // Buckets travel as in wait_free, and the update uses the gradients of the iteration before
  // (ChainerMN 1.3).
  double_buffered,
  // The ready bucket with the earliest layers travels first. A layer's next forward pass waits only
  // for that layer's update.
  priority,
};

[[nodiscard]] std::string_view name(Overlap overlap);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Overlap overlap_from_name(std::string_view text);
// Gradients that one collective call moves: [first_gradient, first_gradient + gradient_count) in
// backward order, or a part of one gradient.
struct Bucket {
  int first_gradient = 0;
  int gradient_count = 0;  // 1 for a part of a gradient
  std::int64_t elements = 0;
  int schedule = 0;  // index into Plan::schedules
  // The element of the first gradient at which the bucket begins. It is more than 0 only where the
  // bucket is a later part of that gradient; the parts of a gradient stand one behind the other.
  std::int64_t first_element = 0;
  // From when the last gradient is there until the system that the plan is of takes the bucket;
  // other buckets may travel meanwhile.
  Seconds wait{0};

  bool operator==(const Bucket&) const = default;
};

struct Plan {
  std::string strategy;
  int ranks = 1;
  WireType wire = WireType::fp32;
  Overlap overlap = Overlap::wait_free;
  int streams = 1;  // buckets that may travel at the same time: bucket i is on stream i mod streams
  std::vector<PlannedSchedule> schedules;
  std::vector<Bucket> buckets;  // in backward order; together they hold every gradient once
  Dispatch dispatch = {};       // as our runtime does it, unless the plan is another system's
  // The mesh that the ranks are part of: `ranks` counts those with the same weights, which sum gradients.
  Layout layout = {};

  bool operator==(const Plan&) const = default;

  // Whether the plan is one that our runtime cannot run: buckets that wait, go through the host, are
  // parts of gradients, or are preconditioned, or a layout of several axes.
  [[nodiscard]] bool is_of_other_system() const;

  // Whether it is of another system only in that buckets wait for a cycle, which a replay can do.
  [[nodiscard]] bool only_waits() const;

  // How the first schedule uses a way to travel; null where the plan has no schedule, or the first is
  // of another way. All schedules of a plan are of one way.
  template <class T>
  [[nodiscard]] const T* uses() const {
    return schedules.empty() ? nullptr : std::get_if<T>(&schedules.front().way);
  }

  // The streams on which collectives travel: those of the buckets, and one for what neighbours share out.
  [[nodiscard]] int all_streams() const { return streams + (layout.tensor > 1 ? 1 : 0); }
  // The ranks of the mesh.
  [[nodiscard]] int all_ranks() const { return ranks * layout.ranks_of_copy(); }
  // Bytes of a bucket on the wire.
  [[nodiscard]] Bytes bytes(const Bucket& bucket) const {
    return static_cast<double>(bucket.elements) * element_size(wire);
  }
};

}  // namespace paceline::models
