// A tuned plan as people read it.
#pragma once

#include <string>

#include "cli/job/robust_tuning.h"
#include "cli/job/tuning.h"

namespace paceline::cli {

// What `paceline tune` prints: what was found, a row for each bucket in at most `width` columns,
// without those in the middle of many unless `width` is unlimited_width, with `why` what each bucket
// would lose by every change that was tried, the robust plan where there is one, and the strategies:
// the `top` fastest, or where that is 0 all.
// `robust` may be null.
[[nodiscard]] std::string to_text(const job::Tuning& tuning, const job::RobustTuning* robust,
                                  bool why, int width, std::size_t top = 0);

// The tables of buckets and of strategies alone.
[[nodiscard]] std::string to_markdown(const job::Tuning& tuning, std::size_t top = 0);

}  // namespace paceline::cli
