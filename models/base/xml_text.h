// Text within XML.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Text fit for an XML attribute in double quotes or an element, and for a line of a comment:
// control characters become spaces.
[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace paceline
