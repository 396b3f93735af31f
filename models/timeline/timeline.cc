// Tests: tests/simulator/timeline_test.cc, tests/models/timeline_test.cc.
#include "models/timeline/timeline.h"

#include <algorithm>

#include "models/base/to_size.h"

namespace paceline::models {

std::string_view name(TaskKind kind) {
  switch (kind) {
    case TaskKind::read:
      return "read";
    case TaskKind::decode:
      return "decode";
    case TaskKind::host_to_device:
      return "host to device";
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::wait:
      return "wait";
    case TaskKind::negotiation:
      return "negotiation";
    case TaskKind::cast:
      return "cast";
    case TaskKind::pack:
      return "pack";
    case TaskKind::all_reduce:
      return "all-reduce";
    case TaskKind::unpack:
      return "unpack";
    case TaskKind::factor_a:
      return "factor A";
    case TaskKind::factor_g:
      return "factor G";
    case TaskKind::reduce_scatter:
      return "reduce-scatter";
    case TaskKind::invert:
      return "invert";
    case TaskKind::precondition:
      return "precondition";
    case TaskKind::all_gather:
      return "all-gather";
    case TaskKind::exchange:
      return "exchange";
    case TaskKind::send:
      return "send";
    case TaskKind::update:
      return "update";
  }
  return "unknown";
}

std::string_view name(Resource resource) {
  switch (resource) {
    case Resource::storage:
      return "storage";
    case Resource::cpu:
      return "CPU";
    case Resource::copy_engine:
      return "copy engine";
    case Resource::compute:
      return "compute stream";
    case Resource::communication:
      return "communication stream";
  }
  return "unknown";
}

TracedJob traced_job(const NetworkWork& network, const Plan& plan) {
  TracedJob job{.network = network.name,
                .strategy = plan.strategy,
                .ranks = plan.ranks,
                .wire = plan.wire,
                .overlap = plan.overlap,
                .streams = plan.streams,
                .layers = {},
                .buckets = {}};
  for (const LayerWork& layer : network.layers) job.layers.push_back({layer.name, layer.kind});
  for (const Bucket& bucket : plan.buckets) {
    const PlannedSchedule& schedule = plan.schedules[to_size(bucket.schedule)];
    const auto first = to_size(bucket.first_gradient);
    const auto last = first + to_size(bucket.gradient_count) - 1;
    job.buckets.push_back(
        {.gradients = bucket.gradient_count,
         .first_gradient = network.gradients[first].name,
         .ready_after = plan.overlap == Overlap::none ? 0 : network.gradients[last].layer,
         .bytes = plan.bytes(bucket),
         .schedule = schedule.algorithm,
         .is_library = schedule.library().has_value(),
         .group_size = std::max(0, schedule.options.group_size),
         .segments = std::max(0, schedule.options.segments),
         .server_rank = schedule.options.servers > 0 ? std::optional(schedule.options.first_server)
                                                     : std::nullopt});
  }
  return job;
}

}  // namespace paceline::models
