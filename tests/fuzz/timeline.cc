// Any bytes as a timeline: one that can be written, compared with itself and asked about, or an
// InputError.
#include <cstddef>
#include <cstdint>

#include <string_view>

#include "calibration/compare/comparison.h"
#include "calibration/compare/what_if.h"
#include "models/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto timelines = models::parse_chrome_trace(text, "timeline.json");
    PACELINE_ASSERT(!models::chrome_trace(timelines).empty(), "what is read is written");
    for (const models::TracedTimeline& traced : timelines) {
      models::TracedTimeline run = traced;
      run.timeline.provenance = "measured";
      models::TracedTimeline prediction = traced;
      prediction.timeline.provenance = "predicted";
      const calibration::Comparison comparison = calibration::compare(run, prediction);
      PACELINE_ASSERT(comparison.iteration.difference() == Seconds{0}, "a timeline is as itself");
      PACELINE_ASSERT(calibration::side_by_side(run, prediction).size() == 2, "both are there");
      const models::RunTimes times = models::parse_run_times(text, "timeline.json", run.job);
      const calibration::MeasuredRun measured =
          calibration::measured_run(run, times, "timeline.json");
      const calibration::WhatIf same =
          calibration::what_if(measured, {}, {.name = "", .without = {}});
      PACELINE_ASSERT(same.iteration == measured.iteration, "nothing is changed");
    }
  } catch (const InputError&) {
  }
  return 0;
}
