// A training run as a value: phases one after the other, and what interrupts them. It says how
// long the run is, not on what it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/figure.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/phases/dataset.h"
#include "models/phases/length.h"

namespace paceline::models {

// Iterations that are alike. What is not there is as the job has it.
struct Phase {
  std::string name;
  InputPlace place = {};  // in the document that states it
  Length length;
  std::optional<int> batch;  // samples per rank
  std::optional<int> sequence;
  std::optional<int> accumulate;
  std::optional<Precision> precision;
  std::optional<PerSecond> throughput;  // that one rank computes alone in this phase
};

// All ranks go forward, and only forward, over `samples` samples that they share. It happens each
// time that the run has come another `every` further, counted from its first iteration.
struct Evaluation {
  std::int64_t samples = 0;
  Length every{1, Measure::epochs};
  std::optional<int> batch;  // samples per rank; else the phase's
};

// The run waits for `time` while it is written.
struct Checkpoint {
  Figure<Seconds> time;
  Length every{1, Measure::epochs};
  bool at_best =
      false;  // in place of `every`: at the interval that makes an interrupted run shortest
};

// Defects of devices, nodes, networks and programs interrupt the run, and it goes on from its last checkpoint. The
// time between them falls as the number of devices grows.
struct Failures {
  Figure<Seconds>
      between;  // time that devices train between two interruptions, summed over devices
  Figure<Seconds> recovery;  // from an interruption until ranks train again
};

struct TrainingRun {
  std::string name;                // empty where it has none
  std::optional<Dataset> dataset;  // there if any length is in epochs
  std::vector<Phase> phases;       // at least one
  // Before the first iteration: containers, processes, NCCL, reading indices, compiling.
  std::optional<Figure<Seconds>> start_up;
  std::optional<Evaluation> evaluation;
  std::optional<Checkpoint> checkpoint;
  std::optional<Failures> failures;
  int spares = 0;  // nodes that are paid, and wait to take the place of others
};

}  // namespace paceline::models
