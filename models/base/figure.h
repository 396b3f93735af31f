// A number that a user sees: value, interval, provenance and source.
//
// Arithmetic respects provenance: whatever is computed is `predicted`, also from measured
// figures. The interval of a result spans the results at the ends of the inputs' intervals. This
// interval arithmetic is exact for functions that are monotone in each input.
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
  Q low{};  // low <= value <= high; both equal `value` where the spread is not known
  Q high{};
  Provenance provenance = Provenance::datasheet;
  std::string source;  // where the value comes from, for people to read

  [[nodiscard]] static Figure exact(Q value, Provenance provenance, std::string source) {
    return Figure{value, value, value, provenance, std::move(source)};
  }
  bool operator==(const Figure&) const = default;
};

// The predicted figure f(a, b). Its interval spans f at the four corners of the inputs' intervals.
template <class F, class A, class B>
[[nodiscard]] auto predicted(F f, const Figure<A>& a, const Figure<B>& b, std::string source) {
  using R = decltype(f(a.value, b.value));
  const auto corners = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return Figure<R>{f(a.value, b.value), std::min(corners), std::max(corners), Provenance::predicted,
                   std::move(source)};
}

}  // namespace paceline
