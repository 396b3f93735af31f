// Tests: tests/simulator/timeline_test.cc, tests/models/timeline_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "models/base/json.h"
#include "models/base/to_size.h"
#include "models/timeline/rank_times.h"
#include "models/timeline/timeline.h"

namespace paceline::models {

namespace {

constexpr double us = 1e6;

// Perfetto takes `ts` and `dur` to whole nanoseconds separately, and drops a slice that begins
// before the one before it on its track has ended. Both ends of an event are therefore rounded
// here, and its duration is the difference.
std::int64_t whole_ns(double seconds) {
  return std::llround(seconds * 1e9);
}

// In microseconds, such that a reader who rounds to nanoseconds and one who cuts agree.
double microseconds(std::int64_t ns) {
  return (static_cast<double>(ns) + 0.2) / 1000;
}

// When an event begins and ends, in nanoseconds.
struct Rounded {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// The times of all events. Where the end of an event and the start of the next one on its track are
// one time that was computed twice, one may be rounded up and the other down: then the later event
// begins where the earlier ends.
std::vector<Rounded> rounded(const std::vector<TimelineEvent>& events) {
  std::vector<Rounded> times;
  std::vector<std::size_t> order;
  for (const TimelineEvent& event : events) {
    const double start = std::max(0.0, event.start.value());
    times.push_back({whole_ns(start), whole_ns(start + event.duration.value())});
    order.push_back(order.size());
  }
  const auto place = [&](std::size_t i) {
    return std::tuple(events[i].resource, events[i].stream, events[i].start.value(),
                      events[i].duration.value());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  for (std::size_t n = 1; n < order.size(); ++n) {
    const std::size_t before = order[n - 1];
    const std::size_t i = order[n];
    const bool one_track =
        events[i].resource == events[before].resource && events[i].stream == events[before].stream;
    if (one_track && times[i].start == times[before].end - 1) times[i].start = times[before].end;
    times[i].end = std::max(times[i].end, times[i].start);
  }
  return times;
}

// The communication streams come last.
int track_of(Resource resource, int stream) {
  return static_cast<int>(resource) + 1 + stream;
}

Json metadata(const char* what, int process, int track, Json args) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", std::move(args)}};
}

bool is_of_bucket(const TimelineEvent& event) {
  return event.index >= 0 &&
         (event.kind == TaskKind::negotiation || event.kind == TaskKind::cast ||
          event.kind == TaskKind::pack || event.kind == TaskKind::all_reduce ||
          event.kind == TaskKind::reduce_scatter || event.kind == TaskKind::all_gather ||
          event.kind == TaskKind::unpack || event.kind == TaskKind::update);
}

bool is_of_layer(const TimelineEvent& event) {
  return event.kind == TaskKind::forward || event.kind == TaskKind::backward ||
         event.kind == TaskKind::factor_a || event.kind == TaskKind::factor_g ||
         event.kind == TaskKind::invert || event.kind == TaskKind::precondition ||
         event.kind == TaskKind::exchange || event.kind == TaskKind::send;
}

const TracedLayer& layer_of(const TracedJob& job, const TimelineEvent& event) {
  return job.layers[to_size(event.index)];
}

std::string event_name(const TracedJob& job, const TimelineEvent& event) {
  switch (event.kind) {
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::factor_a:
    case TaskKind::factor_g:
    case TaskKind::invert:
    case TaskKind::precondition:
    case TaskKind::exchange:
    case TaskKind::send:
      return fmt::format("{} {}", name(event.kind), layer_of(job, event).name);
    case TaskKind::wait:
    case TaskKind::negotiation:
    case TaskKind::cast:
    case TaskKind::pack:
    case TaskKind::all_reduce:
    case TaskKind::unpack:
    case TaskKind::reduce_scatter:
    case TaskKind::all_gather:
      return fmt::format("{} bucket {}", name(event.kind), event.index);
    case TaskKind::update:
      return event.index < 0 ? std::string("update") : fmt::format("update bucket {}", event.index);
    case TaskKind::read:
    case TaskKind::decode:
    case TaskKind::host_to_device:
      return std::string(name(event.kind));
  }
  return "unknown";
}

void add_schedule(const TracedBucket& bucket, Json& json) {
  json["schedule"] = bucket.schedule;
  if (bucket.is_library) json["timed_by"] = "the library's own model";
  if (bucket.group_size > 0) json["group_size"] = bucket.group_size;
  if (bucket.segments > 0) json["segments"] = bucket.segments;
  if (bucket.server_rank) json["server_rank"] = *bucket.server_rank;
}

// Keys are nearly in the order into which they are sorted: events are many.
Json event_args(const TracedJob& job, const TimelineEvent& event, const std::string& provenance) {
  if (is_of_layer(event)) {
    const TracedLayer& layer = layer_of(job, event);
    return {{"index", event.index},
            {"iteration", event.iteration},
            {"kind", layer.kind},
            {"layer", layer.name},
            {"provenance", provenance}};
  }
  if (!is_of_bucket(event))
    return {{"index", event.index}, {"iteration", event.iteration}, {"provenance", provenance}};
  const TracedBucket& bucket = job.buckets[to_size(event.index)];
  Json args = {{"bucket", event.index},
               {"bytes", bucket.bytes.value()},
               {"first_gradient", bucket.first_gradient},
               {"gradients", bucket.gradients},
               {"index", event.index},
               {"iteration", event.iteration},
               {"provenance", provenance}};
  add_schedule(bucket, args);
  args["wire_type"] = name(job.wire);
  return args;
}

// What the events of a process do not say.
Json described(const TracedTimeline& traced) {
  const TracedJob& job = traced.job;
  const Timeline& timeline = traced.timeline;
  Json json = {{"title", timeline.title},
               {"provenance", timeline.provenance},
               {"rank", timeline.rank},
               {"period_us", timeline.period.value() * us},
               {"batch_per_rank", timeline.batch_per_rank},
               {"network", job.network},
               {"strategy", job.strategy},
               {"ranks", job.ranks},
               {"wire_type", name(job.wire)},
               {"overlap", name(job.overlap)},
               {"streams", job.streams},
               {"layers", Json::array()},
               {"buckets", Json::array()}};
  if (timeline.interval) {
    json["period_low_us"] = timeline.interval->low.value() * us;
    json["period_high_us"] = timeline.interval->high.value() * us;
  }
  for (const TracedLayer& layer : job.layers)
    json["layers"].push_back({{"name", layer.name}, {"kind", layer.kind}});
  for (const TracedBucket& bucket : job.buckets) {
    Json entry = {{"gradients", bucket.gradients},
                  {"first_gradient", bucket.first_gradient},
                  {"ready_after", bucket.ready_after},
                  {"bytes", bucket.bytes.value()}};
    add_schedule(bucket, entry);
    json["buckets"].push_back(std::move(entry));
  }
  return json;
}

void add_tracks(const Timeline& timeline, int process, Json& events) {
  for (const Resource resource : all_resources) {
    int streams = 0;
    for (const TimelineEvent& event : timeline.events) {
      if (event.resource == resource) streams = std::max(streams, event.stream + 1);
    }
    for (int stream = 0; stream < streams; ++stream) {
      const int track = track_of(resource, stream);
      const std::string label = streams == 1 ? std::string(name(resource))
                                             : fmt::format("{} {}", name(resource), stream + 1);
      events.push_back(metadata("thread_name", process, track, {{"name", label}}));
      events.push_back(metadata("thread_sort_index", process, track, {{"sort_index", track}}));
    }
  }
}

// Times in seconds, to a nanosecond.
Json seconds_json(const std::vector<Seconds>& times) {
  Json json = Json::array();
  for (const Seconds time : times) json.push_back(std::round(time.value() * 1e9) / 1e9);
  return json;
}

Json json_of(const RunTimes& times) {
  Json json = {{"transfers_s", seconds_json(times.transfers)}, {"ranks", Json::array()}};
  for (const RankTimes& rank : times.ranks)
    json["ranks"].push_back({{"forward_s", seconds_json(rank.forward)},
                             {"backward_s", seconds_json(rank.backward)},
                             {"update_s", rank.update.value()},
                             {"rest_s", rank.rest.value()}});
  return json;
}

std::string trace_of(const std::vector<TracedTimeline>& timelines, const RunTimes* all_ranks) {
  Json events = Json::array();
  Json processes = Json::array();
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    const Timeline& timeline = timelines[i].timeline;
    const int process = static_cast<int>(i);
    processes.push_back(described(timelines[i]));
    events.push_back(metadata("process_name", process, 0,
                              {{"name", timeline.provenance + ": " + timeline.title}}));
    add_tracks(timeline, process, events);
    const std::vector<Rounded> times = rounded(timeline.events);
    for (std::size_t e = 0; e < timeline.events.size(); ++e) {
      const TimelineEvent& event = timeline.events[e];
      events.push_back({{"args", event_args(timelines[i].job, event, timeline.provenance)},
                        {"cat", name(event.kind)},
                        {"dur", microseconds(times[e].end - times[e].start)},
                        {"name", event_name(timelines[i].job, event)},
                        {"ph", "X"},
                        {"pid", process},
                        {"tid", track_of(event.resource, event.stream)},
                        {"ts", microseconds(times[e].start)}});
    }
  }
  Json other = {{"schema", timeline_schema}, {"timelines", std::move(processes)}};
  if (!timelines.empty()) {
    const Timeline& first = timelines.front().timeline;
    other["title"] = first.title;
    other["period_us"] = first.period.value() * us;
    other["provenance"] = first.provenance;
  }
  if (all_ranks != nullptr && !all_ranks->ranks.empty()) other["rank_times"] = json_of(*all_ranks);
  Json trace = {{"displayTimeUnit", "ms"},
                {"otherData", std::move(other)},
                {"traceEvents", std::move(events)}};
  // Traces of earlier versions have sorted keys, too, so that those of one job compare byte by byte.
  trace.sort_keys();
  return trace.in_one_line() + "\n";
}

}  // namespace

std::string chrome_trace(const std::vector<TracedTimeline>& timelines) {
  return trace_of(timelines, nullptr);
}

std::string chrome_trace(const TracedTimeline& traced, const RunTimes& times) {
  return trace_of({traced}, &times);
}

std::string chrome_trace(const NetworkWork& network, const Plan& plan,
                         const std::vector<Timeline>& timelines) {
  std::vector<TracedTimeline> traced;
  for (const Timeline& timeline : timelines)
    traced.push_back({traced_job(network, plan), timeline});
  return chrome_trace(traced);
}

}  // namespace paceline::models
