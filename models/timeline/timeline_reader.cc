// Tests: tests/models/timeline_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/base/json_reader.h"
#include "models/base/names.h"
#include "models/base/to_size.h"
#include "models/timeline/timeline.h"

namespace paceline::models {
namespace {

constexpr std::size_t longest_name = 256;
constexpr std::size_t longest_title = 8192;
constexpr std::int64_t most = 1'000'000'000;  // for anything that is counted
// Readers keep a value for each layer and bucket of each iteration.
constexpr std::int64_t most_iterations = 1'000;
constexpr std::size_t most_layers = 10'000;  // the limit of buckets, too
constexpr double longest_us = 1e15;          // 31 years
constexpr std::int64_t most_streams = 1024;

const char* const origin = "give a timeline as paceline train and predict write it (--timeline)";

std::vector<TaskKind> all_task_kinds() {
  std::vector<TaskKind> kinds;
  for (int kind = 0; kind <= static_cast<int>(TaskKind::update); ++kind)
    kinds.push_back(static_cast<TaskKind>(kind));
  return kinds;
}

Seconds time_of(const JsonValue& value) {
  return Seconds{value.number(0, longest_us) / 1e6};
}

// A time of an event, in whole nanoseconds; timeline.cc says why it is written a little larger.
Seconds event_time_of(const JsonValue& value) {
  return Seconds{std::round(value.number(0, longest_us) * 1e3) / 1e9};
}

std::string name_of(const JsonValue& value) {
  return value.text(longest_name);
}

int count_of(const JsonValue& value, std::int64_t low, std::int64_t high) {
  return static_cast<int>(value.whole(low, high));
}

TracedBucket read_bucket(const JsonValue& entry, std::size_t layers) {
  TracedBucket bucket{
      .gradients = count_of(entry.at("gradients"), 1, most),
      .first_gradient = name_of(entry.at("first_gradient")),
      .ready_after = count_of(entry.at("ready_after"), 0, static_cast<std::int64_t>(layers) - 1),
      .bytes = Bytes{entry.at("bytes").number(0, 1e15)},
      .schedule = name_of(entry.at("schedule")),
      .is_library = entry.has("timed_by"),
      .group_size = entry.has("group_size") ? count_of(entry.at("group_size"), 1, most) : 0,
      .segments = entry.has("segments") ? count_of(entry.at("segments"), 1, most) : 0,
      .server_rank = std::nullopt};
  if (entry.has("server_rank")) bucket.server_rank = count_of(entry.at("server_rank"), 0, most);
  return bucket;
}

TracedTimeline read_timeline(const JsonValue& entry) {
  TracedTimeline traced{
      .job = {.network = name_of(entry.at("network")),
              .strategy = name_of(entry.at("strategy")),
              .ranks = count_of(entry.at("ranks"), 1, most),
              .wire = entry.at("wire_type").named([](const std::string& name) {
                return wire_type_from_name(name);
              }),
              .overlap = entry.at("overlap").named(
                  [](const std::string& name) { return overlap_from_name(name); }),
              .streams = count_of(entry.at("streams"), 1, most_streams),
              .layers = {},
              .buckets = {}},
      .timeline = {.title = entry.at("title").text(longest_title),
                   .provenance = name_of(entry.at("provenance")),
                   .rank = count_of(entry.at("rank"), 0, most),
                   .period = time_of(entry.at("period_us")),
                   .events = {},
                   .batch_per_rank = count_of(entry.at("batch_per_rank"), 0, most)}};
  if (entry.has("period_low_us")) {
    const PeriodInterval interval{time_of(entry.at("period_low_us")),
                                  time_of(entry.at("period_high_us"))};
    if (interval.low > traced.timeline.period || interval.high < traced.timeline.period)
      entry.at("period_low_us")
          .fail("the period is not between period_low_us and period_high_us",
                "write the timeline again with paceline predict");
    traced.timeline.interval = interval;
  }
  const JsonValue layers = entry.at("layers");
  layers.for_each(
      [&](const JsonValue& layer) {
        traced.job.layers.push_back({name_of(layer.at("name")), name_of(layer.at("kind"))});
      },
      most_layers);
  entry.at("buckets").for_each(
      [&](const JsonValue& bucket) {
        traced.job.buckets.push_back(read_bucket(bucket, layers.size()));
      },
      most_layers);
  return traced;
}

// The largest index that an event of this kind may have, and the least.
std::pair<std::int64_t, std::int64_t> index_limits(const TracedJob& job, TaskKind kind) {
  switch (kind) {
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::factor_a:
    case TaskKind::factor_g:
    case TaskKind::invert:
    case TaskKind::precondition:
    case TaskKind::exchange:
    case TaskKind::send:
      return {0, std::ssize(job.layers) - 1};
    case TaskKind::wait:
    case TaskKind::negotiation:
    case TaskKind::cast:
    case TaskKind::pack:
    case TaskKind::all_reduce:
    case TaskKind::unpack:
    case TaskKind::reduce_scatter:
    case TaskKind::all_gather:
      return {0, std::ssize(job.buckets) - 1};
    case TaskKind::update:
      return {-1, std::ssize(job.buckets) - 1};
    case TaskKind::read:
    case TaskKind::decode:
    case TaskKind::host_to_device:
      return {-1, 0};
  }
  return {0, -1};
}

// The resource that tasks of this kind run on; nothing if any will do.
std::optional<Resource> resource_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::read:
      return Resource::storage;
    case TaskKind::decode:
      return Resource::cpu;
    case TaskKind::host_to_device:
      return Resource::copy_engine;
    case TaskKind::forward:
    case TaskKind::backward:
    case TaskKind::factor_a:
    case TaskKind::factor_g:
    case TaskKind::invert:
    case TaskKind::precondition:
      return Resource::compute;
    case TaskKind::wait:
    case TaskKind::negotiation:
    case TaskKind::cast:
    case TaskKind::all_reduce:
    case TaskKind::reduce_scatter:
    case TaskKind::all_gather:
    case TaskKind::exchange:
    case TaskKind::send:
      return Resource::communication;
    case TaskKind::pack:  // beside communication, or, of a sharded plan, among computation
    case TaskKind::unpack:
    case TaskKind::update:
      return std::nullopt;
  }
  return std::nullopt;
}

TaskKind task_kind_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const TaskKind kind : all_task_kinds()) {
    if (name(kind) == text) return kind;
    known.emplace_back(name(kind));
  }
  throw unknown_name("task", text, known);
}

void read_event(const JsonValue& entry, std::vector<TracedTimeline>& timelines) {
  const std::string phase = name_of(entry.at("ph"));
  if (phase == "M") return;  // names a process or a track
  if (phase != "X")
    entry.at("ph").fail(fmt::format("{} is no event of a timeline", in_quotes(phase)), origin);
  const int process = count_of(entry.at("pid"), 0, std::ssize(timelines) - 1);
  TracedTimeline& traced = timelines[to_size(process)];
  const JsonValue args = entry.at("args");
  const TaskKind kind = entry.at("cat").named(task_kind_from_name);
  const auto [low, high] = index_limits(traced.job, kind);
  constexpr int communication = static_cast<int>(Resource::communication) + 1;
  const int track = count_of(entry.at("tid"), 1, communication + most_streams - 1);
  const auto resource = static_cast<Resource>(std::min(track, communication) - 1);
  if (resource_of(kind).value_or(resource) != resource)
    entry.at("tid").fail(fmt::format("{} on the {}", name(kind), name(resource)),
                         fmt::format("it runs on the {}", name(*resource_of(kind))));
  traced.timeline.events.push_back(
      {.kind = kind,
       .resource = resource,
       .stream = std::max(0, track - communication),
       .index = count_of(args.at("index"), low, high),
       .iteration = count_of(args.at("iteration"), 0, most_iterations - 1),
       .start = event_time_of(entry.at("ts")),
       .duration = event_time_of(entry.at("dur"))});
}

}  // namespace

std::vector<TracedTimeline> parse_chrome_trace(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file, "the timeline", origin);
  const JsonValue root = document.root();
  if (!root.has("traceEvents") || !root.has("otherData") || !root.at("otherData").has("schema"))
    root.fail("this is no timeline that paceline wrote, or one of an earlier version", origin);
  const JsonValue other = root.at("otherData");
  other.check_schema(timeline_schema, "timeline");
  std::vector<TracedTimeline> timelines;
  other.at("timelines").for_each([&](const JsonValue& process) {
    timelines.push_back(read_timeline(process));
  });
  root.at("traceEvents").for_each([&](const JsonValue& event) { read_event(event, timelines); });
  return timelines;
}

}  // namespace paceline::models
