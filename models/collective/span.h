// A contiguous part of a bucket, in elements (T = std::int64_t) or in fractions of its size
// (T = double). The executor and the verifier read schedules in elements, the engines in
// fractions. All cut with part(), the one definition of what a chunk is.
#pragma once

#include <cstdint>
#include <type_traits>

namespace paceline::models {

template <class T>
struct Span {
  T begin{};
  T size{};

  [[nodiscard]] constexpr T end() const { return begin + size; }
  bool operator==(const Span&) const = default;
};

// Whether two spans have something in common. An empty one has where it is inside the other.
template <class T>
[[nodiscard]] constexpr bool overlap(Span<T> a, Span<T> b) {
  return a.begin < b.end() && b.begin < a.end();
}

// Part `index` of `of` nearly equal parts, 0 <= index < of. Whole elements are never cut: parts
// differ by at most one element, and some are empty where there are fewer elements than parts.
// Fractions are equal.
template <class T>
[[nodiscard]] constexpr Span<T> part(Span<T> span, std::int64_t index, std::int64_t of) {
  if constexpr (std::is_integral_v<T>) {
    const T low = span.size / of * index + span.size % of * index / of;
    const T high = span.size / of * (index + 1) + span.size % of * (index + 1) / of;
    return {span.begin + low, high - low};
  } else {
    const T size = span.size / static_cast<T>(of);
    return {span.begin + size * static_cast<T>(index), size};
  }
}

}  // namespace paceline::models
