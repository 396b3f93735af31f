// Whether a cluster is as fast as it should be for a job, and which part of it is not.
//
// Each measurement stands beside its expectation, which is a prediction with its 90 % interval: iterations from a
// training log or a trace, the parts of an iteration from a trace, collectives by size from nccl-tests, and what
// a topology says of links. A profile that was calibrated here has messages by size and layers; an iteration that is
// predicted with it then stands for a measured one.
//
// The gap is the measured iteration less the expected one. How much of it a part explains is measured where a
// trace has the part: its time less its expectation. Of collectives it is predicted: the iteration with links at
// the pace at which these were measured, less the expected one. Of a topology it is predicted likewise. Parts
// may overlap, so that what they explain need not add up.
//
// A fault (faults.h) is named where its prediction is near to what was measured, and nearer than the expectation
// by far (near, clearly_nearer in check.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/check/checked.h"
#include "calibration/check/evidence.h"
#include "models/base/document.h"
#include "simulator/prediction/prediction.h"

namespace paceline::calibration {

// A part that explains some of the gap.
struct Explanation {
  std::string part;  // "exposed communication"
  std::string file;
  Seconds time;     // of an iteration
  std::string how;  // "measured less expected"
};

// A fault that the measurements look like.
struct Likely {
  std::string what;
  std::string look;
  std::string because;  // "it would make an iteration 1.2 s (1.0 to 1.4 s)"
  double distance = 0;  // between what was measured and it, a logarithm
};

struct Check {
  std::optional<simulator::StrategyPrediction> expected;  // of a job
  std::optional<CheckedPart> iteration;
  std::vector<CheckedPart> parts;  // of iterations that were traced
  std::vector<CheckedCollective> collectives;
  std::vector<std::string> differences;   // of machines: "mlx5_0 is SYS away from its GPU"
  std::vector<Explanation> explanations;  // the largest first
  std::vector<Likely> likely;             // the nearest first
  std::vector<std::string> advice;        // what to measure next, or to look at
  Seconds gap{0};                         // of the iteration; negative where it is faster
  // The share by which what is judged may take longer than expected; without it, the interval says so.
  std::optional<double> allowed;

  // The share of the gap that the first explanation explains; 0 where nothing does.
  [[nodiscard]] double explained() const;
  // The verdict is about this: the iteration, or else the part or size that is farthest behind. It is null where
  // only machines were seen.
  [[nodiscard]] const CheckedPart* judged() const;
  // Whether what is judged takes longer than allowed, or machines differ where nothing is judged.
  [[nodiscard]] bool is_slow() const;
  [[nodiscard]] std::string verdict() const;  // one line
};

// Throws InputError where the evidence is not of the expected cluster or job (ranks, the global batch), or a
// cluster without NCCL is to be checked by collectives.
[[nodiscard]] Check check(const Expectation& expectation, const Evidence& evidence);

[[nodiscard]] const Document<Check>& check_document();

}  // namespace paceline::calibration
