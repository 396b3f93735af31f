// Tests: tests/simulator/ordered_collectives_test.cc.
#include "simulator/iteration/ordered_collectives.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// Walks one iteration from rest and returns the start of each task. duration(task, start) says how
// long a task takes.
template <class F>
std::vector<Seconds> starts_from_rest(const IterationDag& dag, F&& duration, bool streams_wait) {
  const std::vector<Task>& tasks = dag.tasks();
  std::vector<Seconds> start(tasks.size());
  std::vector<Seconds> end(tasks.size());
  for (const int task : dag.order()) {
    for (std::size_t i = dag.first_into()[to_size(task)]; i < dag.first_into()[to_size(task) + 1];
         ++i) {
      const Dependency& d = dag.into()[i];
      if (d.lag > 0) continue;
      const Task& from = tasks[to_size(d.from)];
      const Task& to = tasks[to_size(task)];
      const bool of_stream = from.resource == Resource::communication &&
                             to.resource == Resource::communication && from.index != to.index;
      if (of_stream && !streams_wait) continue;
      start[to_size(task)] = std::max(start[to_size(task)], end[to_size(d.from)]);
    }
    end[to_size(task)] = start[to_size(task)] + duration(task, start[to_size(task)]);
  }
  return start;
}

// Iterations of the executor in a row. A rank begins the next one when its own update is done: it
// waits for no other but in all-reduces.
class OrderedCollectives {
 public:
  OrderedCollectives(const IterationDag& dag, const models::Plan& plan, ExecutorEngine& engine)
      : dag_(dag), engine_(engine), late_(to_size(plan.ranks)) {
    const std::vector<Task>& tasks = dag.tasks();
    for (const Task& task : tasks) durations_.push_back(task.duration);
    // The times at which buckets would be ready if no stream kept them waiting.
    const std::vector<Seconds> ready = starts_from_rest(
        dag, [&](int task, Seconds) { return durations_[to_size(task)]; }, false);
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      if (tasks[task].kind != TaskKind::all_reduce) continue;
      const models::Bucket& bucket = plan.buckets[to_size(tasks[task].index)];
      all_reduces_.push_back(static_cast<int>(task));
      queued_.push_back(
          {{.schedule = bucket.schedule, .bytes = plan.bytes(bucket), .at = ready[task]},
           tasks[task].stream});
    }
  }

  // The DAG with rank 0's durations, once an iteration takes as long as the one before. They are the
  // mean of two iterations, because ranks may take turns at being ahead.
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

  // The length of an iteration whose buckets are done at `ends`. Sets the durations to match.
  Seconds length(const std::vector<Seconds>& ends) {
    const std::vector<Task>& tasks = dag_.tasks();
    std::vector<Seconds> end_of(tasks.size());
    for (std::size_t b = 0; b < ends.size(); ++b) end_of[to_size(all_reduces_[b])] = ends[b];
    Seconds end;
    (void)starts_from_rest(
        dag_,
        [&](int task, Seconds start) {
          if (tasks[to_size(task)].kind == TaskKind::all_reduce)
            durations_[to_size(task)] = std::max(Seconds{0}, end_of[to_size(task)] - start);
          end = std::max(end, start + durations_[to_size(task)]);
          return durations_[to_size(task)];
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

IterationDag with_ordered_collectives(const IterationDag& dag, const models::Plan& plan,
                                      ExecutorEngine& engine) {
  return OrderedCollectives(dag, plan, engine).timed();
}

}  // namespace paceline::simulator
