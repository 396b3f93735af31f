// Collectives of one kind that another tool measured, size by size, as `paceline time --against` sets them
// beside their predictions. They are judged, and nothing is calibrated on them: that is what --measured
// and `paceline calibrate import` do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/spread.h"
#include "calibration/import/imported.h"
#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "models/collective/catalogue.h"

namespace paceline::job {

struct MeasuredTimes {
  std::string file;
  std::string tool;  // "nccl-tests 2.17.6"
  std::string what;  // "all_reduce_perf, in place, float sum"
  models::Collective collective = models::Collective::all_reduce;
  int ranks = 0;
  models::WireType type = models::WireType::fp32;
  calibration::Count nodes;
  std::vector<calibration::SizeSpread> times;  // the smallest size first
  std::vector<std::string> remarks = {};       // what the reader left out, and why
};

// Reads the output of nccl-tests or of another benchmark of collectives. `ranks`, `type` and `collective`,
// where they are given, say what the file does not say, or which are meant of a file with several kinds.
// Throws InputError for a file that cannot be read, is of another tool or holds no collective; where it
// contradicts what is given; and where it leaves open over how many ranks it ran, or what of several kinds
// is meant. A type that nobody says is fp32.
[[nodiscard]] MeasuredTimes read_measured_times(const std::string& file, std::optional<int> ranks,
                                                std::optional<models::WireType> type,
                                                std::optional<models::Collective> collective);

// Refuses collectives over other nodes than those that these ranks of the cluster are on. Throws InputError.
void check_measured_nodes(const models::Cluster& cluster, int ranks,
                          const calibration::Count& measured, const std::string& file);

// Keeps the sizes from the least to the most. Throws InputError that names --size if none is left.
void keep_sizes(MeasuredTimes& measured, Bytes least, Bytes most);

}  // namespace paceline::job
