// Timelines: what chrome_trace writes comes back, and every fault is one InputError on one line.
#include "models/timeline/timeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/prediction/timeline.h"

namespace paceline::models {
namespace {

using Json = nlohmann::json;

std::string error_of(const std::string& text) {
  try {
    (void)parse_chrome_trace(text, "t.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  TracedTimeline timeline() {
    TracedTimeline traced{.job = {.network = text(),
                                  .strategy = text(),
                                  .ranks = 1 + below(5000),
                                  .wire = below(2) == 0 ? WireType::fp32 : WireType::bf16,
                                  .overlap = below(2) == 0 ? Overlap::none : Overlap::priority,
                                  .streams = 1 + below(4),
                                  .layers = {},
                                  .buckets = {}},
                          .timeline = {.title = text(),
                                       .provenance = below(2) == 0 ? "measured" : "predicted",
                                       .rank = below(100),
                                       .period = time(),
                                       .events = {},
                                       .batch_per_rank = below(300)}};
    for (int i = 1 + below(4); i > 0; --i) traced.job.layers.push_back({text(), text()});
    for (int i = below(4); i > 0; --i) {
      traced.job.buckets.push_back(
          {.gradients = 1 + below(9),
           .first_gradient = text(),
           .ready_after = below(static_cast<int>(traced.job.layers.size())),
           .bytes = Bytes{static_cast<double>(below(1 << 30))},
           .schedule = text(),
           .is_library = below(2) == 0,
           .group_size = below(3),
           .segments = below(3),
           .server_rank = below(2) == 0 ? std::nullopt : std::optional(below(9))});
    }
    for (int i = below(30); i > 0; --i) traced.timeline.events.push_back(event(traced.job));
    return traced;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  Seconds time() { return Seconds{std::uniform_real_distribution<double>(0, 2)(random_)}; }
  std::string text() {
    static const std::string letters[] = {"a", "Z", " ", "\"", "\\", "µ", "中", "😀", "/", "{"};
    std::string result;
    for (int n = below(12); n > 0; --n) result += letters[below(10)];
    return result;
  }
  TimelineEvent event(const TracedJob& job) {
    const bool is_of_bucket = !job.buckets.empty() && below(2) == 0;
    TimelineEvent e{.start = time(), .duration = time()};
    e.iteration = below(9);
    if (is_of_bucket) {
      constexpr TaskKind kinds[] = {
          TaskKind::cast,           TaskKind::pack,       TaskKind::all_reduce, TaskKind::unpack,
          TaskKind::reduce_scatter, TaskKind::all_gather, TaskKind::update};
      e.kind = kinds[below(7)];
      e.resource = Resource::communication;
      e.stream = below(job.streams);
      e.index = below(static_cast<int>(job.buckets.size()));
    } else {
      constexpr std::pair<TaskKind, Resource> kinds[] = {
          {TaskKind::forward, Resource::compute},
          {TaskKind::backward, Resource::compute},
          {TaskKind::update, Resource::compute},
          {TaskKind::read, Resource::storage},
          {TaskKind::decode, Resource::cpu},
          {TaskKind::host_to_device, Resource::copy_engine},
          {TaskKind::factor_a, Resource::compute},
          {TaskKind::factor_g, Resource::compute},
          {TaskKind::invert, Resource::compute},
          {TaskKind::precondition, Resource::compute}};
      const auto& [kind, resource] = kinds[below(10)];
      e.kind = kind;
      e.resource = resource;
      const bool is_of_layer = kind == TaskKind::forward || kind == TaskKind::backward ||
                               kind == TaskKind::factor_a || kind == TaskKind::factor_g ||
                               kind == TaskKind::invert || kind == TaskKind::precondition;
      e.index = is_of_layer ? below(static_cast<int>(job.layers.size()))
                            : (kind == TaskKind::update ? -1 : 0);
    }
    return e;
  }

  std::mt19937 random_;
};

void expect_equal(const TracedTimeline& a, const TracedTimeline& b) {
  EXPECT_EQ(a.job, b.job);
  EXPECT_EQ(a.timeline.title, b.timeline.title);
  EXPECT_EQ(a.timeline.provenance, b.timeline.provenance);
  EXPECT_EQ(a.timeline.rank, b.timeline.rank);
  EXPECT_EQ(a.timeline.batch_per_rank, b.timeline.batch_per_rank);
  EXPECT_DOUBLE_EQ(a.timeline.period.value(), b.timeline.period.value());
  ASSERT_EQ(a.timeline.interval.has_value(), b.timeline.interval.has_value());
  if (a.timeline.interval) {
    EXPECT_DOUBLE_EQ(a.timeline.interval->low.value(), b.timeline.interval->low.value());
    EXPECT_DOUBLE_EQ(a.timeline.interval->high.value(), b.timeline.interval->high.value());
  }
  ASSERT_EQ(a.timeline.events.size(), b.timeline.events.size());
  for (std::size_t i = 0; i < a.timeline.events.size(); ++i) {
    const TimelineEvent& x = a.timeline.events[i];
    const TimelineEvent& y = b.timeline.events[i];
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.resource, y.resource);
    EXPECT_EQ(x.stream, y.stream);
    EXPECT_EQ(x.index, y.index);
    EXPECT_EQ(x.iteration, y.iteration);
    EXPECT_NEAR(x.start.value(), y.start.value(), 1.6e-9);
    EXPECT_NEAR(x.duration.value(), y.duration.value(), 2.1e-9);
  }
}

// How many slices Perfetto drops: it takes `ts` and `dur` to whole nanoseconds by `to_ns`, one by
// one, and a slice that begins within another of its track must end within it.
template <class ToNs>
int dropped_slices(const Json& trace, ToNs&& to_ns) {
  struct Slice {
    std::int64_t start;
    std::int64_t end;
  };
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::int64_t start = to_ns(event.at("ts").get<double>());
    const std::int64_t end = start + to_ns(event.at("dur").get<double>());
    tracks[{event.at("pid"), event.at("tid")}].push_back({start, end});
  }
  int dropped = 0;
  for (auto& [track, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const Slice& a, const Slice& b) { return a.start < b.start; });
    std::vector<std::int64_t> open;  // ends of the slices that enclose what comes next
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.start) open.pop_back();
      if (!open.empty() && open.back() < slice.end) {
        ++dropped;
      } else {
        open.push_back(slice.end);
      }
    }
  }
  return dropped;
}

void expect_no_slice_dropped(const Json& trace) {
  EXPECT_EQ(dropped_slices(trace, [](double us) { return std::llround(us * 1000); }), 0);
  EXPECT_EQ(dropped_slices(trace, [](double us) { return static_cast<std::int64_t>(us * 1000); }),
            0);
}

// Tasks one behind the other, twice: the second time is shifted by a period, so that ends and
// starts are computed in two ways.
RC_GTEST_PROP(Timeline, PerfettoDropsNoSliceOfTasksBehindEachOther, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  Draw draw(seed);
  TracedTimeline traced = draw.timeline();
  traced.timeline.events.clear();
  Seconds now{0};
  for (int i = 0; i < 400; ++i) {
    const Seconds duration{std::uniform_real_distribution<double>(0, 3e-6)(random)};
    for (const double period : {0.0, 0.0123456789}) {
      traced.timeline.events.push_back({.kind = TaskKind::forward,
                                        .index = 0,
                                        .start = now + Seconds{period},
                                        .duration = duration});
    }
    now += duration;
  }
  expect_no_slice_dropped(Json::parse(chrome_trace({traced})));
}

RC_GTEST_PROP(Timeline, ComesBackAsItWasWritten, (std::uint32_t seed)) {
  Draw draw(seed);
  std::vector<TracedTimeline> written;
  for (std::uint32_t i = 0; i < seed % 4; ++i) written.push_back(draw.timeline());
  const std::vector<TracedTimeline> read = parse_chrome_trace(chrome_trace(written), "t.json");
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) expect_equal(read[i], written[i]);
  EXPECT_EQ(chrome_trace(read), chrome_trace(written));
}

// The timelines of a real network, of 161 buckets and of few.
TEST(Timeline, APredictionComesBack) {
  for (const char* strategy : {"ring", "hybrid", "parameter-server"}) {
    const NetworkWork network = work(zoo_network("resnet50"));
    const Cluster cluster = catalog_cluster("jizhi-p40");
    const simulator::StrategyRun run =
        simulator::Predictor(
            {{.batch_per_rank = 32}, network, cluster, nullptr, 16, WireType::fp16, Bytes{100'000}})
            .run(models::strategy(strategy));
    Timeline timeline = simulator::predicted_timeline(run, "a title");
    timeline.batch_per_rank = 32;
    timeline.interval = {0.9 * timeline.period, 1.2 * timeline.period};
    const std::string trace = chrome_trace(network, run.plan, {timeline});
    expect_no_slice_dropped(Json::parse(trace));
    const std::vector<TracedTimeline> read = parse_chrome_trace(trace, "t.json");
    ASSERT_EQ(read.size(), 1u);
    expect_equal(read.front(), {traced_job(network, run.plan), timeline});
    const TracedJob& job = read.front().job;
    EXPECT_EQ(job.network, "resnet50");
    EXPECT_EQ(job.layers.front().name, "conv1");
    EXPECT_EQ(job.buckets.size(), run.plan.buckets.size());
    // The last bucket holds the first layer's weights.
    EXPECT_EQ(job.layers[static_cast<std::size_t>(job.buckets.back().ready_after)].name, "conv1");
  }
}

Json little() {
  return Json::parse(R"({"otherData": {"schema": "paceline.timeline/1", "timelines": [{
    "title": "t", "provenance": "measured", "rank": 0, "period_us": 5, "batch_per_rank": 1,
    "network": "n", "strategy": "ring", "ranks": 2, "wire_type": "fp32", "overlap": "none",
    "streams": 1, "layers": [{"name": "a", "kind": "relu"}],
    "buckets": [{"gradients": 1, "first_gradient": "g", "ready_after": 0, "bytes": 4, "schedule": "ring"}]}]},
    "traceEvents": [{"ph": "X", "cat": "forward", "pid": 0, "tid": 4, "ts": 0, "dur": 1,
                     "args": {"iteration": 0, "index": 0}}]})");
}

std::string error_with(const char* pointer, const Json& value) {
  Json json = little();
  json[Json::json_pointer(pointer)] = value;
  return error_of(json.dump());
}

TEST(Timeline, WhatIsWrongIsNamed) {
  const std::string timeline = "/otherData/timelines/0";
  EXPECT_EQ(error_of(little().dump()), "no error");
  EXPECT_EQ(error_of("{}"),
            "t.json: the timeline: this is no timeline that paceline wrote, or one of an earlier "
            "version; give a timeline as paceline train and predict write it (--timeline)");
  EXPECT_EQ(error_of(R"({"traceEvents": [{"ph": "B"}]})"), error_of("{}"));
  EXPECT_EQ(error_of("{\n \"a\" 1}"),
            "t.json:2:6: this is not JSON; give a timeline as paceline train and predict write it "
            "(--timeline)");
  EXPECT_EQ(error_with("/otherData/schema", "paceline.timeline/2"),
            "t.json: otherData.schema: 'paceline.timeline/2' is not what this version reads; give "
            "a timeline of schema paceline.timeline/1");
  EXPECT_EQ(error_with("/traceEvents/0/cat", "forwrad"),
            "t.json: traceEvents[0].cat: unknown task 'forwrad'; did you mean 'forward'?");
  EXPECT_EQ(error_with("/traceEvents/0/args/index", 1),
            "t.json: traceEvents[0].args.index: 1 is not a whole number from 0 to 0");
  EXPECT_EQ(error_with("/traceEvents/0/pid", 1),
            "t.json: traceEvents[0].pid: 1 is not a whole number from 0 to 0");
  EXPECT_EQ(error_with("/traceEvents/0/tid", 0),
            "t.json: traceEvents[0].tid: 0 is not a whole number from 1 to 1028");
  EXPECT_EQ(error_with("/traceEvents/0/tid", 5),
            "t.json: traceEvents[0].tid: forward on the communication stream; it runs on the "
            "compute stream");
  EXPECT_EQ(error_with("/traceEvents/0/ts", -1),
            "t.json: traceEvents[0].ts: -1 does not fit; write a number from 0 to "
            "1000000000000000");
  EXPECT_EQ(error_with("/traceEvents/0/ph", "B"),
            "t.json: traceEvents[0].ph: 'B' is no event of a timeline; give a timeline as paceline "
            "train and predict write it (--timeline)");
  EXPECT_EQ(error_with((timeline + "/overlap").c_str(), "non"),
            "t.json: otherData.timelines[0].overlap: unknown overlap policy 'non'; did you mean "
            "'none'?");
  EXPECT_EQ(error_with((timeline + "/title").c_str(), "\x1b[31m"),
            "t.json: otherData.timelines[0].title: this text has control characters; leave them "
            "out");
  EXPECT_EQ(error_with((timeline + "/layers/0/name").c_str(), std::string(257, 'x')),
            "t.json: otherData.timelines[0].layers[0].name: this text is longer than 256 bytes; "
            "give a shorter one");
  EXPECT_EQ(error_with((timeline + "/buckets/0/ready_after").c_str(), 1),
            "t.json: otherData.timelines[0].buckets[0].ready_after: 1 is not a whole number from 0 "
            "to 0");
  for (const auto& [low, high] : {std::pair{6, 7}, std::pair{3, 4}}) {
    Json outside = little();
    outside["otherData"]["timelines"][0]["period_low_us"] = low;
    outside["otherData"]["timelines"][0]["period_high_us"] = high;
    EXPECT_EQ(error_of(outside.dump()),
              "t.json: otherData.timelines[0].period_low_us: the period is not between "
              "period_low_us and period_high_us; write the timeline again with paceline predict");
  }
  Json none = little();
  none["otherData"]["timelines"] = Json::array();
  EXPECT_EQ(error_of(none.dump()),
            "t.json: traceEvents[0].pid: the timeline has nothing of that kind");
}

TEST(Timeline, NoFieldMayBeLeftOut) {
  const Json flat = little().flatten();
  for (const auto& [pointer, value] : flat.items()) {
    const Json::json_pointer at(pointer);
    Json json = little();
    json[at.parent_pointer()].erase(at.back());
    EXPECT_NE(error_of(json.dump()), "no error") << pointer;
    json = little();
    json[at] = Json::object();
    EXPECT_NE(error_of(json.dump()), "no error") << pointer;
  }
}

TEST(Timeline, DeepAndWideFilesDoNoHarm) {
  EXPECT_EQ(
      error_of(std::string(1 << 22, '[')),
      "t.json:1:17: this nests more than 16 deep; give a timeline as paceline train and predict "
      "write it (--timeline)");
  Json wide = little();
  for (int i = 0; i < 10'000; ++i)
    wide["otherData"]["timelines"][0]["layers"].push_back({{"name", "a"}, {"kind", "b"}});
  EXPECT_EQ(error_of(wide.dump()),
            "t.json: otherData.timelines[0].layers: these are 10001; at most 10000 are read");
}

TEST(Timeline, GarbageNeverCrashesIt) {
  std::mt19937 random(7);
  const auto pick = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> pieces = {
      "{",     "}",  "[",      "]",       "\"",      ":",  ",",    "null",      "true",
      "1e999", "-1", "1e-400", "\\u0000", "\\ud800", "\n", "\xff", "\"index\"", "\"tid\": 3,"};
  int accepted = 0;
  for (std::uint32_t trial = 0; trial < 3000; ++trial) {
    std::string text = chrome_trace({Draw(trial).timeline()});
    for (std::size_t change = 1 + pick(4); change > 0; --change) {
      const std::size_t at = pick(text.size());
      switch (pick(3)) {
        case 0:
          text.insert(at, pieces[pick(pieces.size())]);
          break;
        case 1:
          text.erase(at, 1 + pick(20));
          break;
        default:
          text[at] = static_cast<char>(pick(256));
      }
      if (text.empty()) text = "{";
    }
    const std::string error = error_of(text);  // anything but InputError ends the test
    EXPECT_EQ(error.find('\n'), std::string::npos) << text;
    EXPECT_LT(error.size(), 500u) << text;
    if (error != "no error") continue;
    // A timeline that was read can be written.
    ++accepted;
    EXPECT_FALSE(chrome_trace(parse_chrome_trace(text, "t.json")).empty());
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace paceline::models
