// A tuned plan as people read it.
#pragma once

#include <string>

#include "cli/job/robust_tuning.h"
#include "cli/job/tuning.h"

namespace paceline::cli {

// Returns the text that `paceline tune` prints. It says what was found, and has a row of at most
// `width` columns for each bucket, without the middle ones of many unless `width` is unlimited_width.
// With `why` it says what each bucket would lose by every change that was tried. The robust plan, where
// there is one, and the strategies come last: the `top` fastest ones, or all where that is 0.
// `robust` may be null.
[[nodiscard]] std::string to_text(const job::Tuning& tuning, const job::RobustTuning* robust,
                                  bool why, int width, std::size_t top = 0);

// The tables of buckets and of strategies alone, and between them that of the changes with `why`.
[[nodiscard]] std::string to_markdown(const job::Tuning& tuning, bool why, std::size_t top = 0);

}  // namespace paceline::cli
