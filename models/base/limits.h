// The ranges in which stated figures must lie. They are wider than any machine needs, and narrow
// enough that no product or quotient overflows. The readers of clusters and profiles check them.
#pragma once

#include "models/base/expense_units.h"
#include "models/base/units.h"

namespace paceline {

template <class Q>
struct Limits;

template <>
struct Limits<Seconds> {
  static constexpr Seconds least{0}, most{1e3};
};
template <>
struct Limits<Bytes> {
  static constexpr Bytes least{1}, most{1e15};
};
template <>
struct Limits<BytesPerSecond> {
  static constexpr BytesPerSecond least{1}, most{1e15};
};
template <>
struct Limits<SecondsPerByte> {
  static constexpr SecondsPerByte least{0}, most{1};
};
template <>
struct Limits<FlopsPerSecond> {
  static constexpr FlopsPerSecond least{1}, most{1e18};
};
template <>
struct Limits<PerSecond> {
  static constexpr PerSecond least{1e-3}, most{1e9};
};
template <>
struct Limits<Watts> {
  static constexpr Watts least{1e-3}, most{1e9};
};
template <>
struct Limits<UsdPerHour> {
  static constexpr UsdPerHour least{0}, most{1e9};
};
// For ratios of times.
template <>
struct Limits<double> {
  static constexpr double least{1e-3}, most{1e3};
};

template <class Q>
[[nodiscard]] constexpr bool within_limits(Q quantity) {
  return quantity >= Limits<Q>::least && quantity <= Limits<Q>::most;
}

}  // namespace paceline
