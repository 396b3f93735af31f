// The query of an address, "ranks=1024&theta=4+MiB", as names and values.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace paceline::serve {

// Values with percent signs and '+' decoded, by name. Throws InputError for a part without '=', a name
// that is there twice, an empty value, a percent sign without two hexadecimal digits, and control
// characters.
[[nodiscard]] std::map<std::string, std::string> parse_query(std::string_view query);

}  // namespace paceline::serve
