// What `paceline tune --robust` prints: the plan that is best in the bad states of the world, beside the
// one that is best as stated and the one that the runtime makes by itself.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/stragglers.h"
#include "cli/job/tuning.h"
#include "models/base/document.h"
#include "models/plan/plan_json.h"
#include "simulator/prediction/robust_plan.h"

namespace paceline::job {

// The options as typed. An empty text is an option that is not given.
struct RobustOptions {
  bool robust = false;
  std::string runtime;  // --default; empty: DDP's, by NCCL where there are GPUs, else by Gloo
  simulator::StragglerTexts
      ranks;  // --spread and --slow-rank, and the --seed of all sampled states
};

// The plan of a runtime that nobody tells anything: that of a strategy, or one that is given.
struct RuntimeDefault {
  const models::Strategy* strategy = nullptr;  // null where a plan is given
  std::optional<models::PlanDocument> plan = {};
  std::string name;  // of the strategy, or of the plan's file
};

// The plan that a robust plan is compared with, and how ranks differ in sampled states.
struct AskedRobust {
  RuntimeDefault runtime;
  std::optional<simulator::MonteCarloRequest> stragglers;  // without backup ranks
};

// With the job's seed of samples set; nothing where no robust plan is asked for. --default names a
// strategy but `tuned`, or a file of a plan, which ends in .json. Throws InputError that names the
// option, or the file.
[[nodiscard]] std::optional<AskedRobust> take_robust(const RobustOptions& options, Job& job,
                                                     int ranks);

struct RobustTuning {
  // The first is the best as stated, the second that of the runtime's default.
  std::vector<simulator::RobustCandidate> candidates;
  // The most robust one (robust_plan.h). Where its gain over the default is not certain and that of
  // others is, the most robust of these.
  std::size_t robust = 0;
  simulator::PairedGain gain;  // of the robust plan over the default
  bool is_complete = true;     // false: the search was stopped
  // How ranks differ in the sampled states. Without a value, they do not.
  std::optional<simulator::MonteCarloRequest> stragglers = {};

  [[nodiscard]] const simulator::RobustCandidate& best() const { return candidates[0]; }
  [[nodiscard]] const simulator::RobustCandidate& runtimes() const { return candidates[1]; }
  // The gain of a candidate over the default.
  [[nodiscard]] simulator::PairedGain gain_of(std::size_t candidate) const {
    return paired_gain(candidates[candidate].time, runtimes().time);
  }
  // Whether the runtime's default stays, because the gain's interval includes none.
  [[nodiscard]] bool keeps_default() const { return gain.includes_none(); }
  [[nodiscard]] const simulator::RobustCandidate& chosen() const {
    return keeps_default() ? runtimes() : candidates[robust];
  }
};

// The candidates are the plans of the tuning's rows that our runtime can run, its tuned plan, the
// tuned plans of sampled states, and the runtime's plan. With several streams, plans are added that
// are tuned for streams that hide half of each other's latency, and none of it. All plans but the
// runtime's use the algorithms in `all_reduces`, as those of tune_job() do. All have the wire type of
// the tuned plan. Stragglers are part of the sampled states. `stop` is asked between plans. Throws an
// InputError that names --default if that plan cannot be timed, or belongs to another job.
[[nodiscard]] RobustTuning robust_tuning(const Tuning& tuning, const AskedRobust& asked,
                                         const std::vector<std::string>& all_reduces,
                                         const std::function<bool()>& stop);

// The object `robust` of paceline.tuning/1 (docs/formats.md).
[[nodiscard]] const Document<RobustTuning>& robust_document();

// The document of `paceline tune --json`; `robust` is null unless it was asked for.
struct TuningAnswer {
  const Tuning& tuning;
  const RobustTuning* robust = nullptr;
};
[[nodiscard]] const Document<TuningAnswer>& tuning_document();

}  // namespace paceline::job
