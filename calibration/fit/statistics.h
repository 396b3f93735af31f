// Statistics of samples, and what an interval is.
//
// The value of a calibrated figure is the median of its samples, or the line that was fitted to
// such medians. Its interval is a 90 % confidence interval of that value: were the measurement
// made many times, 90 % of the intervals would hold the median of all samples that the machine
// could give. An interval narrows as samples are added. It does not say how far a single sample
// may be from the median: that is a spread, from the least sample to the most, which widens as
// samples are added. Profiles hold intervals, and no spreads.
//
// The interval of a median lies between two order statistics of the sample, which assumes nothing
// of the distribution of samples but that they are independent (thompson). The two ranks are
// chosen by the binomial distribution, and the interval is interpolated between them and the next
// ones inside, so that its level is 90 % and not the next larger that whole ranks allow
// (hettmansperger). The interval of a fit has no such form, and is a bootstrap's (efron).
//
// experiments/lab/study/figures.py has the same definitions in Python;
// tests/golden/statistics.json holds the two against each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "models/base/figure.h"
#include "models/base/interval.h"

namespace paceline::calibration {

// Samples below which a figure is not known well enough to be called calibrated.
inline constexpr int least_samples = 3;

// The value in the middle; the mean of the two in the middle of an even number of values. Needs at
// least one value. O(n).
template <class T>
[[nodiscard]] T median(std::vector<T> values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

struct Interval {
  double low = 0;
  double high = 0;
};

// The 90 % confidence interval of the median of what the samples were drawn from. Needs at least
// one sample; of one, both ends are the sample, because one sample tells nothing of its error. Two to
// four samples do not reach 90 %: the distances of the least and the most to the median are then
// stretched as normal samples need it (by 6.31, 2.26 and 1.14). A stretch does not go below 0 if
// no sample does. O(n log n).
[[nodiscard]] Interval median_interval(std::vector<double> samples);

// The 90 % interval of a value that a bootstrap computed anew in `draws`: their 5 % and 95 %
// quantiles, widened to hold `stated` (efron, the percentile interval). Without draws both ends
// are `stated`. Sorts the draws.
[[nodiscard]] Interval bootstrap_interval(std::vector<double>& draws, double stated);

// The median of the samples and its interval, as a figure. Q is double, or a quantity of units.h
// that is made from one double. Needs at least one sample.
template <class Q>
[[nodiscard]] Figure<Q> median_figure(const std::vector<Q>& samples, Provenance provenance,
                                      std::string source) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const Q sample : samples) {
    if constexpr (std::is_same_v<Q, double>)
      values.push_back(sample);
    else
      values.push_back(sample.value());
  }
  const Interval interval = median_interval(values);
  return {Q{median(std::move(values))}, Q{interval.low}, Q{interval.high}, provenance,
          std::move(source)};
}

// The typical iteration of a run: the median of the mean times of every two iterations in a row.
// Ranks that wait for each other in turn have long and short iterations, so that the median of
// single ones would be of either kind. One iteration is typical of itself. Needs at least one.
template <class T>
[[nodiscard]] T typical_iteration(const std::vector<T>& iterations) {
  if (iterations.size() < 2) return iterations.front();
  std::vector<T> pairs;
  for (std::size_t i = 1; i < iterations.size(); ++i)
    pairs.push_back((iterations[i - 1] + iterations[i]) / 2);
  return median(std::move(pairs));
}

}  // namespace paceline::calibration
