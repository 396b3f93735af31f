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

namespace paceline::simulator {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

class Unrolling {
 public:
  Unrolling(const IterationDag& dag, const models::Plan& plan, int most)
      : dag_(dag), plan_(plan), most_(most), out_of_(dag.tasks().size()) {
    for (const Dependency& d : dag.dependencies()) out_of_[at(d.from)].push_back(d);
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
    Iteration& i = iterations_[at(iteration)];
    i.duration[at(task)] = when - i.start[at(task)];
    done_.push_back({iteration, task, when});
    spread(launcher);
  }

  // Of the last iteration that came to its end.
  [[nodiscard]] const std::vector<Seconds>& durations() const {
    PACELINE_ASSERT(complete_ > 0, "an iteration comes to its end");
    return iterations_[at(complete_ - 1)].duration;
  }

 private:
  struct Iteration {
    std::vector<int> waits;  // for so many tasks
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
      if (d.lag <= number) ++iteration.waits[at(d.to)];
    }
    iteration.start.resize(dag_.tasks().size());
    for (const Task& task : dag_.tasks()) iteration.duration.push_back(task.duration);
    iteration.unknown = static_cast<int>(dag_.tasks().size());
    iterations_.push_back(std::move(iteration));
  }

  void start(int iteration, int task) {
    const Task& t = dag_.tasks()[at(task)];
    const Seconds when = iterations_[at(iteration)].start[at(task)];
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
      for (const Dependency& d : out_of_[at(done.task)]) {
        const int next = done.iteration + d.lag;
        if (next >= most_ || is_steady_) continue;
        while (next >= static_cast<int>(iterations_.size())) open_iteration();
        Iteration& i = iterations_[at(next)];
        i.start[at(d.to)] = std::max(i.start[at(d.to)], done.when);
        if (--i.waits[at(d.to)] == 0) start(next, d.to);
      }
      if (--iterations_[at(done.iteration)].unknown == 0) complete(done.iteration);
    }
    for (const Done& collective : to_launch_) {
      if (is_steady_) break;
      const models::Bucket& bucket = plan_.buckets[at(dag_.tasks()[at(collective.task)].index)];
      launcher.launch(
          collective.iteration * static_cast<int>(dag_.tasks().size()) + collective.task,
          {.schedule = bucket.schedule, .bytes = plan_.bytes(bucket), .at = collective.when});
    }
    to_launch_.clear();
  }

  // Iterations end in order, for the last task of each waits for the one before.
  void complete(int iteration) {
    complete_ = std::max(complete_, iteration + 1);
    if (iteration == 0) return;
    const Iteration& before = iterations_[at(iteration - 1)];
    const Iteration& now = iterations_[at(iteration)];
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

}  // namespace

namespace {

// Walks one iteration from rest; duration(task, start) may be asked for a task's. Returns starts.
template <class F>
std::vector<Seconds> starts_from_rest(const IterationDag& dag, F&& duration, bool streams_wait) {
  const std::vector<Task>& tasks = dag.tasks();
  std::vector<Seconds> start(tasks.size());
  std::vector<Seconds> end(tasks.size());
  for (const int task : dag.order()) {
    for (std::size_t i = dag.first_into()[at(task)]; i < dag.first_into()[at(task) + 1]; ++i) {
      const Dependency& d = dag.into()[i];
      if (d.lag > 0) continue;
      const Task& from = tasks[at(d.from)];
      const Task& to = tasks[at(task)];
      const bool of_stream = from.resource == Resource::communication &&
                             to.resource == Resource::communication && from.index != to.index;
      if (of_stream && !streams_wait) continue;
      start[at(task)] = std::max(start[at(task)], end[at(d.from)]);
    }
    end[at(task)] = start[at(task)] + duration(task, start[at(task)]);
  }
  return start;
}

// Iterations of the executor in a row. A rank begins the next one when its own update is done: it
// waits for no other but in all-reduces.
class InOrder {
 public:
  InOrder(const IterationDag& dag, const models::Plan& plan, ExecutorEngine& engine)
      : dag_(dag), engine_(engine), late_(at(plan.ranks)) {
    const std::vector<Task>& tasks = dag.tasks();
    for (const Task& task : tasks) durations_.push_back(task.duration);
    // When buckets are ready, if streams kept nobody waiting.
    const std::vector<Seconds> ready = starts_from_rest(
        dag, [&](int task, Seconds) { return durations_[at(task)]; }, false);
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      if (tasks[task].kind != TaskKind::all_reduce) continue;
      const models::Bucket& bucket = plan.buckets[at(tasks[task].index)];
      all_reduces_.push_back(static_cast<int>(task));
      queued_.push_back(
          {{.schedule = bucket.schedule, .bytes = plan.bytes(bucket), .at = ready[task]},
           tasks[task].stream});
    }
  }

  // With rank 0's durations, once its iterations take as long as those before: in the mean of two,
  // for ranks may take turns at being ahead.
  [[nodiscard]] IterationDag timed() {
    std::vector<Seconds> last = iterate();
    std::vector<Seconds> mean = last;
    for (int i = 1; i < most_iterations; ++i) {
      const std::vector<Seconds> now = iterate();
      const Seconds before = length(mean);
      for (std::size_t b = 0; b < now.size(); ++b) mean[b] = (last[b] + now[b]) / 2;
      last = now;
      const Seconds period = length(mean);
      if (std::abs((period - before).value()) <= stays * period.value()) break;
    }
    (void)length(mean);
    IterationDag timed = dag_;
    timed.set_durations(durations_);
    return timed;
  }

 private:
  // Runs one, and notes how late ranks then are for the next. Returns when rank 0 is done with each
  // bucket, from where it began.
  std::vector<Seconds> iterate() {
    const std::vector<std::vector<Seconds>> ends = engine_.in_order(queued_, late_);
    std::vector<Seconds> first;
    for (std::size_t rank = 0; rank < late_.size(); ++rank) {
      std::vector<Seconds> own;
      for (const std::vector<Seconds>& of_bucket : ends)
        own.push_back(of_bucket[rank] - late_[rank]);
      late_[rank] += length(own);
      if (rank == 0) first = std::move(own);
    }
    const Seconds earliest = *std::min_element(late_.begin(), late_.end());
    for (Seconds& late : late_) late -= earliest;
    return first;
  }

  // Of an iteration whose buckets are done then; and sets the durations.
  Seconds length(const std::vector<Seconds>& ends) {
    const std::vector<Task>& tasks = dag_.tasks();
    std::vector<Seconds> end_of(tasks.size());
    for (std::size_t b = 0; b < ends.size(); ++b) end_of[at(all_reduces_[b])] = ends[b];
    Seconds end;
    (void)starts_from_rest(
        dag_,
        [&](int task, Seconds start) {
          if (tasks[at(task)].kind == TaskKind::all_reduce)
            durations_[at(task)] = std::max(Seconds{0}, end_of[at(task)] - start);
          end = std::max(end, start + durations_[at(task)]);
          return durations_[at(task)];
        },
        true);
    return end;
  }

  static constexpr int most_iterations = 8;
  static constexpr double stays = 1e-3;

  const IterationDag& dag_;
  ExecutorEngine& engine_;
  std::vector<Seconds> late_;  // of each rank
  std::vector<int> all_reduces_;
  std::vector<ExecutorEngine::Queued> queued_;
  std::vector<Seconds> durations_;  // of tasks
};

}  // namespace

IterationDag with_buckets_in_order(const IterationDag& dag, const models::Plan& plan,
                                   ExecutorEngine& engine) {
  return InOrder(dag, plan, engine).timed();
}

IterationDag with_buckets_in_flight(const IterationDag& dag, const models::Plan& plan,
                                    SharedLinkEngine& engine, int most) {
  const bool carries_over =
      plan.overlap == models::Overlap::double_buffered || plan.overlap == models::Overlap::priority;
  Unrolling unrolling(dag, plan, carries_over ? most : 1);
  engine.run(
      [&](Launcher& launcher) { unrolling.begin(launcher); },
      [&](int id, Seconds when, Launcher& launcher) { unrolling.finished(id, when, launcher); });
  IterationDag timed = dag;
  timed.set_durations(unrolling.durations());
  return timed;
}

}  // namespace paceline::simulator
