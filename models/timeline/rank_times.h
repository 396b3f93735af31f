// How long every rank of a run takes in an iteration, in a few numbers for each layer. A timeline
// holds the events of rank 0; beside it, this says which rank the others wait for.
//
// Times of a rank cover its compute stream without a hole. A task takes from its start to that of
// the next one, so that whatever comes between two layers counts for the first of them. The last
// backward pass takes what it says. What follows until the next iteration, once gradients are
// summed, is the update and a rest: the thread that wakes up, the next batch, metrics. So an
// iteration DAG with these durations has the iteration that was measured, as far as medians say it.
//
// The stream of a bucket is covered in the same way: it is handed over, made ready (cast and packed),
// transferred, and unpacked; each part ends where the next one begins.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/timeline/timeline.h"

namespace paceline::models {

// Medians over the iterations of a timeline. Those of layers are scaled so that they add up to the
// median of their sum.
struct RankTimes {
  std::vector<Seconds> forward;   // of each layer
  std::vector<Seconds> backward;  // of each layer
  Seconds update;
  Seconds rest;  // beside the update, from when the backward pass and the sums are done

  [[nodiscard]] Seconds passes() const;  // of all layers
  bool operator==(const RankTimes&) const = default;
};

// How a bucket occupies its stream on one rank.
struct BucketUse {
  Seconds hand_over;  // from when its gradients are there and the stream is free
  Seconds made_ready;
  Seconds transfer;
  Seconds unpack;
};

// What one rank has measured.
struct RankRecord {
  RankTimes times;
  std::vector<std::vector<BucketUse>> buckets;  // of each iteration, of each bucket
};

// The record of a timeline of one rank. Zeros where it has no such event. O(n log n) in the events.
[[nodiscard]] RankRecord rank_record(const TracedTimeline& traced);

// The ranks of a run. A transfer ends on a rank when all ranks are done, and so has in it the time
// for which that rank waits for others. The rank that comes last waits for none: the least transfer
// over the ranks is that of the bucket itself. It needs no clock that ranks share.
struct RunTimes {
  std::vector<RankTimes> ranks;
  std::vector<Seconds>
      transfers;  // of each bucket: the median over iterations of the least over ranks

  bool operator==(const RunTimes&) const = default;
};

// `records` of all ranks of one job, in their order; at least one. Iterations count that all have.
[[nodiscard]] RunTimes run_times(const std::vector<RankRecord>& records);

// A record of up to `most` iterations as numbers that travel between ranks, and back. All ranks of a
// job have the same number of them. Of buckets, transfers travel only.
[[nodiscard]] std::vector<float> packed(const RankRecord& record, const TracedJob& job, int most);
[[nodiscard]] RankRecord unpacked(std::span<const float> numbers, const TracedJob& job);

// The document of chrome_trace() of one timeline, with the times of all ranks beside it.
[[nodiscard]] std::string chrome_trace(const TracedTimeline& traced, const RunTimes& times);

// The times of all ranks in a document of one timeline that is of `job`; without ranks where it has
// none. Throws InputError as parse_chrome_trace does.
[[nodiscard]] RunTimes parse_run_times(std::string_view text, const std::string& file,
                                       const TracedJob& job);

}  // namespace paceline::models
