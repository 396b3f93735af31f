// The options of the command that a query may have, with values that read no file and take no more time
// than a page's reader waits.
#pragma once

#include <map>
#include <string>

#include "cli/job/job.h"
#include "cli/serve/choices.h"
#include "simulator/question/question.h"

namespace paceline::serve {

// Throws InputError for an option that is not known here, for --model, --cluster and --profile that name
// neither an entry of the catalogue nor one of `own`, and for --placement and --spread that name a file.
[[nodiscard]] simulator::Question parse_options(const std::map<std::string, std::string>& values,
                                                const OwnFiles& own);

// The networks and clusters of `own` that the question names.
[[nodiscard]] job::GivenValues given_of(const simulator::Question& question, const OwnFiles& own);

}  // namespace paceline::serve
