// What predictions take from published rows beyond the calibration of their own series: how far they
// are off where nothing explains it.
//
// The logarithm of predicted over published speed has the deviation
//
//   sd^2 = known^2 + base^2 + doubling^2 log2(ranks / calibrated ranks) + exposed^2 share^2
//
// where `known` is what figures and effects make of the interval, and share the exposed
// communication over the iteration. The three widths are those of models/cluster/effects.h; they move
// no prediction. Since some rows are far off, errors are taken as Student's t with 3 degrees of
// freedom.
//
// Three fits leave out one source at a time, and differ in what they are of. This one is of predicted
// rows of training, whose sampled intervals only `reproduce` has, and is part of it. The other two are
// scripts over the program's commands: experiments/roofline.py of rows that calibrate, predicted
// without their calibration, by quantiles; experiments/unexplained_all_reduces.py of single
// all-reduces, by the likelihood of this one, with widths by size in place of those by ranks. In all
// of them a row weighs the inverse root of its source's rows.
#pragma once

#include <span>
#include <string>

#include "experiments/published/result.h"
#include "models/cluster/cluster.h"

namespace paceline::experiments {

// Standard deviations of a normal distribution whose middle 90 % is that of the fitted one.
struct Unexplained {
  double base = 0;
  double doubling = 0;  // for each doubling of ranks; squares add
  double exposed = 0;   // for each unit of exposed communication over the iteration

  bool operator==(const Unexplained&) const = default;
};

// What is unexplained in predicted rows of training, whose intervals were made without it
// (Unexplained{}), by maximum likelihood over a grid. A row weighs the inverse root of the number of
// rows of its source. Unexplained{} where there are no rows.
[[nodiscard]] Unexplained fitted_from(std::span<const Reproduction* const> sources);

// "4.3 %, 4.3 % for each doubling of ranks, 100 % of exposed communication".
[[nodiscard]] std::string to_text(const Unexplained& widths);

// The cluster, where the widths take the place of those of its effects.
void set_unexplained(models::Cluster& cluster, const Unexplained& widths);

}  // namespace paceline::experiments
