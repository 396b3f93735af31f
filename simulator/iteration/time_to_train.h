// How long a training run takes, and what it uses up, from the times of its iterations.
//
// A run is start-up, phases, evaluations and checkpoints one after the other, and interruptions cost more. Training
// counts samples: a phase of this many samples takes samples / (samples of an iteration) iterations, which may be a
// fraction. The time of a run is then proportional to its epochs, whatever is done with the last samples of an
// epoch. Evaluations and checkpoints happen a whole number of times.
//
// The intervals of phases come from the same unknowns (a slow link is slow in all of them), so their
// ends add. What a run uses up is a product of independent figures: the squares of the logarithms of
// their errors add.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/base/expense_units.h"
#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "models/phases/phases.h"

namespace paceline::simulator {

// The time of samples at a throughput.
[[nodiscard]] inline Seconds training_time(double samples, PerSecond throughput) {
  return samples / throughput;
}
// The throughput that trains samples in a time.
[[nodiscard]] inline PerSecond training_throughput(double samples, Seconds time) {
  return samples / time;
}

// What one iteration of a phase is.
struct PhaseIteration {
  Figure<Seconds> iteration;
  double samples = 1;  // of all ranks, in an iteration
  Seconds evaluation;  // of all the run's samples of an evaluation, once
};

struct PhaseTime {
  double samples = 0;      // of the phase
  double iterations = 0;   // may be a fraction
  double evaluations = 0;  // whole numbers, which may be beyond those of an integer
  double checkpoints = 0;
  Figure<Seconds> training;  // without what follows
  Figure<Seconds> evaluation;
  Figure<Seconds> checkpoint;
};

// The cost of interruptions of a run (goodput.h).
struct Interrupted {
  Figure<Seconds> lost;  // work that is done again, and recovery
  double interruptions = 0;
  Seconds between;           // mean time between two of the job
  Seconds interval;          // of work between two checkpoints
  Seconds median, p90, p99;  // of the whole run's time, over simulated runs
};

struct TimeToTrain {
  std::vector<PhaseTime> phases;  // as the run's
  Figure<Seconds> training;       // of all phases, as what follows
  Figure<Seconds> evaluation;
  Figure<Seconds> checkpoint;
  Figure<Seconds> start_up;  // 0 where the run says nothing of it
  std::optional<Interrupted> interrupted;
  Figure<Seconds> total;
  double iterations = 0;
  double samples = 0;
};

// `iterations` are those of the run's phases, in their order, on this many devices. Throws InputError where
// interruptions come so often that the run gets nowhere.
[[nodiscard]] TimeToTrain time_to_train(const models::TrainingRun& run,
                                        std::span<const PhaseIteration> iterations, int ranks);

// How all ranks share the samples of an evaluation: in passes of equal batches, as large as `batch`
// or as small as one pass takes.
struct EvaluationShare {
  std::int64_t passes = 1;
  int batch = 1;  // per rank
};
[[nodiscard]] EvaluationShare evaluation_share(std::int64_t samples, int ranks, int batch);

// What a run uses up.
struct Expenses {
  int nodes = 1;                // on which any rank is, and which are paid whole
  Figure<double> device_hours;  // of the ranks' devices
  std::optional<Figure<Usd>> cost;
  std::optional<Figure<KilowattHours>> energy;
};

// The nodes on which the first `ranks` ranks of a job are.
[[nodiscard]] int nodes_of(const models::Cluster& cluster, int ranks);

// What these ranks' devices, and their share of what the nodes draw beside them, draw in training with
// the site's losses; or these nodes, where the power of a node is known. Nothing where neither that
// nor a rated power is.
[[nodiscard]] std::optional<Figure<Watts>> power_of(const models::Cluster& cluster, int ranks);

// `spares` nodes are paid beside those.
[[nodiscard]] Expenses expenses(const models::Cluster& cluster, int ranks,
                                const Figure<Seconds>& time, int spares = 0);

}  // namespace paceline::simulator
