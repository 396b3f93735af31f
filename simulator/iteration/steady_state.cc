// Tests: tests/simulator/dag_test.cc.
#include "simulator/iteration/steady_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// The task that ends an iteration: its (last) update.
int last_task(const IterationDag& dag, const SteadyIteration& steady) {
  int last = 0;
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    if (dag.tasks()[i].kind != TaskKind::update) continue;
    const bool later = dag.tasks()[to_size(last)].kind != TaskKind::update ||
                       steady.finish(dag, static_cast<int>(i)) >= steady.finish(dag, last);
    if (later) last = static_cast<int>(i);
  }
  return last;
}

bool is_input(TaskKind kind) {
  return kind == TaskKind::read || kind == TaskKind::decode || kind == TaskKind::host_to_device;
}

}  // namespace

namespace {

// The DAG, unrolled one iteration after the other.
class Unrolled {
 public:
  explicit Unrolled(const IterationDag& dag) : dag_(dag), binding_(dag.tasks().size(), -1) {
    const std::size_t count = dag.tasks().size();
    for (auto& values : finish_) values.assign(count, 0.0);
    start_.assign(count, 0.0);
    step_.assign(count, 0.0);
    for (const Task& task : dag.tasks()) duration_.push_back(task.duration.value());
    rounding_ = std::max(rounding_,
                         4 * static_cast<double>(count) * std::numeric_limits<double>::epsilon());
  }

  void next() {
    std::rotate(finish_.begin(), finish_.end() - 1, finish_.end());
    last_step_.swap(step_);
    step_.resize(start_.size());
    for (const int task : dag_.order()) {
      const auto t = to_size(task);
      double start = 0;
      int binding = -1;
      for (std::size_t i = dag_.first_into()[t]; i < dag_.first_into()[t + 1]; ++i) {
        const Dependency& d = dag_.into()[i];
        if (d.lag > iterations_) continue;
        const double done = done_at(d);
        if (binding < 0 || done > start) {
          start = std::max(start, done);
          binding = static_cast<int>(i);
        }
      }
      step_[t] = start - start_[t];
      start_[t] = start;
      finish_[0][t] = start + duration_[t];
      binding_[t] = binding;
    }
    ++iterations_;
  }

  // Does every task start the same time later than it did one iteration before?
  [[nodiscard]] bool is_steady() const {
    if (iterations_ < 2) return false;
    const auto [least, most] = std::minmax_element(step_.begin(), step_.end());
    return *most - *least <= rounding_ * *most;
  }
  [[nodiscard]] double period() const { return *std::max_element(step_.begin(), step_.end()); }

  // Skips iterations while every task moves at a rate of its own, up to the last one before some task
  // has to wait for another that it did not wait for so far.
  void skip_ahead() {
    if (iterations_ < 4 || last_step_.size() != step_.size()) return;
    for (std::size_t t = 0; t < step_.size(); ++t) {
      if (std::abs(step_[t] - last_step_[t]) > rounding_ * std::abs(step_[t])) return;
    }
    double skipped = std::numeric_limits<double>::infinity();
    for (const Dependency& d : dag_.dependencies()) {
      const double gains = step_[to_size(d.from)] - step_[to_size(d.to)];
      if (gains <= rounding_ * period()) continue;
      skipped = std::min(skipped, std::floor((start_[to_size(d.to)] - done_at(d)) / gains));
    }
    if (!std::isfinite(skipped) || skipped < 1) return;
    for (std::size_t t = 0; t < step_.size(); ++t) {
      start_[t] += skipped * step_[t];
      for (auto& values : finish_) values[t] += skipped * step_[t];
    }
  }

  [[nodiscard]] SteadyIteration result() const {
    SteadyIteration steady;
    steady.period = Seconds{period()};
    steady.iterations = iterations_;
    steady.converged = is_steady();
    for (const double start : start_) steady.start.emplace_back(start);
    for (const double finish : finish_[1]) steady.previous_finish.emplace_back(finish);
    steady.binding = binding_;
    return steady;
  }

 private:
  // A share of a period. Each task of a chain rounds the time once.
  double rounding_ = 1e-12;

  [[nodiscard]] double done_at(const Dependency& d) const {
    return finish_[to_size(d.lag)][to_size(d.from)];
  }

  const IterationDag& dag_;
  std::vector<double> duration_;
  std::vector<double> start_;
  std::vector<double> step_;  // start in this iteration - start in the last
  std::vector<double> last_step_;
  std::array<std::vector<double>, 3> finish_;  // in this iteration, the last, and the one before
  std::vector<int> binding_;
  int iterations_ = 0;
};

}  // namespace

SteadyIteration steady_state(const IterationDag& dag, int most) {
  PACELINE_ASSERT(most >= 2, "a steady state takes at least two iterations");
  Unrolled unrolled(dag);
  for (int iteration = 0; iteration < most && !unrolled.is_steady(); ++iteration) {
    if (iteration > 0) unrolled.skip_ahead();
    unrolled.next();
  }
  return unrolled.result();
}

namespace {

// How long some communication stream is busy in a period: the union of what iterations that overlap
// keep busy.
Seconds communication_time(const IterationDag& dag, const SteadyIteration& steady, int stage) {
  std::vector<std::pair<Seconds, Seconds>> busy;  // in [0, period]
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    const Task& task = dag.tasks()[i];
    if (task.resource != Resource::communication || task.duration <= Seconds{0}) continue;
    if (task.kind == TaskKind::wait || task.stage != stage) continue;
    if (task.duration >= steady.period) return steady.period;
    const Seconds start{std::fmod(steady.start[i].value(), steady.period.value())};
    const Seconds finish = start + task.duration;
    busy.emplace_back(start, std::min(finish, steady.period));
    if (finish > steady.period) busy.emplace_back(Seconds{0}, finish - steady.period);
  }
  std::sort(busy.begin(), busy.end());
  Seconds sum;
  Seconds until;
  for (const auto& [start, finish] : busy) {
    sum += std::max(Seconds{0}, finish - std::max(start, until));
    until = std::max(until, finish);
  }
  return sum;
}

// The part of the time spent that a wait for this task is; null where it is what is left.
Seconds* gap_of(const Task& task, int stage, TimeSpent& spent) {
  if (is_input(task.kind)) return &spent.input_wait;
  if (task.kind == TaskKind::exchange) return &spent.exchange;
  const bool is_of_other = task.kind == TaskKind::send || task.stage != stage;
  return is_of_other && task.kind != TaskKind::update ? &spent.bubble : nullptr;
}

}  // namespace

int busiest_stage(const IterationDag& dag) {
  std::vector<Seconds> computed;
  for (const Task& task : dag.tasks()) {
    if (task.resource != Resource::compute && task.kind != TaskKind::exchange) continue;
    if (to_size(task.stage) >= computed.size()) computed.resize(to_size(task.stage) + 1);
    computed[to_size(task.stage)] += task.duration;
  }
  return static_cast<int>(std::max_element(computed.begin(), computed.end()) - computed.begin());
}

TimeSpent time_spent(const IterationDag& dag, const SteadyIteration& steady) {
  TimeSpent spent;
  const int stage = busiest_stage(dag);
  const auto computes = [&](const Task& task) {
    return task.resource == Resource::compute && task.stage == stage;
  };
  for (const Task& task : dag.tasks()) {
    if (!computes(task)) continue;
    spent.compute += task.duration;
    if (task.kind == TaskKind::update) spent.update += task.duration;
  }
  spent.communication = communication_time(dag, steady, stage);
  // Gaps of the compute stream that end because a batch arrived, ranks of the sample were done, or another stage
  // was; all others end with a bucket.
  const Seconds idle = std::max(Seconds{0}, steady.period - spent.compute);
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    if (!computes(dag.tasks()[i]) || steady.binding[i] < 0) continue;
    const Dependency& binding = dag.into()[to_size(steady.binding[i])];
    Seconds* gap = gap_of(dag.tasks()[to_size(binding.from)], stage, spent);
    if (gap == nullptr) continue;
    TimeSpent ignored;
    Seconds otherwise;  // when the task could have started without it
    Seconds exchanged;  // when ranks of a sample were done
    for (std::size_t e = dag.first_into()[i]; e < dag.first_into()[i + 1]; ++e) {
      const Dependency& d = dag.into()[e];
      const Seconds done =
          d.lag > 0 ? steady.previous_finish[to_size(d.from)] : steady.finish(dag, d.from);
      const Seconds* other = gap_of(dag.tasks()[to_size(d.from)], stage, ignored);
      if (other == &ignored.exchange) exchanged = std::max(exchanged, done);
      if (other == nullptr) otherwise = std::max(otherwise, done);
    }
    // The stage waits for its own exchange first, and for another stage only after that.
    if (gap == &spent.bubble && exchanged > otherwise) {
      spent.exchange += exchanged - otherwise;
      otherwise = exchanged;
    }
    *gap += std::max(Seconds{0}, steady.start[i] - otherwise);
  }
  spent.input_wait = std::min(spent.input_wait, idle);
  spent.exposed_communication = idle - spent.input_wait;
  // What is left of subtracting sums of hundreds of tasks is rounding.
  if (spent.exposed_communication < 1e-12 * steady.period) spent.exposed_communication = Seconds{0};
  spent.exchange = std::min(spent.exchange, spent.exposed_communication);
  spent.bubble = std::min(spent.bubble, spent.exposed_communication - spent.exchange);
  return spent;
}

CriticalPath critical_path(const IterationDag& dag, const SteadyIteration& steady) {
  CriticalPath path;
  if (!steady.converged) return path;
  // In the steady state, the binding dependencies of earlier iterations are the same ones, so that
  // the way back from the last update runs into a circle.
  std::vector<CriticalTask> way_back;
  std::vector<int> seen(dag.tasks().size(), -1);  // position in way_back
  CriticalTask at{last_task(dag, steady), 0};
  while (seen[to_size(at.task)] < 0) {
    seen[to_size(at.task)] = static_cast<int>(way_back.size());
    way_back.push_back(at);
    const int binding = steady.binding[to_size(at.task)];
    if (binding < 0) return path;
    const Dependency& d = dag.into()[to_size(binding)];
    at = {d.from, at.iteration - d.lag};
  }
  const int first = seen[to_size(at.task)];
  path.periods = way_back[to_size(first)].iteration - at.iteration;
  path.tasks.assign(way_back.rbegin(), way_back.rend() - first);
  return path;
}

}  // namespace paceline::simulator
