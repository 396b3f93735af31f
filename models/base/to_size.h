// Ranks, layers and counts are signed integers here; the standard library indexes with unsigned ones.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace paceline {

// A count, an index or an enumerator, which is not negative, as the standard library takes it.
template <class Count>
requires std::integral<Count> || std::is_enum_v<Count>
[[nodiscard]] constexpr std::size_t to_size(Count count) {
  return static_cast<std::size_t>(count);
}

}  // namespace paceline
