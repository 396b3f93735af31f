// Tests: tests/models/rank_times_test.cc.
#include "models/timeline/rank_times.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/base/error.h"
#include "models/base/json_reader.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

using Events = std::vector<const TimelineEvent*>;
using Values = std::vector<Seconds>;

Seconds end_of(const TimelineEvent& event) {
  return event.start + event.duration;
}

Seconds median(Values values) {
  if (values.empty()) return Seconds{0};
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The part of [from, to) that is not before `free`.
Seconds clear_of(Seconds free, Seconds from, Seconds to) {
  return std::max(Seconds{0}, to - std::max(from, free));
}

// Where the tasks of a bucket begin and end in an iteration.
struct BucketSpan {
  bool travels = false;
  Seconds first;  // the start of the first task
  Seconds transfer_start;
  Seconds transfer_end;
  Seconds end;  // of the last task
};

// One iteration of a rank.
struct Iteration {
  Seconds start;
  Values forward;
  Values backward;
  Values backward_ends;
  Seconds passes_end;  // of the last backward pass
  Seconds update;
  Seconds update_end;
  std::vector<BucketSpan> buckets;
};

class Reader {
 public:
  explicit Reader(const TracedTimeline& traced) : job_(traced.job) {
    std::map<int, Events> iterations;
    for (const TimelineEvent& event : traced.timeline.events)
      iterations[event.iteration].push_back(&event);
    for (auto& [number, events] : iterations) {
      std::stable_sort(events.begin(), events.end(),
                       [](const auto* a, const auto* b) { return a->start < b->start; });
      const bool has_forward = std::any_of(events.begin(), events.end(), [](const auto* event) {
        return event->kind == TaskKind::forward;
      });
      if (has_forward) iterations_.push_back(read(events));
    }
  }

  [[nodiscard]] RankRecord record() {
    RankRecord record;
    std::vector<Seconds> free(to_size(std::max(1, job_.streams)));
    std::vector<Values> forward(job_.layers.size());
    std::vector<Values> backward(job_.layers.size());
    Values passes;
    Values updates;
    Values rests;
    Seconds summed;         // when the buckets of the iteration before were there
    Seconds summed_before;  // for double buffering, which updates by these
    for (std::size_t i = 0; i < iterations_.size(); ++i) {
      const Iteration& iteration = iterations_[i];
      Seconds sum;
      for (std::size_t layer = 0; layer < job_.layers.size(); ++layer) {
        forward[layer].push_back(iteration.forward[layer]);
        backward[layer].push_back(iteration.backward[layer]);
        sum += iteration.forward[layer] + iteration.backward[layer];
      }
      passes.push_back(sum);
      updates.push_back(iteration.update);
      record.buckets.push_back(uses(iteration, free));
      summed_before = summed;
      for (const BucketSpan& bucket : iteration.buckets) summed = std::max(summed, bucket.end);
      const bool is_last = i + 1 == iterations_.size();
      // The end of the last one is not known. It counts where there is no other.
      if (is_last && !rests.empty()) continue;
      const Seconds end = is_last ? iteration.update_end : iterations_[i + 1].start;
      const bool is_late = job_.overlap == Overlap::double_buffered;
      const Seconds there = std::max(iteration.passes_end, is_late ? summed_before : summed);
      rests.push_back(std::max(Seconds{0}, end - there - iteration.update));
    }
    for (const Values& values : forward) record.times.forward.push_back(median(values));
    for (const Values& values : backward) record.times.backward.push_back(median(values));
    const Seconds sum = record.times.passes();
    if (sum > Seconds{0}) {
      const double scale = median(passes) / sum;
      for (Values* times : {&record.times.forward, &record.times.backward}) {
        for (Seconds& time : *times) time *= scale;
      }
    }
    record.times.update = median(updates);
    record.times.rest = median(rests);
    return record;
  }

 private:
  [[nodiscard]] Iteration read(const Events& events) const {
    Iteration iteration;
    iteration.forward.resize(job_.layers.size());
    iteration.backward.resize(job_.layers.size());
    iteration.backward_ends.resize(job_.layers.size());
    iteration.buckets.resize(job_.buckets.size());
    const TimelineEvent* before = nullptr;
    bool begins = true;
    for (const TimelineEvent* event : events) {
      if (event->resource == Resource::communication) {
        add(*event, iteration);
        continue;
      }
      if (event->resource != Resource::compute) continue;
      if (begins && event->kind == TaskKind::forward) iteration.start = event->start;
      begins = begins && event->kind != TaskKind::forward;
      if (event->kind == TaskKind::update) {
        iteration.update += event->duration;
        iteration.update_end = std::max(iteration.update_end, end_of(*event));
        continue;
      }
      if (event->kind != TaskKind::forward && event->kind != TaskKind::backward) continue;
      // The task before takes until this one begins.
      if (before != nullptr) take(*before, event->start - before->start, iteration);
      before = event;
      if (event->kind == TaskKind::backward)
        iteration.backward_ends[to_size(event->index)] =
            std::max(iteration.backward_ends[to_size(event->index)], end_of(*event));
      iteration.passes_end = std::max(iteration.passes_end, end_of(*event));
    }
    if (before != nullptr) take(*before, before->duration, iteration);
    iteration.update_end = std::max(iteration.update_end, iteration.passes_end);
    return iteration;
  }

  static void take(const TimelineEvent& event, Seconds time, Iteration& iteration) {
    Values& times = event.kind == TaskKind::forward ? iteration.forward : iteration.backward;
    times[to_size(event.index)] += std::max(Seconds{0}, time);
  }

  static void add(const TimelineEvent& event, Iteration& iteration) {
    const bool is_task = event.kind == TaskKind::cast || event.kind == TaskKind::pack ||
                         event.kind == TaskKind::all_reduce || event.kind == TaskKind::unpack;
    if (!is_task) return;
    BucketSpan& bucket = iteration.buckets[to_size(event.index)];
    bucket.first = bucket.travels ? std::min(bucket.first, event.start) : event.start;
    bucket.end = bucket.travels ? std::max(bucket.end, end_of(event)) : end_of(event);
    bucket.travels = true;
    if (event.kind != TaskKind::all_reduce) return;
    bucket.transfer_start = event.start;
    bucket.transfer_end = end_of(event);
  }

  // `free` is when each stream is through with the bucket before.
  [[nodiscard]] std::vector<BucketUse> uses(const Iteration& iteration,
                                            std::vector<Seconds>& free) const {
    std::vector<BucketUse> all(job_.buckets.size());
    for (std::size_t b = 0; b < all.size(); ++b) {
      const BucketSpan& bucket = iteration.buckets[b];
      if (!bucket.travels) continue;
      Seconds& stream = free[b % free.size()];
      const Seconds ready = iteration.backward_ends[to_size(job_.buckets[b].ready_after)];
      all[b] = {.hand_over = clear_of(stream, ready, bucket.first),
                .made_ready = clear_of(stream, bucket.first, bucket.transfer_start),
                .transfer = clear_of(stream, bucket.transfer_start, bucket.transfer_end),
                .unpack = clear_of(stream, bucket.transfer_end, bucket.end)};
      stream = std::max(stream, bucket.end);
    }
    return all;
  }

  const TracedJob& job_;
  std::vector<Iteration> iterations_;
};

constexpr Seconds longest{1e9};  // 31 years

Seconds time_at(const JsonValue& value) {
  return Seconds{value.number(0, longest.value())};
}

// One time for each of this many things.
Values times_at(const JsonValue& values, std::size_t expected, const char* what) {
  Values times;
  values.for_each([&](const JsonValue& value) { times.push_back(time_at(value)); }, expected);
  if (times.size() != expected)
    values.fail(std::to_string(times.size()) + " times of " + std::to_string(expected) + " " + what,
                "give a timeline as paceline train and replay write it (--timeline)");
  return times;
}

}  // namespace

Seconds RankTimes::passes() const {
  Seconds sum;
  for (const Values* times : {&forward, &backward}) {
    for (const Seconds time : *times) sum += time;
  }
  return sum;
}

RankRecord rank_record(const TracedTimeline& traced) {
  return Reader(traced).record();
}

RunTimes run_times(const std::vector<RankRecord>& records) {
  PACELINE_ASSERT(!records.empty(), "a run has a rank");
  RunTimes run;
  for (const RankRecord& record : records) run.ranks.push_back(record.times);
  std::size_t iterations = records.front().buckets.size();
  for (const RankRecord& record : records) iterations = std::min(iterations, record.buckets.size());
  const std::size_t buckets = iterations == 0 ? 0 : records.front().buckets.front().size();
  for (std::size_t b = 0; b < buckets; ++b) {
    Values least;
    for (std::size_t i = 0; i < iterations; ++i) {
      Seconds transfer = records.front().buckets[i][b].transfer;
      for (const RankRecord& record : records)
        transfer = std::min(transfer, record.buckets[i][b].transfer);
      least.push_back(transfer);
    }
    run.transfers.push_back(median(least));
  }
  return run;
}

std::vector<float> packed(const RankRecord& record, const TracedJob& job, int most) {
  std::vector<float> numbers;
  const auto add = [&numbers](Seconds time) {
    numbers.push_back(static_cast<float>(time.value()));
  };
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    add(record.times.forward[i]);
    add(record.times.backward[i]);
  }
  add(record.times.update);
  add(record.times.rest);
  numbers.push_back(static_cast<float>(std::min(record.buckets.size(), to_size(most))));
  for (std::size_t i = 0; i < to_size(most); ++i) {
    for (std::size_t b = 0; b < job.buckets.size(); ++b)
      add(i < record.buckets.size() ? record.buckets[i][b].transfer : Seconds{0});
  }
  return numbers;
}

RankRecord unpacked(std::span<const float> numbers, const TracedJob& job) {
  RankRecord record;
  std::size_t next = 0;
  const auto take = [&] {
    PACELINE_ASSERT(next < numbers.size(), "a record has all its numbers");
    return Seconds{numbers[next++]};
  };
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    record.times.forward.push_back(take());
    record.times.backward.push_back(take());
  }
  record.times.update = take();
  record.times.rest = take();
  const int iterations = static_cast<int>(take().value());
  for (int i = 0; i < iterations; ++i) {
    record.buckets.emplace_back();
    for (std::size_t b = 0; b < job.buckets.size(); ++b)
      record.buckets.back().push_back(
          {.hand_over = {}, .made_ready = {}, .transfer = take(), .unpack = {}});
  }
  return record;
}

RunTimes parse_run_times(std::string_view text, const std::string& file, const TracedJob& job) {
  const JsonDocument document(text, file, "the timeline",
                              "give a timeline as paceline train and replay write it (--timeline)");
  const JsonValue root = document.root();
  const JsonValue other = root.at("otherData");
  if (!other.has("rank_times")) return {};
  const JsonValue times = other.at("rank_times");
  RunTimes run;
  run.transfers = times_at(times.at("transfers_s"), job.buckets.size(), "buckets");
  times.at("ranks").for_each(
      [&](const JsonValue& rank) {
        run.ranks.push_back(
            {.forward = times_at(rank.at("forward_s"), job.layers.size(), "layers"),
             .backward = times_at(rank.at("backward_s"), job.layers.size(), "layers"),
             .update = time_at(rank.at("update_s")),
             .rest = time_at(rank.at("rest_s"))});
      },
      to_size(job.ranks));
  if (run.ranks.size() != to_size(job.ranks))
    times.at("ranks").fail(
        std::to_string(run.ranks.size()) + " ranks of " + std::to_string(job.ranks),
        "give a timeline as paceline train and replay write it (--timeline)");
  return run;
}

}  // namespace paceline::models
