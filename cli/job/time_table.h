// Times of single all-reduces over a list of sizes: what `paceline time` prints.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/compare/verdict.h"
#include "cli/job/deviation_limit.h"
#include "cli/job/job.h"
#include "cli/job/measured_times.h"
#include "cli/job/schedule.h"
#include "models/base/document.h"
#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/profile/profile.h"
#include "simulator/iteration/all_reduce_time.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct TimeOptions {
  std::string algorithm;   // of the catalogue, one of NCCL's, or "all"
  std::string collective;  // empty: that of the algorithm or of `against`, or all-reduce
  ScheduleOptions build;
  std::string cluster;
  std::string placement;
  std::string sizes;  // empty: "8-1GiB", or all of `against`
  std::string factor = "2";
  std::string type;  // empty: fp32, or that of `against`
  std::string profile;
  std::string engine = "auto";
  std::string nccl;  // version
  std::string measured;
  std::string against;  // file of all-reduces that were measured
};

// Where the times of a column come from.
enum class TimedAs {
  asked,    // an algorithm that was asked for
  nccl,     // NCCL's own choice, beside it
  library,  // the profile's all-reduce curve of a library, beside it
};

[[nodiscard]] std::string_view name(TimedAs as);  // "asked", "nccl", "curve"

struct TimedColumn {
  // "ring", "nccl", "open-mpi curve"; "hierarchical k=8" where k is named or the same for all sizes,
  // and else "hierarchical"
  std::string name;
  TimedAs as = TimedAs::asked;
  std::vector<simulator::AllReduceTime> times = {};  // for each size
  // The step engine took the place of the flow engine to answer at once.
  bool is_bounded = false;
};

struct UntimedAlgorithm {
  std::string name;
  std::string why;
};

struct TimeTable {
  models::Cluster cluster;
  std::optional<models::Profile> profile;
  int ranks = 1;
  models::Collective collective = models::Collective::all_reduce;
  models::WireType type = models::WireType::fp32;
  simulator::EngineKind engine = simulator::EngineKind::automatic;
  std::vector<simulator::MeasuredAllReduce> measured;  // which the times are calibrated on
  std::optional<MeasuredTimes> against;  // which they are set beside: one for each size
  std::string nccl_version;              // of the tables, where there is a column of NCCL's
  std::vector<Bytes> sizes;
  std::vector<TimedColumn> columns;
  std::vector<UntimedAlgorithm> left_out;  // of "all"
  // Options that some algorithm takes and nobody gave: "--group".
  std::vector<std::string> open_options;

  // The index of the column of least time among those that were asked for.
  [[nodiscard]] std::size_t best(std::size_t size) const;
  [[nodiscard]] std::size_t asked() const;  // columns that were asked for; they come first
  // Whether `measured` has the all-reduce of this size: then the time that was asked for is calibrated
  // on it, and is no prediction.
  [[nodiscard]] bool is_calibrated(std::size_t size) const;
};

// One size of the all-reduce that was asked for, as it was measured and as it is predicted.
struct BesideMeasured {
  calibration::SizeSpread measured;
  Figure<Seconds> predicted;
  // The verdict on the run that is farthest from the prediction. Nothing where the time beside it is
  // calibrated on --measured, and so is no prediction.
  std::optional<calibration::Verdict> verdict;

  // The measured bus bandwidth of the slowest run as a share of the predicted one.
  [[nodiscard]] double share() const { return predicted.value / measured.most; }
  // "inside", "slower", "faster" or "calibrated".
  [[nodiscard]] std::string_view verdict_text() const {
    return verdict ? name(*verdict) : "calibrated";
  }
};
// For each size of a table with `against`.
[[nodiscard]] std::vector<BesideMeasured> beside_measured(const TimeTable& table);

// The size that falls behind the limit by most; nothing where none does. What is calibrated is not
// judged.
[[nodiscard]] std::optional<BesideMeasured> farthest_behind(const TimeTable& table,
                                                            const DeviationLimit& limit);

// The options with which the column's all-reduce is timed at a size, where the column's name does not
// say them: "k=8", "k=2, 4 rings". Else empty.
[[nodiscard]] std::string chosen_options(const TimedColumn& column, std::size_t size);

// Bytes of the collective over its time; the bus bandwidth is simulator::bus_bandwidth().
[[nodiscard]] BytesPerSecond algorithm_bandwidth(Bytes bytes, Seconds time);

// Is told which algorithm is timed next, and the share of the work behind it.
using TimeObserver = std::function<void(std::string_view algorithm, double share)>;

// A network and a plan have no use here. Throws InputError that names the option.
[[nodiscard]] TimeTable time_table(const TimeOptions& options, const TimeObserver& observer = {},
                                   const GivenValues& given = {});

[[nodiscard]] const Document<TimeTable>& time_document();
// A header and one record (RFC 4180) for each size and column, or for each size that was measured.
[[nodiscard]] std::string to_csv(const TimeTable& table);

}  // namespace paceline::job
