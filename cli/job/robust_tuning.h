// What `paceline tune --robust` prints: the plan that is best in the bad states of the world, beside the
// one that is best as stated and the one that the runtime makes by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/job/tuning.h"
#include "models/base/json.h"
#include "simulator/iteration/robust_plan.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct RobustOptions {
  bool robust = false;
  std::string runtime;  // --default; empty: DDP's, by NCCL where there are GPUs, else by Gloo
  std::string seed;     // of the sampled states
};

// The strategy that the robust plan is compared with, and the job's seed of samples set; null where no
// robust plan is asked for. Throws InputError that names --default or --seed.
[[nodiscard]] const models::Strategy* take_robust(const RobustOptions& options, Job& job);

struct RobustTuning {
  // The first is the best as stated, the second that of the runtime's default.
  std::vector<simulator::RobustCandidate> candidates;
  std::size_t robust = 0;      // the most robust one (robust_plan.h)
  simulator::PairedGain gain;  // of the robust plan over the default
  bool is_complete = true;     // false: the search was stopped

  [[nodiscard]] const simulator::RobustCandidate& best() const { return candidates[0]; }
  [[nodiscard]] const simulator::RobustCandidate& runtimes() const { return candidates[1]; }
  // Whether the runtime's default stays, for the gain's interval includes none.
  [[nodiscard]] bool keeps_default() const { return gain.includes_none(); }
  [[nodiscard]] const simulator::RobustCandidate& chosen() const {
    return keeps_default() ? runtimes() : candidates[robust];
  }
};

// Of the plans of the tuning's rows that our runtime can run, of its tuned plan, of the tuned plans of
// sampled states, and of `runtime`, a strategy. All but that one are of the `all_reduces`, as those of
// tune_job(), and all have the tuned plan's wire type. `stop` is asked
// between plans. Throws InputError that names --default where that strategy cannot be timed.
[[nodiscard]] RobustTuning robust_tuning(const Tuning& tuning, const models::Strategy& runtime,
                                         const std::vector<std::string>& all_reduces,
                                         const std::function<bool()>& stop);

// The object `robust` of paceline.tuning/1 (docs/formats.md).
[[nodiscard]] Json to_json(const RobustTuning& robust);

}  // namespace paceline::job
