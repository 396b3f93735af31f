// Tests: tests/models/timeline_test.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/names.h"
#include "models/base/place_in.h"
#include "models/plan/timeline.h"

namespace paceline::models {
namespace {

using Json = nlohmann::json;

constexpr int deepest = 16;  // chrome_trace nests 5 deep
constexpr std::size_t longest_name = 256;
constexpr std::size_t longest_title = 8192;
constexpr std::int64_t most = 1'000'000'000;  // of whatever is counted
// Readers keep a value for each layer and bucket of each iteration.
constexpr std::int64_t most_iterations = 1'000;
constexpr std::size_t most_layers = 10'000;  // and buckets
constexpr double longest_us = 1e15;          // 31 years
constexpr std::int64_t most_streams = 1024;

const char* const origin = "give a timeline as paceline train and predict write it (--timeline)";

std::vector<TaskKind> all_task_kinds() {
  std::vector<TaskKind> kinds;
  for (int kind = 0; kind <= static_cast<int>(TaskKind::update); ++kind)
    kinds.push_back(static_cast<TaskKind>(kind));
  return kinds;
}

// A value of the document, with its place for errors: "traceEvents[7].args.iteration". Places are
// put together only where something is wrong, for there are many events.
class Value {
 public:
  Value(const Json& json, const std::string& file) : json_(json), file_(file) {}

  [[noreturn]] void fail(const std::string& problem, const std::string& remedy) const {
    const std::string at = place();
    throw InputError({file_}, (at.empty() ? std::string("the timeline") : at) + ": " + problem,
                     remedy);
  }
  [[nodiscard]] bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  [[nodiscard]] Value at(const char* key) const {
    if (!json_.is_object()) fail("this is no object", "write {...}");
    const auto found = json_.find(key);
    if (found == json_.end())
      fail(fmt::format("'{}' is missing", key), fmt::format("add \"{}\"", key));
    return {*found, *this, key, 0};
  }
  [[nodiscard]] std::size_t size(
      std::size_t largest = std::numeric_limits<std::size_t>::max()) const {
    if (!json_.is_array()) fail("this is no array", "write [...]");
    if (json_.size() > largest)
      fail(fmt::format("these are {}", json_.size()), fmt::format("at most {} are read", largest));
    return json_.size();
  }
  [[nodiscard]] Value element(std::size_t i) const { return {json_[i], *this, nullptr, i}; }
  [[nodiscard]] std::string text(std::size_t longest = longest_name) const {
    if (!json_.is_string()) fail("this is no text", "write \"...\"");
    const auto& value = json_.get_ref<const std::string&>();
    if (value.size() > longest)
      fail(fmt::format("this text is longer than {} bytes", longest), "give a shorter one");
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
    };
    if (std::any_of(value.begin(), value.end(), is_control))
      fail("this text has control characters", "leave them out");
    return value;
  }
  // From 0 to `largest`.
  [[nodiscard]] double number(double largest) const {
    const double value = json_.is_number() ? json_.get<double>() : -1;
    if (!json_.is_number() || !(value >= 0 && value <= largest))
      fail("this is no number that fits", fmt::format("write a number from 0 to {}", largest));
    return value;
  }
  [[nodiscard]] Seconds time() const { return Seconds{number(longest_us) / 1e6}; }
  [[nodiscard]] int whole(std::int64_t low, std::int64_t high) const {
    const double value = json_.is_number() ? json_.get<double>() : -2;
    const bool fits = json_.is_number() && value == std::floor(value) &&
                      value >= static_cast<double>(low) && value <= static_cast<double>(high);
    if (!fits && low > high) fail("the timeline has nothing of that kind", "");
    if (!fits) fail("this is no whole number that fits", fmt::format("write {} to {}", low, high));
    return static_cast<int>(value);
  }
  template <class F>
  [[nodiscard]] auto named(F parse) const {
    const std::string name = text();
    try {
      return parse(name);
    } catch (const InputError& error) {
      fail(error.problem(), error.remedy());
    }
  }

 private:
  Value(const Json& json, const Value& parent, const char* key, std::size_t index)
      : json_(json), file_(parent.file_), parent_(&parent), key_(key), index_(index) {}

  // A value outlives those that come of it: chains of at() hold their temporaries to the end.
  [[nodiscard]] std::string place() const {
    if (parent_ == nullptr) return "";
    const std::string above = parent_->place();
    if (key_ == nullptr) return fmt::format("{}[{}]", above, index_);
    return above.empty() ? std::string(key_) : fmt::format("{}.{}", above, key_);
  }

  const Json& json_;
  const std::string& file_;
  const Value* parent_ = nullptr;
  const char* key_ = nullptr;
  std::size_t index_ = 0;
};

Json parse_json(std::string_view text, const std::string& file) {
  // nlohmann parses without recursion; what nests deeply costs memory, though.
  const auto check_depth = [&file](int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
    if (depth > deepest)
      throw InputError({file}, fmt::format("this nests more than {} deep", deepest), origin);
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check_depth);
  } catch (const Json::parse_error& error) {
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    throw InputError(place_in(file, text, offset), "this is not JSON", origin);
  } catch (const Json::out_of_range&) {
    throw InputError({file}, "a number is too large", "write finite numbers");
  }
}

TracedBucket read_bucket(const Value& entry, std::size_t layers) {
  TracedBucket bucket{
      .gradients = entry.at("gradients").whole(1, most),
      .first_gradient = entry.at("first_gradient").text(),
      .ready_after = entry.at("ready_after").whole(0, static_cast<std::int64_t>(layers) - 1),
      .bytes = Bytes{entry.at("bytes").number(1e15)},
      .schedule = entry.at("schedule").text(),
      .is_library = entry.has("timed_by"),
      .group_size = entry.has("group_size") ? entry.at("group_size").whole(1, most) : 0,
      .segments = entry.has("segments") ? entry.at("segments").whole(1, most) : 0,
      .server_rank = std::nullopt};
  if (entry.has("server_rank")) bucket.server_rank = entry.at("server_rank").whole(0, most);
  return bucket;
}

TracedTimeline read_timeline(const Value& entry) {
  TracedTimeline traced{.job = {.network = entry.at("network").text(),
                                .strategy = entry.at("strategy").text(),
                                .ranks = entry.at("ranks").whole(1, most),
                                .wire = entry.at("wire_type").named([](const std::string& name) {
                                  return wire_type_from_name(name);
                                }),
                                .overlap = entry.at("overlap").named([](const std::string& name) {
                                  return overlap_from_name(name);
                                }),
                                .streams = entry.at("streams").whole(1, most_streams),
                                .layers = {},
                                .buckets = {}},
                        .timeline = {.title = entry.at("title").text(longest_title),
                                     .provenance = entry.at("provenance").text(),
                                     .rank = entry.at("rank").whole(0, most),
                                     .period = entry.at("period_us").time(),
                                     .events = {},
                                     .batch_per_rank = entry.at("batch_per_rank").whole(0, most)}};
  const Value layers = entry.at("layers");
  for (std::size_t i = 0; i < layers.size(most_layers); ++i) {
    const Value layer = layers.element(i);
    traced.job.layers.push_back({layer.at("name").text(), layer.at("kind").text()});
  }
  const Value buckets = entry.at("buckets");
  for (std::size_t i = 0; i < buckets.size(most_layers); ++i)
    traced.job.buckets.push_back(read_bucket(buckets.element(i), layers.size()));
  return traced;
}

// The largest index that an event of this kind may have, and the least.
std::pair<std::int64_t, std::int64_t> index_limits(const TracedJob& job, TaskKind kind) {
  switch (kind) {
    case TaskKind::forward:
    case TaskKind::backward:
      return {0, std::ssize(job.layers) - 1};
    case TaskKind::cast:
    case TaskKind::pack:
    case TaskKind::all_reduce:
    case TaskKind::unpack:
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

TaskKind task_kind_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const TaskKind kind : all_task_kinds()) {
    if (name(kind) == text) return kind;
    known.emplace_back(name(kind));
  }
  throw unknown_name("task", text, known);
}

void read_event(const Value& entry, std::vector<TracedTimeline>& timelines) {
  const std::string phase = entry.at("ph").text();
  if (phase == "M") return;  // names a process or a track
  if (phase != "X")
    entry.at("ph").fail(fmt::format("{} is no event of a timeline", in_quotes(phase)), origin);
  const int process = entry.at("pid").whole(0, std::ssize(timelines) - 1);
  TracedTimeline& traced = timelines[static_cast<std::size_t>(process)];
  const Value args = entry.at("args");
  const TaskKind kind = entry.at("cat").named(task_kind_from_name);
  const auto [low, high] = index_limits(traced.job, kind);
  constexpr int communication = static_cast<int>(Resource::communication) + 1;
  const int track = entry.at("tid").whole(1, communication + most_streams - 1);
  traced.timeline.events.push_back(
      {.kind = kind,
       .resource = static_cast<Resource>(std::min(track, communication) - 1),
       .stream = std::max(0, track - communication),
       .index = args.at("index").whole(low, high),
       .iteration = args.at("iteration").whole(0, most_iterations - 1),
       .start = entry.at("ts").time(),
       .duration = entry.at("dur").time()});
}

}  // namespace

std::vector<TracedTimeline> parse_chrome_trace(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const Value root(json, file);
  if (!root.has("traceEvents") || !root.has("otherData") || !root.at("otherData").has("schema"))
    root.fail("this is no timeline that paceline wrote, or one of an earlier version", origin);
  const Value other = root.at("otherData");
  const std::string schema = other.at("schema").text();
  if (schema != timeline_schema)
    other.at("schema").fail(fmt::format("{} is not what this version reads", in_quotes(schema)),
                            fmt::format("give a timeline of schema {}", timeline_schema));
  std::vector<TracedTimeline> timelines;
  const Value processes = other.at("timelines");
  for (std::size_t i = 0; i < processes.size(); ++i)
    timelines.push_back(read_timeline(processes.element(i)));
  const Value events = root.at("traceEvents");
  for (std::size_t i = 0; i < events.size(); ++i) read_event(events.element(i), timelines);
  return timelines;
}

}  // namespace paceline::models
