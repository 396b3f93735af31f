// The time of a single collective on a cluster, all ranks ready at once and nothing else in flight:
// what nccl-tests measures. One definition for `paceline time` and for published all-reduces.
//
// The interval is the middle 90 % of what is not known: every figure of the links and of the library
// at its fast or slow end together, and what no figure explains (all_reduce_spread()), which is
// independent of them. Both count as deviations of the logarithm of the time, whose squares add.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/figure.h"
#include "models/cluster/cluster.h"
#include "models/plan/plan.h"
#include "models/profile/profile.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/engine/nccl_practice.h"
#include "simulator/iteration/measured_all_reduce.h"
#include "simulator/iteration/timing_method.h"

namespace paceline::simulator {

struct AllReduceRequest {
  const models::Cluster& cluster;
  const models::Profile* profile = nullptr;  // as in PredictionRequest
  int ranks = 1;                             // must fit the cluster
  models::WireType wire = models::WireType::fp32;
  EngineKind engine = EngineKind::automatic;
  std::string nccl_version = {};  // of nccl_versions(); empty: the newest
  // With a bounded time budget, the step engine takes the place of the flow engine for sizes that would
  // take long
  // together.
  TimeBudget time_budget = TimeBudget::unlimited;
  // All-reduces of the asked algorithm that were measured on this cluster: they tell the pace of its
  // links, of a library its latency, too. Curves of a profile do not change.
  std::vector<MeasuredAllReduce> measured = {};
};

// What no figure explains: standard deviations of the logarithm of the time that bytes take and of
// the latency's. An all-reduce has the one or the other by the share of its time; their squares add.
struct AllReduceSpread {
  double transfer = 0;
  double latency = 0;
};
// They differ with whether an all-reduce of the cluster was measured, and grow with each doubling of
// ranks between that and the job. Fitted to published all-reduces
// (experiments/unexplained_all_reduces.py); they move no prediction.
[[nodiscard]] AllReduceSpread all_reduce_spread(const Pace& pace);

struct AllReduceTime {
  Figure<Seconds> time;         // predicted
  Seconds latency;              // its part that there is without any bytes
  std::string timed_by;         // "flow engine", or in words what is known of the library
  std::string all_reduce = {};  // of ours: which it is, with its options: "hierarchical k=8"
};

// A collective of NCCL's own, as its own model chooses, or with the algorithm that NCCL_ALGO leaves.
struct NcclCollective {
  std::optional<NcclAlgorithm> only;
  models::Collective collective = models::Collective::all_reduce;
};
// By name: "nccl"; "nccl-ring", "nccl-tree". Nothing for other names. Throws InputError where NCCL has no
// such collective, or not by that algorithm.
[[nodiscard]] std::optional<NcclCollective> nccl_collective(
    std::string_view name, models::Collective collective = models::Collective::all_reduce);
[[nodiscard]] std::vector<std::string> nccl_collective_names();

// Keeps engines and their times. Bytes are those of the whole bucket, of an all-to-all those of all ranks'
// buffers. Use one in each thread.
class AllReduceTimer {
 public:
  // Keeps references to the request's cluster and profile. Throws InputError if the ranks do not
  // fit the cluster.
  explicit AllReduceTimer(const AllReduceRequest& request);

  // The time by an engine of the catalogue's algorithm of that name, of whatever collective, with those of the options that
  // it takes. Those that are 0 are chosen for this size (planner/fastest_all_reduce.h), before
  // anything that was measured tells a pace. Throws InputError for other names, and as
  // CollectiveTimer::time() does.
  [[nodiscard]] AllReduceTime by_engine(std::string_view algorithm, models::ScheduleOptions options,
                                        Bytes bytes);
  // The time of what NCCL chooses (engine/nccl_practice.h). Throws InputError where NCCL does not run.
  [[nodiscard]] AllReduceTime by_nccl(NcclCollective of, Bytes bytes);
  // The time by the library's curve of the collective in the profile; nothing where there is none.
  [[nodiscard]] std::optional<AllReduceTime> by_curve(
      models::Library library, Bytes bytes,
      models::Collective collective = models::Collective::all_reduce) const;
  // The time of the algorithm of that name, which is one of the catalogue's or one of NCCL's. Throws
  // InputError for other names, and as the above do.
  [[nodiscard]] AllReduceTime by_name(std::string_view algorithm, models::ScheduleOptions options,
                                      Bytes bytes);

  // What NCCL takes, and what its own model expects, as figures are stated. Throws InputError where
  // NCCL does not run.
  [[nodiscard]] const NcclPractice& nccl_practice();
  // NCCL's own model, untouched. Throws InputError where NCCL does not run.
  [[nodiscard]] const NcclModel& nccl_model();
  // Messages that the flow engine follows for this size at all bounds, where it times what
  // by_engine() takes; else 0.
  [[nodiscard]] double followed(std::string_view algorithm, models::ScheduleOptions options,
                                Bytes bytes);

 private:
  // Engines and NCCL at the pace of one algorithm, by the bound of figures.
  struct Timers {
    Pace pace;
    std::map<Bound, CollectiveTimer> engines;
    std::map<std::pair<Bound, models::Collective>, NcclPractice> nccl;
  };
  // The timers that choose options, and the schedules that they chose, by the algorithm and the
  // options that were named.
  struct Choice {
    CollectiveTimer by_steps;
    CollectiveTimer timed;
    std::map<std::string, std::vector<models::PlannedSchedule>> schedules;
  };
  // The time in two parts, `latency` and `transfer`, of an all-reduce at a bound.
  using Parts = std::function<NcclTime(Timers& timers, Bound bound)>;

  [[nodiscard]] AllReduceTime with_interval(Timers& timers, const Parts& parts,
                                            std::string timed_by) const;
  Timers& timers_for(const std::string& algorithm, const PacedTime& paced);
  [[nodiscard]] Timers timers_at(const Pace& pace, int ranks) const;
  [[nodiscard]] CollectiveTimer engine_at(const Pace& pace, int ranks, Bound bound) const;
  const NcclPractice& practice(Timers& timers, Bound bound,
                               models::Collective collective = models::Collective::all_reduce);
  [[nodiscard]] NcclPractice practice_at(
      const Pace& pace, int ranks, Bound bound,
      models::Collective collective = models::Collective::all_reduce);
  Timers& unpaced();
  // The schedule is over options.ranks ranks.
  const models::PlannedSchedule& chosen(std::string_view algorithm,
                                        const models::ScheduleOptions& options, Bytes bytes);

  AllReduceRequest request_;
  std::optional<NcclTables> tables_;  // once they are needed
  std::map<std::string, Timers>
      timers_;  // by algorithm with the options that were named; "" at the links' own pace
  std::map<int, Choice> choices_;  // by ranks
};

}  // namespace paceline::simulator
