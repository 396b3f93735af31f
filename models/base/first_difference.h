// Where two texts of lines differ.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace paceline {

// The first line in which two texts differ: "strategy: ring" and "strategy: fused-ring". Two empty
// texts where they are equal.
[[nodiscard]] std::pair<std::string, std::string> first_difference(std::string_view a,
                                                                   std::string_view b);

}  // namespace paceline
