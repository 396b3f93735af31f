// What messages cost on the cluster that a job runs on, by size: microbenchmarks between its ranks.
// All ranks call the same function at the same point. Samples are rank 0's, and empty on others.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/measure/node_map.h"
#include "calibration/measure/progress.h"
#include "models/profile/profile.h"
#include "runtime/transport/transport.h"

namespace paceline::calibration {

// The samples of one pattern, by message size.
struct MessageTimes {
  models::CurveKind kind = models::CurveKind::point_to_point;
  bool between_nodes = true;
  int ranks = 2;  // that took part
  std::vector<Sample> samples;
};

struct MessageRequest {
  std::vector<std::int64_t> sizes;  // bytes, ascending, at least 1
  // For all patterns together; the value of rank 0 counts. Each size is tried 3 times at least.
  Seconds time{20};
  // Sizes of the library's all-reduce, bytes, ascending; empty: `sizes`. Those that are larger than
  // the last of `sizes` end before the first one that would not fit in what is left of the time.
  std::vector<std::int64_t> all_reduce_sizes = {};
  Progress progress = {};  // called before each size of a pattern
};

// Point to point (half of a round trip between two ranks, the others wait) and exchange (each of a
// set of ranks sends to the next and receives from the one before, all at once, step after step)
// between nodes, with one rank on each; and within a node, where there are several ranks on the
// first one. An exchange's sample is the time of one step of several in a row.
//
// Then comes the all-reduce of the library under the transport, where it has one, over the first 2,
// 4, 8, ... ranks and over all. They run in a row, and are timed from the end of one to the end of
// the next on rank 0. That is what each adds to an iteration: where ranks are no power of two, some
// are done long before others, and are as much ahead in the next.
[[nodiscard]] std::vector<MessageTimes> measure_messages(runtime::Transport& transport,
                                                         const NodeMap& nodes,
                                                         const MessageRequest& request);

}  // namespace paceline::calibration
