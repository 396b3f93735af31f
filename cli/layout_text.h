// The table of `paceline tune --layouts`.
#pragma once

#include <string>

#include "cli/job/layout_tuning.h"

namespace paceline::cli {

[[nodiscard]] std::string to_text(const job::LayoutTuning& tuning, int width);
[[nodiscard]] std::string to_markdown(const job::LayoutTuning& tuning);

}  // namespace paceline::cli
