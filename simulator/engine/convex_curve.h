// A convex function that costs something to evaluate, evaluated as seldom as its convexity allows.
//
// In max-plus arithmetic the time of a schedule is a maximum over sums of constants and of multiples
// of the bucket's size that are not negative: the step engine's time is convex and piecewise linear
// in the size. Between two known points such a function is at most their chord, and at least each of
// the chords beyond them, prolonged. Where those bounds meet, the value is known.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>

namespace paceline::simulator {

class ConvexCurve {
 public:
  // f(x), to a relative error of at most `accuracy`; f must be convex, the same in each call, and
  // positive. Evaluates f only where the known points leave more room than that.
  template <class F>
  double at(double x, F&& f) {
    const auto next = points_.lower_bound(x);
    if (next != points_.end() && next->first == x) return next->second;
    if (points_.size() >= 3 && next != points_.begin() && next != points_.end()) {
      const double most = line(*std::prev(next), *next, x);
      if (most - least(next, x) <= accuracy * most) return most;
    }
    return points_.emplace(x, f(x)).first->second;
  }

  // Points at which f was evaluated.
  [[nodiscard]] std::size_t evaluations() const { return points_.size(); }

  static constexpr double accuracy = 1e-9;

 private:
  using Points = std::map<double, double>;

  static double line(const Points::value_type& a, const Points::value_type& b, double x) {
    return a.second + (b.second - a.second) * ((x - a.first) / (b.first - a.first));
  }
  // The greatest lower bound that the chords left of x and right of it give.
  [[nodiscard]] double least(Points::const_iterator next, double x) const {
    double bound = 0;
    const auto before = std::prev(next);
    if (before != points_.begin()) bound = std::max(bound, line(*std::prev(before), *before, x));
    const auto after = std::next(next);
    if (after != points_.end()) bound = std::max(bound, line(*next, *after, x));
    return bound;
  }

  Points points_;
};

}  // namespace paceline::simulator
