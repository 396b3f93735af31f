// Tests: tests/simulator/straggler_test.cc.
//
// IMPLEMENTATION. Communication tasks have one time for all ranks. On the compute stream, times of
// a rank are kept as a line: a section of tasks begins where one of them waits for something else
// than the task before, and inside it a task ends on rank r at
//   section_start[r] + factor[r] x offset,
// offset being the sum of the durations so far. Only where a communication task waits for a
// compute task are ranks compared, and only where another task of the rank does (the next
// iteration, the input pipeline) are its times kept by rank.
//
// Times count from the last update, so that a long run loses no digits.
#include "simulator/straggler/monte_carlo.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/straggler/compute_factors.h"

namespace paceline::simulator {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

bool is_of_rank(const Task& task) {
  return task.resource != Resource::communication;
}

// Backward passes, then communication, then the update on the compute stream: an order in which
// the iteration's last bucket is on its way before a late rank goes on.
int phase(const Task& task) {
  if (!is_of_rank(task)) return 1;
  return task.kind == TaskKind::update ? 2 : 0;
}

class RanksUnrolled {
 public:
  RanksUnrolled(const IterationDag& dag, int ranks, int backup)
      : dag_(dag),
        ranks_(to_size(ranks)),
        backup_(to_size(backup)),
        steps_(dag.tasks().size()),
        order_(dag.order()),
        section_start_(ranks_) {
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
      return phase(dag.tasks()[to_size(a)]) < phase(dag.tasks()[to_size(b)]);
    });
    find_waits();
    find_sections();
    for (auto& values : common_) values.assign(steps_.size(), 0.0);
    for (auto& values : kept_)
      values.assign(to_size(kept_count_), std::vector<double>(ranks_, 0.0));
  }

  // All ranks are where `steady`, of the same tasks, says.
  void begin(const IterationDag& timed, const SteadyIteration& steady) {
    for (int task = 0; task < static_cast<int>(steps_.size()); ++task) {
      for (int lag = 0; lag < 3; ++lag) {
        const double finish = (steady.finish(timed, task) - lag * steady.period).value();
        common_[to_size(lag)][to_size(task)] = finish;
        const int kept = steps_[to_size(task)].kept;
        if (kept >= 0) std::fill_n(kept_[to_size(lag)][to_size(kept)].begin(), ranks_, finish);
      }
    }
    count_from(last_update());
  }

  // Runs one iteration; how long it took.
  Seconds next(std::span<const double> factors) {
    std::rotate(common_.begin(), common_.end() - 1, common_.end());
    std::rotate(kept_.begin(), kept_.end() - 1, kept_.end());
    factors_ = factors;
    std::fill(section_start_.begin(), section_start_.end(), never);
    offset_ = 0;
    double last_begin = never;  // of a bucket's way
    int before = 0;
    for (const int task : order_) {
      const int now = phase(dag_.tasks()[to_size(task)]);
      if (now == 2 && before < 2 && backup_ > 0) drop_late(last_begin);
      before = now;
      if (now == 1) {
        last_begin = std::max(last_begin, run_common(task));
      } else if (dag_.tasks()[to_size(task)].resource == Resource::compute) {
        run_compute(task);
      } else {
        run_input(task);
      }
    }
    if (before < 2 && backup_ > 0) drop_late(last_begin);
    const double duration = last_update();
    count_from(duration);
    return Seconds{duration};
  }

 private:
  struct Step {
    double duration = 0;
    // All that a task waits for; on the compute stream, without the task before.
    std::vector<Dependency> waits;
    bool opens_section = false;
    bool is_compared = false;  // a communication task waits for it, or it ends the iteration
    double offset = 0;         // of its end, in its section
    int kept = -1;             // index into kept_, if another task of its rank needs its times
    // Offsets of the first and the last task of a section that are compared, kept at the task that
    // opens it. The first is greater than the last where no task is.
    double first_compared = std::numeric_limits<double>::infinity();
    double last_compared = never;
  };

  void find_waits() {
    for (std::size_t t = 0; t < steps_.size(); ++t)
      steps_[t].duration = dag_.tasks()[t].duration.value();
    int before = -1;
    std::vector<int> position(steps_.size());
    for (std::size_t i = 0; i < order_.size(); ++i)
      position[to_size(order_[i])] = static_cast<int>(i);
    for (const int task : order_) {
      const bool is_compute = dag_.tasks()[to_size(task)].resource == Resource::compute;
      Step& step = steps_[to_size(task)];
      for (std::size_t i = dag_.first_into()[to_size(task)];
           i < dag_.first_into()[to_size(task) + 1]; ++i) {
        const Dependency& d = dag_.into()[i];
        PACELINE_ASSERT(d.lag > 0 || position[to_size(d.from)] < position[to_size(task)],
                        "phases keep the order of an iteration");
        if (is_compute && d.lag == 0 && d.from == before) continue;
        step.waits.push_back(d);
        if (!is_of_rank(dag_.tasks()[to_size(d.from)])) continue;
        Step& from = steps_[to_size(d.from)];
        if (is_of_rank(dag_.tasks()[to_size(task)])) {
          if (from.kept < 0) from.kept = kept_count_++;
        } else {
          PACELINE_ASSERT(d.lag == 0, "communication waits for gradients of its own iteration");
          from.is_compared = true;
        }
      }
      if (!is_compute) continue;
      step.opens_section = before < 0 || !step.waits.empty();
      if (dag_.tasks()[to_size(task)].kind == TaskKind::update) step.is_compared = true;
      before = task;
    }
  }

  void find_sections() {
    double offset = 0;
    Step* opening = nullptr;
    for (const int task : order_) {
      if (dag_.tasks()[to_size(task)].resource != Resource::compute) continue;
      Step& step = steps_[to_size(task)];
      if (step.opens_section) {
        opening = &step;
        offset = 0;
      }
      offset += step.duration;
      step.offset = offset;
      if (!step.is_compared) continue;
      opening->first_compared = std::min(opening->first_compared, offset);
      opening->last_compared = std::max(opening->last_compared, offset);
    }
  }

  // Raises `start` to the end of what a task waits for.
  void wait(const Step& step, std::vector<double>& start) const {
    double common = never;
    for (const Dependency& d : step.waits) {
      if (!is_of_rank(dag_.tasks()[to_size(d.from)])) {
        common = std::max(common, common_[to_size(d.lag)][to_size(d.from)]);
        continue;
      }
      const std::vector<double>& done =
          kept_[to_size(d.lag)][to_size(steps_[to_size(d.from)].kept)];
      for (std::size_t r = 0; r < ranks_; ++r) start[r] = std::max(start[r], done[r]);
    }
    for (double& value : start) value = std::max(value, common);
  }

  void run_input(int task) {
    const Step& step = steps_[to_size(task)];
    input_start_.assign(ranks_, never);
    wait(step, input_start_);
    if (step.kept < 0) return;
    std::vector<double>& done = kept_[0][to_size(step.kept)];
    for (std::size_t r = 0; r < ranks_; ++r) done[r] = input_start_[r] + step.duration;
  }

  // Returns when it begins, if it is the first to have gradients in its hands.
  double run_common(int task) {
    double begin = never;
    bool takes_gradients = false;
    for (const Dependency& d : steps_[to_size(task)].waits) {
      begin = std::max(begin, common_[to_size(d.lag)][to_size(d.from)]);
      takes_gradients = takes_gradients || is_of_rank(dag_.tasks()[to_size(d.from)]);
    }
    common_[0][to_size(task)] = begin + steps_[to_size(task)].duration;
    return takes_gradients ? begin : never;
  }

  void run_compute(int task) {
    const Step& step = steps_[to_size(task)];
    if (step.opens_section) {
      end_section();
      wait(step, section_start_);
      last_compared_ = step.last_compared;
      if (step.first_compared <= step.last_compared)
        find_candidates(step.first_compared, step.last_compared);
    }
    offset_ = step.offset;
    if (step.is_compared) common_[0][to_size(task)] = nth_finish(step.offset);
    if (step.kept < 0) return;
    last_kept_ = step.kept;
    std::vector<double>& done = kept_[0][to_size(step.kept)];
    for (std::size_t r = 0; r < ranks_; ++r) done[r] = finish(r, step.offset);
  }

  [[nodiscard]] double finish(std::size_t rank, double offset) const {
    return section_start_[rank] + factors_[rank] * offset;
  }

  void end_section() {
    for (std::size_t r = 0; r < ranks_; ++r) section_start_[r] = finish(r, offset_);
    offset_ = 0;
  }

  // The ranks that can be among the last b + 1 at some offset from `first` to `last`. Let S be b +
  // 1 ranks: who ends before all of S at both offsets does so in between.
  void find_candidates(double first, double last) {
    sums_.resize(ranks_);
    for (std::size_t r = 0; r < ranks_; ++r) sums_[r] = finish(r, first) + finish(r, last);
    scratch_ = sums_;
    const double least_sum = order_statistic(scratch_, static_cast<int>(ranks_ - backup_));
    double least_first = std::numeric_limits<double>::infinity();
    double least_last = least_first;
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (sums_[r] < least_sum) continue;
      least_first = std::min(least_first, finish(r, first));
      least_last = std::min(least_last, finish(r, last));
    }
    candidates_.clear();
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (finish(r, first) >= least_first || finish(r, last) >= least_last)
        candidates_.push_back(r);
    }
  }

  // The time at which the first p - b ranks are there.
  double nth_finish(double offset) {
    scratch_.clear();
    for (const std::size_t rank : candidates_) scratch_.push_back(finish(rank, offset));
    return order_statistic(scratch_, static_cast<int>(scratch_.size() - backup_));
  }

  // Ranks whose last gradient was not there when the last bucket went.
  void drop_late(double last_begin) {
    if (last_compared_ < 0 || last_begin == never) return;
    for (std::size_t r = 0; r < ranks_; ++r) {
      const bool is_late = finish(r, last_compared_) > last_begin;
      section_start_[r] = is_late ? last_begin : finish(r, offset_);
    }
    offset_ = 0;
    if (last_kept_ >= 0 && dropped_are_kept()) kept_[0][to_size(last_kept_)] = section_start_;
  }

  // Is the end of backward what the next iteration waits for?
  [[nodiscard]] bool dropped_are_kept() const {
    return std::none_of(dag_.tasks().begin(), dag_.tasks().end(),
                        [](const Task& task) { return phase(task) == 2; });
  }

  [[nodiscard]] double last_update() const {
    double last = never;
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      if (dag_.tasks()[t].kind == TaskKind::update) last = std::max(last, common_[0][t]);
    }
    return last;
  }

  void count_from(double origin) {
    for (auto& values : common_) {
      for (double& value : values) value -= origin;
    }
    for (auto& tasks : kept_) {
      for (auto& values : tasks) {
        for (double& value : values) value -= origin;
      }
    }
  }

  const IterationDag& dag_;
  std::size_t ranks_;
  std::size_t backup_;
  std::vector<Step> steps_;  // of each task
  std::vector<int> order_;
  int kept_count_ = 0;

  // Ends in this iteration, the last, and the one before. Of a compute task that is compared: on
  // the first p - b ranks.
  std::array<std::vector<double>, 3> common_;
  std::array<std::vector<std::vector<double>>, 3> kept_;  // [lag][kept][rank]

  std::span<const double> factors_;
  std::vector<double> section_start_;
  double offset_ = 0;
  double last_compared_ = never;
  int last_kept_ = -1;  // of the compute stream, in this iteration
  std::vector<std::size_t> candidates_;
  std::vector<double> sums_;
  std::vector<double> scratch_;
  std::vector<double> input_start_;
};

// The mean over a few iterations of the n-th order statistic.
double typical_factor(ComputeFactors factors, int wanted) {
  constexpr int drawn = 16;
  double sum = 0;
  for (int i = 0; i < drawn; ++i) {
    const std::span<const double> drawn_factors = factors.next();
    std::vector<double> values(drawn_factors.begin(), drawn_factors.end());
    sum += order_statistic(values, wanted);
  }
  return sum / drawn;
}

IterationDag with_compute_scaled(const IterationDag& dag, double factor) {
  std::vector<Seconds> durations;
  for (const Task& task : dag.tasks())
    durations.push_back(task.resource == Resource::compute ? factor * task.duration
                                                           : task.duration);
  IterationDag scaled = dag;
  scaled.set_durations(durations);
  return scaled;
}

}  // namespace

int left_out_iterations(int iterations) {
  return iterations / 10 + 20;
}

std::vector<Seconds> iteration_times(const IterationDag& dag, int ranks,
                                     const MonteCarloRequest& request) {
  const int backup = request.stragglers.backup;
  PACELINE_ASSERT(request.iterations >= 2, "a standard error takes two iterations");
  PACELINE_ASSERT(backup >= 0 && backup < ranks, "an all-reduce waits for at least one rank");
  ComputeFactors factors(request.stragglers, ranks, request.seed);
  const IterationDag typical = with_compute_scaled(dag, typical_factor(factors, ranks - backup));
  RanksUnrolled unrolled(dag, ranks, backup);
  const SteadyIteration steady = steady_state(typical);
  if (steady.converged) unrolled.begin(typical, steady);

  const int left_out = left_out_iterations(request.iterations);
  std::vector<Seconds> times;
  times.reserve(to_size(request.iterations));
  for (int i = 0; i < left_out + request.iterations; ++i) {
    const Seconds time = unrolled.next(factors.next());
    if (i >= left_out) times.push_back(time);
  }
  return times;
}

}  // namespace paceline::simulator
