#include "simulator/prediction/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"

namespace paceline::simulator {
namespace {

struct Trace {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  StrategyRun run;
  nlohmann::json json;

  explicit Trace(int accumulate = 1)
      : run(Predictor({{.batch_per_rank = 32, .accumulate = accumulate},
                       network,
                       cluster,
                       nullptr,
                       64,
                       models::WireType::fp16})
                .run(models::strategy("hybrid"))),
        json(nlohmann::json::parse(
            models::chrome_trace(network, run.plan, {predicted_timeline(run, "a title")}))) {}
};

TEST(TimelineTrace, HasOneEventForEachTaskOfTwoIterations) {
  const Trace trace;
  std::size_t events = 0;
  for (const auto& event : trace.json["traceEvents"]) events += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(events, 2 * trace.run.dag.tasks().size());
}

TEST(TimelineTrace, NamesTheTrackOfEveryEvent) {
  const Trace trace;
  std::set<int> named;
  for (const auto& event : trace.json["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") named.insert(event["tid"].get<int>());
  }
  for (const auto& event : trace.json["traceEvents"]) {
    if (event["ph"] == "X") EXPECT_TRUE(named.contains(event["tid"].get<int>()));
  }
}

TEST(TimelineTrace, EventsOfATrackDoNotOverlap) {
  const Trace trace;
  std::map<int, std::vector<std::pair<double, double>>> tracks;
  for (const auto& event : trace.json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    tracks[event["tid"]].emplace_back(event["ts"],
                                      event["ts"].get<double>() + event["dur"].get<double>());
    EXPECT_GE(event["ts"].get<double>(), 0);
  }
  EXPECT_GE(tracks.size(), 3u);
  for (auto& [track, events] : tracks) {
    std::sort(events.begin(), events.end());
    for (std::size_t i = 1; i < events.size(); ++i)
      EXPECT_GE(events[i].first, events[i - 1].second - 1e-3);
  }
}

// Four accumulated batches: the picture has four forward and four backward passes of each layer, and
// no pass of an iteration overlaps another.
TEST(TimelineTrace, HasThePassesOfAllAccumulatedBatches) {
  const Trace one;
  const Trace four(4);
  const auto seconds = [](const Trace& trace, const char* pass) {
    double sum = 0;
    for (const auto& event : trace.json["traceEvents"]) {
      if (event["ph"] == "X" && event["cat"] == pass && event["args"]["iteration"] == 0)
        sum += event["dur"].get<double>();
    }
    return sum;
  };
  EXPECT_NEAR(seconds(four, "forward") / seconds(one, "forward"), 4, 1e-3);
  // The last of them runs beside all-reduces in both, the others alone.
  EXPECT_GT(seconds(four, "backward") / seconds(one, "backward"), 3);
  EXPECT_LT(seconds(four, "backward") / seconds(one, "backward"), 4 + 1e-3);
  const auto events = [](const Trace& trace, const char* pass) {
    std::size_t count = 0;
    for (const auto& event : trace.json["traceEvents"])
      count += event["ph"] == "X" && event["cat"] == pass ? 1 : 0;
    return count;
  };
  for (const char* pass : {"forward", "backward"})
    EXPECT_EQ(events(four, pass), 4 * events(one, pass));
  std::vector<std::pair<double, double>> computed;
  for (const auto& event : four.json["traceEvents"]) {
    if (event["ph"] == "X" && event["tid"] == 4)
      computed.emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
  }
  std::sort(computed.begin(), computed.end());
  for (std::size_t i = 1; i < computed.size(); ++i)
    EXPECT_GE(computed[i].first, computed[i - 1].second - 1e-3);
}

TEST(TimelineTrace, BucketsCarryTheirBytes) {
  const Trace trace;
  double bytes = 0;
  for (const auto& event : trace.json["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "all-reduce" && event["args"]["iteration"] == 0)
      bytes += event["args"]["bytes"].get<double>();
  }
  EXPECT_EQ(bytes, 2.0 * 25'557'032);
}

}  // namespace
}  // namespace paceline::simulator
