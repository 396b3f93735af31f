// Tests: tests/cli/compare_test.py, tests/cli/what_if_test.py (end to end).
#include "cli/job/timeline_file.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "cli/job/files.h"
#include "models/base/error.h"

namespace paceline::job {

models::TracedTimeline parse_timeline(const std::string& text, const std::string& file) {
  std::vector<models::TracedTimeline> timelines = models::parse_chrome_trace(text, file);
  if (timelines.size() != 1)
    throw InputError({file}, fmt::format("it holds {} timelines", timelines.size()),
                     "give a file of one: of a run, or of a prediction");
  return std::move(timelines.front());
}

models::TracedTimeline read_timeline(const std::string& path) {
  return parse_timeline(read_input_file(path), path);
}

}  // namespace paceline::job
