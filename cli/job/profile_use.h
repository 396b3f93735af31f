// Which parts of a profile a job has no use for. A profile is taken as far as it fits: what was
// measured on another network, batch or precision is passed over. A typing error there would go
// unnoticed, so each such part is a warning.
#pragma once

#include <string>
#include <vector>

#include "cli/job/job.h"

namespace paceline::job {

// One line for each part of the job's profile that a prediction of `network` does not use, or uses
// for another cluster or device than it was made for. Entries for other networks of the zoo, other
// precisions and other batch sizes are no waste where another entry of their kind fits. Empty where
// there is no profile.
[[nodiscard]] std::vector<std::string> profile_warnings(const Job& job,
                                                        const models::NetworkWork& network);

}  // namespace paceline::job
