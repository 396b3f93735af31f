// The buckets of systems that fuse by what an all-reduce costs, and not by a size that a user names.
//
// MG-WFBP (Shi et al. 2019, "MG-WFBP: Efficient Data Communication for Distributed Synchronous SGD
// Algorithms", theorem 1; HKBU-HPML/MG-WFBP, distributed_optimizer.py) goes through the gradients in
// backward order. The open bucket could start at max(ready, finish of the bucket before). It takes
// the next gradient, too, where that is there earlier than a startup time a after this start: to
// wait for it costs less than the startup of one more all-reduce.
//
// Inductor (pytorch#179935, compute_pre_bucket_cap_mb) takes the smallest size with which an
// all-reduce of a + n b seconds reaches 0.95 of the bandwidth, e / (1 - e) a / b, three times that, and
// at least 50 MiB and at most 2000 MiB. A gradient that would take a bucket beyond the size opens the
// next one (greedy_bucket_collective_by_mb).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::simulator {

// MG-WFBP's buckets for gradients that are there at `times`, which never fall. `takes` is the time of
// an all-reduce of this many elements, and `startup` is a. `schedule` of each is 0.
// O(gradients) calls of takes.
[[nodiscard]] std::vector<models::Bucket> merged_gradients(
    std::span<const models::Gradient> gradients, std::span<const Seconds> times, Seconds startup,
    const std::function<Seconds(std::int64_t)>& takes);

// Inductor's size of a bucket, from the times of two all-reduces. `more` is larger than `few`, and
// takes longer or as long.
[[nodiscard]] Bytes saturating_bucket(Bytes few, Seconds time_of_few, Bytes more,
                                      Seconds time_of_more);

}  // namespace paceline::simulator
