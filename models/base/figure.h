// A number that a user sees: value, interval, provenance and source.
//
// Arithmetic respects provenance: whatever is computed is `predicted`, also from measured
// figures, and the interval of the result spans the results at the ends of the inputs'
// intervals (interval arithmetic; exact for functions that are monotone in each input).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace paceline {

enum class Provenance {
  measured,    // by us, on the machine that the figure is about
  calibrated,  // fitted to measured or published figures
  predicted,   // computed
  datasheet,   // the vendor's specification, or a user's statement in a file
  published,   // measured by others and printed; the source says where
  assumed,     // nobody's measurement: a stated guess with a wide interval
};

[[nodiscard]] std::string_view name(Provenance provenance);
// Throws InputError that lists the six names.
[[nodiscard]] Provenance provenance_from_name(std::string_view text);

template <class Q>
struct Figure {
  Q value{};
  Q low{};  // low <= value <= high; both equal to value where nothing is known of the spread
  Q high{};
  Provenance provenance = Provenance::datasheet;
  std::string source;  // where it comes from, for people

  [[nodiscard]] static Figure exact(Q value, Provenance provenance, std::string source) {
    return Figure{value, value, value, provenance, std::move(source)};
  }
  bool operator==(const Figure&) const = default;
};

// f(a.value, b.value) as a predicted figure; its interval spans f over the corners.
template <class F, class A, class B>
[[nodiscard]] auto predicted(F f, const Figure<A>& a, const Figure<B>& b, std::string source) {
  using R = decltype(f(a.value, b.value));
  const auto corners = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return Figure<R>{f(a.value, b.value), std::min(corners), std::max(corners), Provenance::predicted,
                   std::move(source)};
}

}  // namespace paceline
