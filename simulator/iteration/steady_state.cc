// Tests: tests/simulator/dag_test.cc.
#include "simulator/iteration/steady_state.h"

#include <algorithm>
#include <cmath>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

// The task that ends an iteration: its (last) update.
int last_task(const IterationDag& dag, const SteadyIteration& steady) {
  int last = 0;
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    if (dag.tasks()[i].kind != TaskKind::update) continue;
    const bool later = dag.tasks()[static_cast<std::size_t>(last)].kind != TaskKind::update ||
                       steady.finish(dag, static_cast<int>(i)) >= steady.finish(dag, last);
    if (later) last = static_cast<int>(i);
  }
  return last;
}

bool is_input(TaskKind kind) {
  return kind == TaskKind::read || kind == TaskKind::decode || kind == TaskKind::host_to_device;
}

}  // namespace

SteadyIteration steady_state(const IterationDag& dag, int most) {
  const std::size_t count = dag.tasks().size();
  std::vector<double> duration(count);
  for (std::size_t i = 0; i < count; ++i) duration[i] = dag.tasks()[i].duration.value();
  std::vector<double> before(count, 0.0);  // starts in the last iteration
  std::vector<double> now(count, 0.0);
  std::vector<double> before_finish(count, 0.0);
  std::vector<double> finish(count, 0.0);
  SteadyIteration steady;
  steady.binding.assign(count, -1);
  steady.converged = false;
  std::vector<double> ends;  // of each iteration's last update

  for (int iteration = 0; iteration < most; ++iteration) {
    double end = 0;
    for (const int task : dag.order()) {
      const auto t = static_cast<std::size_t>(task);
      double start = 0;
      int binding = -1;
      for (std::size_t i = dag.first_into()[t]; i < dag.first_into()[t + 1]; ++i) {
        const Dependency& d = dag.into()[i];
        if (d.lag > 0 && iteration == 0) continue;
        const auto from = static_cast<std::size_t>(d.from);
        const double done = d.lag > 0 ? before_finish[from] : finish[from];
        if (binding < 0 || done > start) {
          start = std::max(start, done);
          binding = static_cast<int>(i);
        }
      }
      now[t] = start;
      finish[t] = start + duration[t];
      steady.binding[t] = binding;
      if (dag.tasks()[t].kind == TaskKind::update) end = std::max(end, finish[t]);
    }
    ends.push_back(end);
    steady.iterations = iteration + 1;
    if (iteration > 0) {
      double least = INFINITY;
      double largest = -INFINITY;
      for (std::size_t i = 0; i < count; ++i) {
        least = std::min(least, now[i] - before[i]);
        largest = std::max(largest, now[i] - before[i]);
      }
      constexpr double rounding = 1e-12;
      if (largest - least <= rounding * largest) {
        steady.period = Seconds{largest};
        steady.converged = true;
        break;
      }
    }
    if (iteration + 1 < most) {
      before.swap(now);
      before_finish.swap(finish);
    }
  }
  if (!steady.converged) {
    const std::size_t half = ends.size() / 2;
    PACELINE_ASSERT(ends.size() >= 2, "a steady state takes at least two iterations");
    steady.period = Seconds{(ends.back() - ends[half - 1]) / static_cast<double>(ends.size() - half)};
  }
  for (std::size_t i = 0; i < count; ++i) {
    steady.start.emplace_back(now[i]);
    steady.previous_finish.emplace_back(before_finish[i]);
  }
  return steady;
}

TimeSpent time_spent(const IterationDag& dag, const SteadyIteration& steady) {
  TimeSpent spent;
  for (const Task& task : dag.tasks()) {
    if (task.resource == Resource::communication) spent.communication += task.duration;
    if (task.resource != Resource::compute) continue;
    spent.compute += task.duration;
    if (task.kind == TaskKind::update) spent.update += task.duration;
  }
  // Gaps of the compute stream that end because a batch arrived; all others end with a bucket.
  const Seconds idle = std::max(Seconds{0}, steady.period - spent.compute);
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    if (dag.tasks()[i].resource != Resource::compute || steady.binding[i] < 0) continue;
    const Dependency& binding = dag.into()[static_cast<std::size_t>(steady.binding[i])];
    if (!is_input(dag.tasks()[static_cast<std::size_t>(binding.from)].kind)) continue;
    Seconds otherwise;  // when the task could have started with its batch there
    for (std::size_t e = dag.first_into()[i]; e < dag.first_into()[i + 1]; ++e) {
      const Dependency& d = dag.into()[e];
      if (is_input(dag.tasks()[static_cast<std::size_t>(d.from)].kind)) continue;
      otherwise = std::max(otherwise, d.lag > 0 ? steady.previous_finish[static_cast<std::size_t>(d.from)] : steady.finish(dag, d.from));
    }
    spent.input_wait += steady.start[i] - otherwise;
  }
  spent.input_wait = std::min(spent.input_wait, idle);
  spent.exposed_communication = idle - spent.input_wait;
  // What is left of subtracting sums of hundreds of tasks is rounding.
  if (spent.exposed_communication < 1e-12 * steady.period) spent.exposed_communication = Seconds{0};
  return spent;
}

std::vector<CriticalTask> critical_path(const IterationDag& dag, const SteadyIteration& steady) {
  std::vector<CriticalTask> path;
  CriticalTask at{last_task(dag, steady), 0};
  const int last = at.task;
  // In the steady state, the binding dependencies of earlier iterations are the same ones.
  while (steady.converged && path.size() <= 2 * dag.tasks().size()) {
    if (!path.empty() && at.task == last) break;
    path.push_back(at);
    const int binding = steady.binding[static_cast<std::size_t>(at.task)];
    if (binding < 0) break;
    const Dependency& d = dag.into()[static_cast<std::size_t>(binding)];
    at = {d.from, at.iteration - d.lag};
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace paceline::simulator
