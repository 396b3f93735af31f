// Any bytes as a training run: one whose phases have a length in samples, or an InputError.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "models/phases/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  try {
    const models::TrainingRun run =
        models::parse_training_yaml({reinterpret_cast<const char*>(data), size}, "training.yaml");
    PACELINE_ASSERT(!run.phases.empty(), "a run has phases");
    const auto check = [&](const models::Length& length) {
      PACELINE_ASSERT(run.dataset.has_value() || length.measure != models::Measure::epochs,
                      "an epoch has samples");
      const double all = models::samples(length, 4096, run.dataset ? run.dataset->samples : 0);
      PACELINE_ASSERT(std::isfinite(all) && all > 0, "a length is of samples");
    };
    for (const models::Phase& phase : run.phases) {
      check(phase.length);
      PACELINE_ASSERT(phase.batch.value_or(1) > 0 && phase.sequence.value_or(1) > 0 &&
                          phase.accumulate.value_or(1) > 0,
                      "what a phase has is there");
    }
    if (run.evaluation) check(run.evaluation->every);
    if (run.checkpoint) check(run.checkpoint->every);
    for (const auto& time :
         {run.start_up, run.checkpoint ? std::optional(run.checkpoint->time) : std::nullopt}) {
      if (!time) continue;
      PACELINE_ASSERT(time->low <= time->value && time->value <= time->high &&
                          time->high <= models::longest_duration && time->low >= Seconds{0},
                      "a duration has its interval");
    }
  } catch (const InputError&) {
  }
  return 0;
}
