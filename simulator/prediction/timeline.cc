// Tests: tests/simulator/timeline_test.cc.
#include "simulator/prediction/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace paceline::simulator {
namespace {

constexpr int iterations_shown = 2;

// The streams of a rank, without gaps between their numbers, where its ranks of a sample exchange or send: such
// streams are behind one for each bucket.
std::map<int, int> tracks_of(const std::vector<Task>& tasks, int stage) {
  std::map<int, int> tracks;
  bool is_mesh = false;
  for (const Task& task : tasks) {
    is_mesh = is_mesh || task.kind == TaskKind::exchange || task.kind == TaskKind::send;
    if (task.stage == stage) tracks.emplace(task.stream, task.stream);
  }
  int next = 0;
  if (is_mesh)
    for (auto& [stream, track] : tracks) track = next++;
  return tracks;
}

}  // namespace

models::Timeline predicted_timeline(const StrategyRun& run, std::string title) {
  const std::vector<Task>& tasks = run.dag.tasks();
  models::Timeline timeline{.title = std::move(title),
                            .provenance = "predicted",
                            .period = run.steady.period,
                            .events = {}};
  // Two periods from the start of a forward pass. What runs ahead, such as the copy of a batch,
  // is shown where it runs, with the iteration that it is for.
  Seconds origin{std::numeric_limits<double>::infinity()};
  const int stage = busiest_stage(run.dag);
  const std::map<int, int> tracks = tracks_of(tasks, stage);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].resource == Resource::compute && tasks[i].stage == stage)
      origin = std::min(origin, run.steady.start[i]);
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    // Nothing runs while a bucket waits; other stages have other ranks.
    if (tasks[i].kind == TaskKind::wait || tasks[i].stage != stage) continue;
    const std::vector<TaskPart> parts = run.dag.parts(static_cast<int>(i));
    const double ahead = (origin - run.steady.start[i]) / run.steady.period;
    const int first = std::max(0, static_cast<int>(std::ceil(ahead - 1e-9)));
    for (int iteration = first; iteration < first + iterations_shown; ++iteration) {
      const Seconds start =
          run.steady.start[i] - origin + static_cast<double>(iteration) * run.steady.period;
      double done = 0;  // of the task
      for (const TaskPart& part : parts) {
        timeline.events.push_back({.kind = part.kind,
                                   .resource = tasks[i].resource,
                                   .stream = tracks.at(tasks[i].stream),
                                   .index = part.index,
                                   .iteration = iteration,
                                   .start = std::max(Seconds{0}, start + done * tasks[i].duration),
                                   .duration = part.share * tasks[i].duration});
        done += part.share;
      }
    }
  }
  return timeline;
}

}  // namespace paceline::simulator
