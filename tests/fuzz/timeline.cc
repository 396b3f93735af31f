// Any bytes as a timeline: one that can be written and compared with itself, or an InputError.
#include <cstddef>
#include <cstdint>

#include "calibration/compare/comparison.h"
#include "models/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  try {
    const auto timelines =
        models::parse_chrome_trace({reinterpret_cast<const char*>(data), size}, "timeline.json");
    PACELINE_ASSERT(!models::chrome_trace(timelines).empty(), "what is read is written");
    for (const models::TracedTimeline& traced : timelines) {
      models::TracedTimeline run = traced;
      run.timeline.provenance = "measured";
      models::TracedTimeline prediction = traced;
      prediction.timeline.provenance = "predicted";
      const calibration::Comparison comparison = calibration::compare(run, prediction);
      PACELINE_ASSERT(comparison.iteration.difference() == Seconds{0}, "a timeline is as itself");
      PACELINE_ASSERT(calibration::side_by_side(run, prediction).size() == 2, "both are there");
    }
  } catch (const InputError&) {
  }
  return 0;
}
