// The options of the command that a query may have, with values that read no file and take no more time
// than a page's reader waits.
#pragma once

#include <map>
#include <string>

#include "simulator/question/question.h"

namespace paceline::serve {

// Throws InputError for an option that is not known here, for --model, --cluster and --profile that are
// no name of the catalogue, and for --placement and --spread that name a file.
[[nodiscard]] simulator::Question parse_options(const std::map<std::string, std::string>& values);

}  // namespace paceline::serve
