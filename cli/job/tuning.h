// What `paceline tune` prints: the best plan that is found for a job, beside the table of strategies.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/prediction_table.h"
#include "simulator/iteration/bucket_travel.h"
#include "simulator/iteration/tuned_plan.h"
#include "simulator/prediction/robust_plan.h"

namespace paceline::job {

inline constexpr const char* default_time_limit = "10 s";

// A program that can run a plan.
enum class Runtime {
  ddp,      // PyTorch's DistributedDataParallel: bucket_cap_mb
  horovod,  // its fusion threshold and cycle
  nccl,     // a training loop of one's own, which calls NCCL for buckets of its own
  paceline  // our runtime: any buckets, an all-reduce of the catalogue for each
};
[[nodiscard]] std::string_view name(Runtime runtime);

// The options of the search as typed.
struct TuningOptions {
  std::string runtimes;                         // by commas; empty: those that are usual there
  std::string all_reduces;                      // by commas; empty: all
  std::string time_limit = default_time_limit;  // of the whole command
};

// Throws InputError that names --time-limit.
[[nodiscard]] Seconds parse_time_limit(const std::string& text);

// When each part of a tuning has to end, from its start. A part that ends early leaves its time to the
// next. The last one ends at the limit.
struct TuningTimes {
  Seconds search;
  Seconds explanation;
  Seconds sampling;
};
// `explains` and `samples`: whether the parts after the search are asked for (--why, --robust).
[[nodiscard]] TuningTimes tuning_times(Seconds limit, bool explains, bool samples);

// What a runtime does if nobody tells it anything, with the plan's wire type.
struct RuntimeDefaults {
  std::string runtime;         // "Horovod", "PyTorch DDP"
  std::size_t row = 0;         // of the table
  simulator::PairedGain gain;  // of the tuned plan over it, state by state
};

// A gain that is smaller is not worth a plan of one's own.
inline constexpr double least_worthwhile_gain = 0.01;

// A change that a person could make to a runtime, with its gain.
struct Advice {
  Runtime runtime = Runtime::ddp;
  std::string setting;  // "bucket_cap_mb=63"; empty: buckets of one's own
  models::Plan plan;
  Seconds iteration{0};
  simulator::PairedGain gain = {};  // over the defaults that are the yardstick
};

struct Tuning {
  PredictionTable table;       // of the strategies that it is compared with
  simulator::TunedPlan tuned;  // none slower than any row of the table, of the fastest wire type
  // The tuned plan's iteration has the interval that Predictor::predict() gives it.
  Figure<Seconds> iteration = {};
  simulator::PlanTravel travel = {};  // of its steady iteration
  // The plan where a part of the cluster is twice as good; empty for a cluster of a platform file.
  std::vector<simulator::BetterPart> better = {};
  std::optional<std::size_t> by_thresholds = {};  // the fastest row that thresholds drive
  std::vector<RuntimeDefaults> defaults = {};     // of Horovod and of PyTorch DDP, where they run
  // The best buckets for a library's own all-reduce, where these are not the plan's: their iteration.
  std::optional<std::pair<models::Library, Seconds>> by_library = {};
  std::vector<Runtime> runtimes = {};
  // One entry for each of these runtimes. It is empty where our own runtime is among them, or where no
  // defaults are known to compare with.
  std::vector<Advice> tried = {};
  bool is_explained = false;                // whether the observer asked for other choices (--why)
  std::vector<std::string> cut_short = {};  // what the time did not suffice for, a line each

  // The gain: by how much the row's iteration is longer than the plan's, as a share of the plan's.
  [[nodiscard]] double gain_over(const simulator::StrategyPrediction& row) const {
    return row.iteration.value / tuned.period - 1;
  }
  // The defaults to keep, where nothing that was tried is advised; where nothing was tried, the fastest
  // ones, if the gain over them is not certain or not worth a plan of one's own.
  [[nodiscard]] const RuntimeDefaults* kept() const;
  // The defaults that `tried` is compared with: those of Horovod if it is the first of the runtimes, else
  // those of PyTorch DDP. Null where our own runtime is among them, or where no such defaults are known.
  [[nodiscard]] const RuntimeDefaults* yardstick() const;
  // The first of `tried` whose gain is certain and worthwhile, unless a later one adds a worthwhile gain to
  // it. Null if the defaults are to be kept, or if nothing was tried.
  [[nodiscard]] const Advice* advice() const;
  // The plan to write: that of the advice, or that of the defaults to keep. Where nothing was tried, it is
  // the plan that the search found.
  [[nodiscard]] const models::Plan& chosen() const;
};

// The runtimes that a search serves, and the all-reduces that they have.
struct TuningTarget {
  std::vector<Runtime> runtimes = {Runtime::paceline};
  std::vector<std::string> all_reduces = {};  // that buckets may take; empty: all
};

// Adds the models of other systems to the strategies, unless the user named some; those of NCCL where
// there are GPUs, and none of those with servers, which are other programs than the one that is tuned. To
// be called before leave_out_untimed(), with a job whose options say `is_added_to`. Throws InputError
// where a threshold is given that none of them takes.
void compare_with_others(Job& job);

// Where the user named no strategies, leaves out those that an engine which is asked for cannot time, or
// not in time: by the step engine, those whose buckets share links in flight, which it does not see;
// by the flow engine, those with too many messages to follow, which have a line in the table's left_out. To be called before tune_job().
void leave_out_untimed(Job& job);

// Without --runtime the runtimes are DDP and NCCL where NCCL runs on the devices, and ours elsewhere. It is
// also ours where all-reduces, strategies, robust plans, streams or an overlap are asked for, which other
// runtimes do not take. All-reduces are names, separated by commas, of the catalogue or of libraries that
// can be timed for the job. Throws InputError that names --runtime or --all-reduce.
[[nodiscard]] TuningTarget parse_target(const TuningOptions& options, const Job& job,
                                        bool is_robust);

struct TuningObserver {
  TableObserver table = {};
  // Called after each plan that the search looks at.
  std::function<void(const simulator::TuningProgress& progress)> search = {};
  // Asked between plans: whether this share of the time of the search is over.
  std::function<bool(double share)> stop = {};
  // Whether to say what each bucket would lose by other choices.
  bool explain = false;
  // Asked between buckets and parts of the cluster: whether to leave out what is still to be explained.
  std::function<bool()> stop_explaining = {};
};

// --overlap and --streams hold; thresholds that are given hold for the table. Plans of each library that
// can be timed are searched first, then plans of schedules. Each search begins with the planner's
// optimum and with the plans of the rows that our runtime can run and that no substitute of its engine
// timed. Where a row of the table is faster than all that is found, the plan is that row's. Only these
// all-reduces are taken, of all where none is named; rows with others are then not in the table. Throws
// InputError as predict_table() does, and if the job names a plan, stragglers or more networks than one.
[[nodiscard]] Tuning tune_job(const Job& job, int ranks, const TuningTarget& target = {},
                              const TuningObserver& observer = {});

// Whether our runtime can run the row's plan, and no substitute of its engine timed it.
[[nodiscard]] bool may_run(const simulator::StrategyPrediction& row);
// Whether all its all-reduces are among these, or none are named. Servers are not among any.
[[nodiscard]] bool takes_only(const models::Plan& plan,
                              const std::vector<std::string>& all_reduces);
// Those of the all-reduces, which are all where none is named, that stand in one plan with the plan's:
// the library that sums its buckets, or all schedules.
[[nodiscard]] std::vector<std::string> family_of(const models::Plan& plan,
                                                 const std::vector<std::string>& all_reduces);

}  // namespace paceline::job
