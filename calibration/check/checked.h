// Measurements, each beside its expectation.
#pragma once

#include <string>
#include <vector>

#include "calibration/compare/verdict.h"
#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/collective/catalogue.h"

namespace paceline::calibration {

struct CheckedPart {
  std::string part;  // "iteration", "computation", "all-reduce of 64 MiB"
  std::string file;
  Figure<Seconds> expected;
  Seconds measured;
  Seconds low;  // 90 % of what was measured lies between these
  Seconds high;
  Verdict verdict = Verdict::inside;

  [[nodiscard]] double ratio() const { return measured / expected.value; }
};

// All sizes of one file.
struct CheckedCollective {
  std::string file;
  std::string what;
  models::Collective collective = models::Collective::all_reduce;
  int ranks = 2;
  std::vector<CheckedPart> sizes = {};
  // With the bandwidth of links times this, the largest size is expected to take what it took.
  double bandwidth = 1;

  [[nodiscard]] bool is_slow() const;  // whether any size is slower than its interval
};

}  // namespace paceline::calibration
