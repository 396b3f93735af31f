// Tests: tests/simulator/heterogeneous_ranks_test.cc.
#include "simulator/iteration/heterogeneous_ranks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

constexpr double rounding = 1e-12;

class Ranks {
 public:
  Ranks(const IterationDag& dag, std::span<const std::vector<Seconds>> durations)
      : dag_(dag), durations_(durations), start_(dag.tasks().size() * durations.size(), 0.0) {
    for (auto& finish : finish_) finish.assign(start_.size(), 0.0);
  }

  // Runs one iteration. Returns the least and the longest step of a task.
  std::pair<double, double> next() {
    std::rotate(finish_.begin(), finish_.end() - 1, finish_.end());
    double least = std::numeric_limits<double>::infinity();
    double longest = 0;
    for (const int task : dag_.order()) {
      const bool is_common = dag_.tasks()[to_size(task)].resource == Resource::communication;
      double all = 0;
      for (std::size_t r = 0; r < durations_.size(); ++r) {
        const double start = begin(task, r);
        all = std::max(all, start);
        if (!is_common) set(task, r, start, durations_[r][to_size(task)].value(), least, longest);
      }
      for (std::size_t r = 0; is_common && r < durations_.size(); ++r)
        set(task, r, all, dag_.tasks()[to_size(task)].duration.value(), least, longest);
    }
    ++iterations_;
    return {least, longest};
  }

 private:
  [[nodiscard]] std::size_t place(int task, std::size_t rank) const {
    return to_size(task) * durations_.size() + rank;
  }

  [[nodiscard]] double begin(int task, std::size_t rank) const {
    double start = 0;
    for (std::size_t i = dag_.first_into()[to_size(task)]; i < dag_.first_into()[to_size(task) + 1];
         ++i) {
      const Dependency& d = dag_.into()[i];
      if (d.lag > iterations_) continue;
      start = std::max(start, finish_[to_size(d.lag)][place(d.from, rank)]);
    }
    return start;
  }

  void set(int task, std::size_t rank, double start, double duration, double& least,
           double& longest) {
    const std::size_t here = place(task, rank);
    const double step = start - start_[here];
    least = std::min(least, step);
    longest = std::max(longest, step);
    start_[here] = start;
    finish_[0][here] = start + duration;
  }

  const IterationDag& dag_;
  std::span<const std::vector<Seconds>> durations_;
  std::vector<double> start_;                  // of each task, of each rank
  std::array<std::vector<double>, 3> finish_;  // in this iteration, the last, and the one before
  int iterations_ = 0;
};

}  // namespace

Seconds period_of_ranks(const IterationDag& dag, std::span<const std::vector<Seconds>> durations,
                        int most) {
  PACELINE_ASSERT(!durations.empty(), "a job has a rank");
  PACELINE_ASSERT(most >= 2, "a steady state takes at least two iterations");
  for (const std::vector<Seconds>& rank : durations)
    PACELINE_ASSERT(rank.size() == dag.tasks().size(), "every task has its duration");
  Ranks ranks(dag, durations);
  (void)ranks.next();
  double longest = 0;
  for (int iteration = 1; iteration < most; ++iteration) {
    double least = 0;
    std::tie(least, longest) = ranks.next();
    if (iteration > 1 && longest - least <= rounding * longest) break;
  }
  return Seconds{longest};
}

}  // namespace paceline::simulator
