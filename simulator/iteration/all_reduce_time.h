// The time of a single all-reduce on a cluster, all ranks ready at once and nothing else in flight:
// what nccl-tests measures. One definition for `paceline time` and for published all-reduces.
#pragma once

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
#include "simulator/iteration/plan_timing.h"

namespace paceline::simulator {

struct AllReduceRequest {
  const models::Cluster& cluster;
  const models::Profile* profile = nullptr;  // as in PredictionRequest
  int ranks = 1;                             // must fit the cluster
  models::WireType wire = models::WireType::fp32;
  EngineKind engine = EngineKind::automatic;
  std::string nccl_version = {};  // of nccl_versions(); empty: the newest
  // In haste, the step engine takes the place of the flow engine for sizes that would take long
  // together.
  Haste haste = Haste::none;
};

struct AllReduceTime {
  Figure<Seconds> time;  // predicted; the interval has every figure at its fast or slow end
  std::string timed_by;  // "flow engine", or in words what is known of the library
};

// NCCL's own all-reduces by name, each as its own model chooses: "nccl"; "nccl-ring", "nccl-tree",
// where NCCL_ALGO leaves it only the protocol to choose. Nothing for other names.
struct NcclAllReduce {
  std::optional<NcclAlgorithm> only;
};
[[nodiscard]] std::optional<NcclAllReduce> nccl_all_reduce(std::string_view name);
[[nodiscard]] std::vector<std::string> nccl_all_reduce_names();

// Keeps engines and their times. Use one in each thread.
class AllReduceTimer {
 public:
  // Keeps references to the request's cluster and profile. Throws InputError if the ranks do not
  // fit the cluster.
  explicit AllReduceTimer(const AllReduceRequest& request);

  // The time by an engine. Throws as CollectiveTimer::time() does.
  [[nodiscard]] AllReduceTime by_engine(const models::PlannedSchedule& schedule, Bytes bytes);
  // The time of what NCCL chooses (engine/nccl_practice.h). Throws InputError where NCCL does not
  // run.
  [[nodiscard]] AllReduceTime by_nccl(NcclAllReduce all_reduce, Bytes bytes);
  // The time by the library's all-reduce curve in the profile; nothing where there is none.
  [[nodiscard]] std::optional<AllReduceTime> by_curve(models::Library library, Bytes bytes) const;
  // The time of the all-reduce of that name, which is one of the catalogue's, with the options that
  // it takes, or one of NCCL's. Throws InputError for other names, and as the above do.
  [[nodiscard]] AllReduceTime by_name(std::string_view algorithm, models::ScheduleOptions options,
                                      Bytes bytes);

  // NCCL's own model, untouched. Throws InputError where NCCL does not run.
  [[nodiscard]] const NcclModel& nccl_model();
  // Messages that the flow engine follows for one size in all readings, where it times the
  // schedule; else 0.
  [[nodiscard]] double followed(const models::PlannedSchedule& schedule);

 private:
  const NcclPractice& practice(Reading reading);

  AllReduceRequest request_;
  std::map<Reading, CollectiveTimer> engines_;
  std::map<Reading, NcclPractice> nccl_;
};

// The schedule that a catalogue's all-reduce makes with those of the options that it takes. Throws
// InputError.
[[nodiscard]] models::PlannedSchedule planned_all_reduce(std::string_view algorithm,
                                                         const models::ScheduleOptions& options);

}  // namespace paceline::simulator
