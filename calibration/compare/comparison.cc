// Tests: tests/calibration/comparison_test.cc.
#include "calibration/compare/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "calibration/compare/same_job.h"

namespace paceline::calibration {
namespace {

using models::TaskKind;
using models::TracedJob;
using models::TracedTimeline;

std::string schedule_text(const models::TracedBucket& bucket) {
  std::string text = bucket.schedule;
  if (bucket.group_size > 0) text += fmt::format(" k={}", bucket.group_size);
  if (bucket.segments > 0) text += fmt::format(", {} segments", bucket.segments);
  if (bucket.server_rank) text += fmt::format(", server {}", *bucket.server_rank);
  return text;
}

std::vector<std::string> notes(const TracedTimeline& run, const TracedTimeline& prediction,
                               const IterationTimes& times) {
  std::vector<std::string> lines;
  const TracedJob& a = run.job;
  const TracedJob& b = prediction.job;
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    const std::string ran = schedule_text(a.buckets[i]);
    const std::string said = schedule_text(b.buckets[i]);
    if (ran == said) continue;
    lines.push_back(fmt::format(
        "bucket {} travelled by {}, and is predicted by {} (strategies {} and {}): its transfer is "
        "not that of one schedule",
        i, ran, said, a.strategy, b.strategy));
    break;
  }
  if (a.streams != b.streams)
    lines.push_back(fmt::format("{} and {} communication streams", a.streams, b.streams));
  if (run.timeline.batch_per_rank == 0 || prediction.timeline.batch_per_rank == 0)
    lines.emplace_back("one of the two does not say its batch: see that they are alike");
  if (times.complete == 0)
    lines.emplace_back(
        "the run holds no iteration that another one follows: what is between iterations is not in "
        "it");
  return lines;
}

// The parts of an iteration on both sides, and what is left of it.
std::vector<ComparedPart> parts(const IterationTimes& run, const IterationTimes& prediction) {
  std::vector<ComparedPart> all = {
      {"forward", {run.forward, prediction.forward}},
      {"backward", {run.backward, prediction.backward}},
      {"update", {run.update, prediction.update}},
      {"exposed communication", {run.exposed, prediction.exposed}},
      {"exposed, no bucket under way", {run.exposed_idle, prediction.exposed_idle}},
      {"between layers", {run.between_layers, prediction.between_layers}},
      {"between iterations", {run.between_iterations, prediction.between_iterations}}};
  Seconds rest_run = run.iteration.median;
  Seconds rest_prediction = prediction.iteration.median;
  for (const ComparedPart& part : all) {
    rest_run -= part.time.run.median;
    rest_prediction -= part.time.prediction.median;
  }
  std::stable_sort(all.begin(), all.end(), [](const ComparedPart& a, const ComparedPart& b) {
    const auto size = [](const ComparedPart& part) {
      return std::abs((part.time.run.median - part.time.prediction.median).value());
    };
    return size(a) > size(b);
  });
  const auto exactly = [](Seconds time) { return Spread{time, time, time, 1}; };
  all.push_back({"rest of the medians", {exactly(rest_run), exactly(rest_prediction)}});
  return all;
}

Seconds difference_or_0(const Compared& compared) {
  return compared.difference().value_or(Seconds{0});
}

std::vector<ComparedLayer> layers(const TracedJob& job, const IterationTimes& run,
                                  const IterationTimes& prediction) {
  std::vector<ComparedLayer> all;
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    all.push_back({job.layers[i].name,
                   job.layers[i].kind,
                   {run.layers[i].forward, prediction.layers[i].forward},
                   {run.layers[i].backward, prediction.layers[i].backward}});
  }
  std::stable_sort(all.begin(), all.end(), [](const ComparedLayer& a, const ComparedLayer& b) {
    return std::abs(a.difference().value()) > std::abs(b.difference().value());
  });
  return all;
}

std::vector<ComparedBucket> buckets(const TracedJob& job, const IterationTimes& run,
                                    const IterationTimes& prediction) {
  std::vector<ComparedBucket> all;
  for (std::size_t i = 0; i < job.buckets.size(); ++i) {
    const models::TracedBucket& bucket = job.buckets[i];
    const BucketTimes& a = run.buckets[i];
    const BucketTimes& b = prediction.buckets[i];
    all.push_back({.index = static_cast<int>(i),
                   .first_gradient = bucket.first_gradient,
                   .gradients = bucket.gradients,
                   .bytes = bucket.bytes,
                   .ready = {a.ready, b.ready},
                   .wait = {a.wait, b.wait},
                   .cast = {a.cast, b.cast},
                   .pack = {a.pack, b.pack},
                   .transfer = {a.transfer, b.transfer},
                   .unpack = {a.unpack, b.unpack},
                   .exposed = {a.exposed, b.exposed}});
  }
  std::stable_sort(all.begin(), all.end(), [](const ComparedBucket& a, const ComparedBucket& b) {
    const auto sizes = [](const ComparedBucket& bucket) {
      return std::pair{std::abs(difference_or_0(bucket.exposed).value()),
                       std::abs(difference_or_0(bucket.transfer).value())};
    };
    return sizes(a) > sizes(b);
  });
  return all;
}

// The kinds of task that one side does not have at all, and the layers that it does not have where
// both have the kind.
std::vector<OneSided> one_sided(const TracedJob& job, const IterationTimes& run,
                                const IterationTimes& prediction) {
  std::vector<OneSided> all;
  const auto add_kinds = [&all](bool is_run, const IterationTimes& has,
                                const IterationTimes& lacks) {
    for (const auto& [kind, total] : has.totals) {
      if (!lacks.totals.contains(kind))
        all.push_back({is_run, std::string(name(kind)), total.tasks, total.time.median});
    }
  };
  add_kinds(true, run, prediction);
  add_kinds(false, prediction, run);
  const auto add_one = [&](TaskKind kind, const std::string& what, const Compared& time) {
    const bool is_run = time.run.exists();
    if (is_run == time.prediction.exists()) return;
    if (!run.totals.contains(kind) || !prediction.totals.contains(kind)) return;
    all.push_back({is_run, fmt::format("{} {}", name(kind), what), 1,
                   is_run ? time.run.median : time.prediction.median});
  };
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    const std::string& layer = job.layers[i].name;
    add_one(TaskKind::forward, layer, {run.layers[i].forward, prediction.layers[i].forward});
    add_one(TaskKind::backward, layer, {run.layers[i].backward, prediction.layers[i].backward});
  }
  for (std::size_t i = 0; i < job.buckets.size(); ++i) {
    const std::string bucket = fmt::format("bucket {}", i);
    const BucketTimes& a = run.buckets[i];
    const BucketTimes& b = prediction.buckets[i];
    add_one(TaskKind::cast, bucket, {a.cast, b.cast});
    add_one(TaskKind::pack, bucket, {a.pack, b.pack});
    for (const TaskKind sum : {TaskKind::all_reduce, TaskKind::reduce_scatter})
      add_one(sum, bucket, {a.transfer, b.transfer});
    add_one(TaskKind::unpack, bucket, {a.unpack, b.unpack});
  }
  return all;
}

ComparedSide side(const TracedTimeline& traced, const IterationTimes& times) {
  return {traced.timeline.title, traced.timeline.provenance, traced.timeline.rank, times.iterations,
          times.complete};
}

// The start of the iteration whose length is nearest to the median, or of the first one where none
// is followed by another.
Seconds typical_start(const TracedTimeline& traced) {
  const IterationTimes times = iteration_times(traced);
  const std::map<int, Seconds> starts = iteration_starts(traced.timeline);
  Seconds best = starts.begin()->second;
  std::optional<Seconds> least;
  for (auto at = starts.begin(); std::next(at) != starts.end(); ++at) {
    const auto next = std::next(at);
    if (next->first != at->first + 1) continue;
    const Seconds length = next->second - at->second;
    const Seconds off{std::abs((length - times.iteration.median).value())};
    if (least && off >= *least) continue;
    least = off;
    best = at->second;
  }
  return best;
}

}  // namespace

std::optional<Seconds> Compared::difference() const {
  if (!run.exists() || !prediction.exists()) return std::nullopt;
  return run.median - prediction.median;
}

std::optional<double> Compared::relative() const {
  const std::optional<Seconds> by = difference();
  if (!by || std::abs(prediction.median.value()) < 1e-9) return std::nullopt;
  return *by / prediction.median;
}

Seconds ComparedLayer::difference() const {
  return difference_or_0(forward) + difference_or_0(backward);
}

Comparison compare(const TracedTimeline& run, const TracedTimeline& prediction) {
  check_same_job(run, prediction);
  const IterationTimes a = iteration_times(run);
  const IterationTimes b = iteration_times(prediction);
  return {.run = side(run, a),
          .prediction = side(prediction, b),
          .job = run.job,
          .iteration = {a.iteration, b.iteration},
          .interval = prediction.timeline.interval,
          .parts = parts(a, b),
          .layers = layers(run.job, a, b),
          .buckets = buckets(run.job, a, b),
          .one_sided = one_sided(run.job, a, b),
          .notes = notes(run, prediction, a)};
}

std::vector<TracedTimeline> side_by_side(const TracedTimeline& run,
                                         const TracedTimeline& prediction) {
  const Seconds behind = typical_start(run) - iteration_starts(prediction.timeline).begin()->second;
  std::vector<TracedTimeline> both = {run, prediction};
  for (models::TimelineEvent& event : both[1].timeline.events) event.start += behind;
  std::optional<Seconds> first;
  for (const TracedTimeline& traced : both) {
    for (const models::TimelineEvent& event : traced.timeline.events)
      first = first ? std::min(*first, event.start) : event.start;
  }
  for (TracedTimeline& traced : both) {
    for (models::TimelineEvent& event : traced.timeline.events)
      event.start -= first.value_or(Seconds{0});
  }
  return both;
}

}  // namespace paceline::calibration
