// Files that hold one timeline, of a run or of a prediction.
#pragma once

#include <string>

#include "models/timeline/timeline.h"

namespace paceline::job {

// The timeline of a text. `file` names the text in errors. Throws InputError as
// models::parse_chrome_trace does, and if there are several timelines or none.
[[nodiscard]] models::TracedTimeline parse_timeline(const std::string& text,
                                                    const std::string& file);

// The timeline in a file. Throws InputError as above, and if the file cannot be read.
[[nodiscard]] models::TracedTimeline read_timeline(const std::string& path);

}  // namespace paceline::job
