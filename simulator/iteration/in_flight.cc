// Tests: tests/simulator/in_flight_test.cc.
//
// IMPLEMENTATION. Only the all-reduces wait for the engine. When one is done, all tasks that no
// longer wait for any are given their times at once, however far ahead, and all-reduces among
// them are launched at theirs.
#include "simulator/iteration/in_flight.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/iteration/steady_state.h"

namespace paceline::simulator {
namespace {

// Where iterations do not settle they come in turns, mostly of two: means are taken over this many,
// which is a multiple of the likely numbers.
constexpr int averaged = 12;

class Unrolling {
 public:
  Unrolling(const IterationDag& dag, const models::Plan& plan, int most)
      : dag_(dag), plan_(plan), most_(most), out_of_(dag.tasks().size()) {
    for (const Dependency& d : dag.dependencies()) out_of_[to_size(d.from)].push_back(d);
  }

  void begin(Launcher& launcher) {
    open_iteration();
    // Tasks of the first iteration that wait for nothing.
    for (std::size_t task = 0; task < dag_.tasks().size(); ++task) {
      if (iterations_.front().waits[task] == 0) start(0, static_cast<int>(task));
    }
    spread(launcher);
  }

  void finished(int id, Seconds when, Launcher& launcher) {
    const int tasks = static_cast<int>(dag_.tasks().size());
    const int iteration = id / tasks;
    const int task = id % tasks;
    Iteration& i = iterations_[to_size(iteration)];
    i.duration[to_size(task)] = when - i.start[to_size(task)];
    done_.push_back({iteration, task, when});
    spread(launcher);
  }

  // Whether the last iteration is like the one before, or there are too few to take means of.
  [[nodiscard]] bool is_settled() const { return is_steady_ || complete_ <= averaged; }

  // The durations of the last iteration that came to its end.
  [[nodiscard]] const std::vector<Seconds>& durations() const {
    PACELINE_ASSERT(complete_ > 0, "an iteration comes to its end");
    return iterations_[to_size(complete_ - 1)].duration;
  }

  // Where iterations do not settle: means over those before the last, whose buckets share links with
  // none of a later one.
  [[nodiscard]] std::vector<Seconds> mean_durations() const {
    std::vector<Seconds> means(dag_.tasks().size());
    for (int i = complete_ - 1 - averaged; i < complete_ - 1; ++i) {
      for (std::size_t task = 0; task < means.size(); ++task)
        means[task] += iterations_[to_size(i)].duration[task] / static_cast<double>(averaged);
    }
    return means;
  }
  // From one iteration to the next, over the same iterations.
  [[nodiscard]] Seconds mean_period() const {
    const auto update = std::ranges::find(dag_.tasks(), TaskKind::update, &Task::kind);
    PACELINE_ASSERT(update != dag_.tasks().end(), "an iteration has an update");
    const auto task = to_size(update - dag_.tasks().begin());
    return (iterations_[to_size(complete_ - 1)].start[task] -
            iterations_[to_size(complete_ - 1 - averaged)].start[task]) /
           static_cast<double>(averaged);
  }

 private:
  struct Iteration {
    std::vector<int> waits;  // for this many tasks
    std::vector<Seconds> start;
    std::vector<Seconds> duration;
    int unknown = 0;  // tasks whose end is not known
  };
  struct Done {
    int iteration;
    int task;
    Seconds when;
  };

  void open_iteration() {
    const int number = static_cast<int>(iterations_.size());
    Iteration iteration;
    iteration.waits.resize(dag_.tasks().size());
    for (const Dependency& d : dag_.dependencies()) {
      if (d.lag <= number) ++iteration.waits[to_size(d.to)];
    }
    iteration.start.resize(dag_.tasks().size());
    for (const Task& task : dag_.tasks()) iteration.duration.push_back(task.duration);
    iteration.unknown = static_cast<int>(dag_.tasks().size());
    iterations_.push_back(std::move(iteration));
  }

  void start(int iteration, int task) {
    const Task& t = dag_.tasks()[to_size(task)];
    const Seconds when = iterations_[to_size(iteration)].start[to_size(task)];
    if (t.kind == TaskKind::all_reduce) {
      to_launch_.push_back({iteration, task, when});
    } else {
      done_.push_back({iteration, task, when + t.duration});
    }
  }

  void spread(Launcher& launcher) {
    while (!done_.empty()) {
      const Done done = done_.back();
      done_.pop_back();
      for (const Dependency& d : out_of_[to_size(done.task)]) {
        const int next = done.iteration + d.lag;
        if (next >= most_ || is_steady_) continue;
        while (next >= static_cast<int>(iterations_.size())) open_iteration();
        Iteration& i = iterations_[to_size(next)];
        i.start[to_size(d.to)] = std::max(i.start[to_size(d.to)], done.when);
        if (--i.waits[to_size(d.to)] == 0) start(next, d.to);
      }
      if (--iterations_[to_size(done.iteration)].unknown == 0) complete(done.iteration);
    }
    for (const Done& collective : to_launch_) {
      if (is_steady_) break;
      const models::Bucket& bucket =
          plan_.buckets[to_size(dag_.tasks()[to_size(collective.task)].index)];
      launcher.launch(
          collective.iteration * static_cast<int>(dag_.tasks().size()) + collective.task,
          {.schedule = bucket.schedule, .bytes = plan_.bytes(bucket), .at = collective.when});
    }
    to_launch_.clear();
  }

  // Iterations end in order, because the last task of each waits for the one before.
  void complete(int iteration) {
    complete_ = std::max(complete_, iteration + 1);
    if (iteration == 0) return;
    const Iteration& before = iterations_[to_size(iteration - 1)];
    const Iteration& now = iterations_[to_size(iteration)];
    bool is_like_before = before.unknown == 0;
    Seconds period{-1};
    for (std::size_t task = 0; task < dag_.tasks().size() && is_like_before; ++task) {
      const Resource resource = dag_.tasks()[task].resource;
      if (resource != Resource::compute && resource != Resource::communication) continue;
      const Seconds step = now.start[task] - before.start[task];
      if (period < Seconds{0}) period = step;
      constexpr double as_good = 1e-9;
      const auto differ = [&](Seconds a, Seconds b) {
        return std::abs((a - b).value()) > as_good * period.value();
      };
      is_like_before = !differ(step, period) && !differ(now.duration[task], before.duration[task]);
    }
    is_steady_ = is_steady_ || is_like_before;
  }

  const IterationDag& dag_;
  const models::Plan& plan_;
  int most_;
  std::vector<std::vector<Dependency>> out_of_;  // of each task
  std::vector<Iteration> iterations_;
  std::vector<Done> done_;
  std::vector<Done> to_launch_;
  int complete_ = 0;  // iterations that came to their end
  bool is_steady_ = false;
};

// Durations of tasks, with all-reduces that take this many times as long.
std::vector<Seconds> stretched(const IterationDag& dag, double factor) {
  std::vector<Seconds> durations;
  for (const Task& task : dag.tasks())
    durations.push_back(task.kind == TaskKind::all_reduce ? factor * task.duration : task.duration);
  return durations;
}

}  // namespace

IterationDag with_buckets_in_flight(const IterationDag& dag, const models::Plan& plan,
                                    NetworkEngine& engine, int most) {
  const bool carries_over =
      plan.overlap == models::Overlap::double_buffered || plan.overlap == models::Overlap::priority;
  Unrolling unrolling(dag, plan, carries_over ? most : 1);
  engine.run(
      [&](Launcher& launcher) { unrolling.begin(launcher); },
      [&](int id, Seconds when, Launcher& launcher) { unrolling.finished(id, when, launcher); });
  IterationDag timed = dag;
  timed.set_durations(unrolling.is_settled() ? unrolling.durations() : unrolling.mean_durations());
  if (unrolling.is_settled()) return timed;
  // The period of mean durations is shorter than the mean of periods, for tasks wait for the last of
  // several.
  constexpr int most_stretched = 8;
  constexpr double as_good = 1e-9;
  for (int i = 0; i < most_stretched; ++i) {
    const double factor = unrolling.mean_period() / steady_state(timed).period;
    if (factor < 1 + as_good) break;
    timed.set_durations(stretched(timed, factor));
  }
  return timed;
}

}  // namespace paceline::simulator
