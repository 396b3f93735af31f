// Escapes for text within XML.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// The text with XML's reserved characters escaped: fit for an element, for an attribute in double
// quotes and for a line of a comment. Control characters become spaces,
// and bytes that are no UTF-8 question marks.
[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace paceline
