// Tests: tests/calibration/comparison_test.cc.
#include "calibration/compare/iteration_times.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "calibration/fit/statistics.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using models::Resource;
using models::TaskKind;
using models::TimelineEvent;

using Events = std::vector<const TimelineEvent*>;
using Values = std::vector<Seconds>;

Seconds end_of(const TimelineEvent& event) {
  return event.start + event.duration;
}

void sort_by_start(Events& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const auto* a, const auto* b) { return a->start < b->start; });
}

// A task in one iteration. One that is recorded in several pieces counts as one.
struct Occurrence {
  Seconds start;
  Seconds end;
  Seconds duration;
  bool exists = false;

  void add(const TimelineEvent& event) {
    start = exists ? std::min(start, event.start) : event.start;
    end = exists ? std::max(end, end_of(event)) : end_of(event);
    duration += event.duration;
    exists = true;
  }
};

// A sum of gradients over ranks. In a sharded plan each rank gets a part of it.
bool is_sum(TaskKind kind) {
  return kind == TaskKind::all_reduce || kind == TaskKind::reduce_scatter;
}

struct LayerValues {
  Values forward;
  Values backward;
};

struct BucketValues {
  Values ready, wait, cast, pack, transfer, unpack;
};

struct BucketTasks {
  Occurrence cast, pack, transfer, unpack;

  void add(const TimelineEvent& event) {
    if (event.kind == TaskKind::cast) cast.add(event);
    if (event.kind == TaskKind::pack) pack.add(event);
    if (is_sum(event.kind)) transfer.add(event);
    if (event.kind == TaskKind::unpack) unpack.add(event);
  }
  [[nodiscard]] std::optional<Seconds> start() const {
    std::optional<Seconds> first;
    for (const Occurrence* task : {&cast, &pack, &transfer}) {
      if (task->exists) first = first ? std::min(*first, task->start) : task->start;
    }
    return first;
  }
};

void append(const Occurrence& task, Values& values) {
  if (task.exists) values.push_back(task.duration);
}

// What the compute stream does in an iteration.
struct Parts {
  Seconds length;  // of the iteration; to the last task's end, where no other follows
  Seconds forward;
  Seconds backward;
  Seconds update;
  Seconds between_layers;
  Seconds between_iterations;
  Seconds exposed;
  Seconds exposed_idle;
  Values exposed_buckets;
};

class Collector {
 public:
  explicit Collector(const models::TracedTimeline& traced)
      : job_(traced.job),
        starts_(iteration_starts(traced.timeline)),
        layers_(job_.layers.size()),
        buckets_(job_.buckets.size()) {
    for (const TimelineEvent& event : traced.timeline.events) {
      iterations_[event.iteration].push_back(&event);
      const bool is_update = event.kind == TaskKind::update && event.index >= 0;
      if (event.resource == Resource::communication && (is_of_bucket(event) || is_update))
        communication_.push_back(&event);
    }
    for (auto& [iteration, events] : iterations_) sort_by_start(events);
    sort_by_start(communication_);
  }

  [[nodiscard]] IterationTimes times() {
    for (const auto& [iteration, events] : iterations_) {
      add_totals(events);
      const auto start = starts_.find(iteration);
      if (start == starts_.end()) continue;
      add_tasks(events, start->second);
      const auto next = std::next(start);
      const bool is_complete = next != starts_.end() && next->first == iteration + 1;
      if (is_complete)
        complete_.push_back(walk(events, start->second, next->second));
      else
        incomplete_.push_back(walk(events, start->second, std::nullopt));
    }
    const std::vector<Parts>& all = complete_.empty() ? incomplete_ : complete_;
    const auto part = [&all](Seconds Parts::*member) {
      Values values;
      for (const Parts& parts : all) values.push_back(parts.*member);
      return spread(std::move(values));
    };
    IterationTimes times{
        .iterations = static_cast<int>(starts_.size()),
        .complete = static_cast<int>(complete_.size()),
        .iteration = part(&Parts::length),
        .forward = part(&Parts::forward),
        .backward = part(&Parts::backward),
        .update = part(&Parts::update),
        .exposed = part(&Parts::exposed),
        .exposed_idle = part(&Parts::exposed_idle),
        .between_layers = part(&Parts::between_layers),
        .between_iterations = complete_.empty() ? Spread{} : part(&Parts::between_iterations),
        .layers = {},
        .buckets = {},
        .totals = {}};
    for (const LayerValues& layer : layers_)
      times.layers.push_back({spread(layer.forward), spread(layer.backward)});
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const BucketValues& b = buckets_[i];
      Values exposed;
      for (const Parts& parts : all) exposed.push_back(parts.exposed_buckets[i]);
      times.buckets.push_back({spread(b.ready), spread(b.wait), spread(b.cast), spread(b.pack),
                               spread(b.transfer), spread(b.unpack), spread(std::move(exposed))});
    }
    for (const auto& [kind, values] : totals_)
      times.totals[kind] = {spread(values), most_tasks_[kind]};
    return times;
  }

 private:
  static bool is_of_bucket(const TimelineEvent& event) {
    return event.kind == TaskKind::cast || event.kind == TaskKind::pack || is_sum(event.kind) ||
           event.kind == TaskKind::unpack;
  }

  void add_totals(const Events& events) {
    std::map<TaskKind, std::pair<Seconds, int>> sums;
    for (const TimelineEvent* event : events) {
      sums[event->kind].first += event->duration;
      ++sums[event->kind].second;
    }
    for (const auto& [kind, sum] : sums) {
      totals_[kind].push_back(sum.first);
      most_tasks_[kind] = std::max(most_tasks_[kind], sum.second);
    }
  }

  void add_tasks(const Events& events, Seconds start) {
    std::vector<Occurrence> forward(layers_.size());
    std::vector<Occurrence> backward(layers_.size());
    std::vector<BucketTasks> buckets(buckets_.size());
    for (const TimelineEvent* event : events) {
      const auto index = to_size(event->index);
      if (event->kind == TaskKind::forward) forward[index].add(*event);
      if (event->kind == TaskKind::backward) backward[index].add(*event);
      if (is_of_bucket(*event)) buckets[index].add(*event);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      append(forward[i], layers_[i].forward);
      append(backward[i], layers_[i].backward);
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const BucketTasks& tasks = buckets[i];
      BucketValues& values = buckets_[i];
      append(tasks.cast, values.cast);
      append(tasks.pack, values.pack);
      append(tasks.transfer, values.transfer);
      append(tasks.unpack, values.unpack);
      const auto layer = to_size(job_.buckets[i].ready_after);
      if (layer >= backward.size() || !backward[layer].exists) continue;
      const Seconds ready =
          std::min(backward[layer].end, tasks.start().value_or(backward[layer].end));
      values.ready.push_back(ready - start);
      if (tasks.transfer.exists)
        values.wait.push_back(tasks.transfer.start - ready - tasks.cast.duration -
                              tasks.pack.duration);
    }
  }

  // Puts the gap [from, to) down to buckets.
  void expose(Seconds from, Seconds to, Parts& parts) const {
    for (const TimelineEvent* event : communication_) {
      if (event->start >= to) break;
      const Seconds end = std::min(to, end_of(*event));
      if (end <= from) continue;
      if (event->start > from) {
        parts.exposed_idle += event->start - from;
        from = event->start;
      }
      parts.exposed += end - from;
      parts.exposed_buckets[to_size(event->index)] += end - from;
      from = end;
    }
    parts.exposed_idle += to - from;
  }

  [[nodiscard]] Parts walk(const Events& events, Seconds start, std::optional<Seconds> next) const {
    Parts parts;
    parts.exposed_buckets.resize(buckets_.size());
    Seconds at = start;
    const bool is_by_layer = job_.overlap == models::Overlap::priority;
    for (const TimelineEvent* event : events) {
      if (event->resource != Resource::compute) continue;
      if (event->start > at) {
        const bool waits =
            event->kind == TaskKind::update || (is_by_layer && event->kind == TaskKind::forward);
        if (waits)
          expose(at, event->start, parts);
        else
          parts.between_layers += event->start - at;
        at = event->start;
      }
      const Seconds busy = std::max(Seconds{0}, end_of(*event) - at);
      if (event->kind == TaskKind::forward)
        parts.forward += busy;
      else if (event->kind == TaskKind::backward)
        parts.backward += busy;
      else if (event->kind == TaskKind::update)
        parts.update += busy;
      else
        parts.between_layers += busy;
      at += busy;
    }
    if (next && *next > at) {
      if (is_by_layer)
        expose(at, *next, parts);
      else
        parts.between_iterations += *next - at;
    }
    parts.length = next.value_or(at) - start;
    return parts;
  }

  const models::TracedJob& job_;
  std::map<int, Seconds> starts_;
  std::map<int, Events> iterations_;
  Events communication_;
  std::vector<LayerValues> layers_;
  std::vector<BucketValues> buckets_;
  std::vector<Parts> complete_;
  std::vector<Parts> incomplete_;
  std::map<TaskKind, Values> totals_;
  std::map<TaskKind, int> most_tasks_;
};

}  // namespace

Spread spread(std::vector<Seconds> values) {
  if (values.empty()) return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {median(values), *least, *most, static_cast<int>(values.size())};
}

IterationTimes iteration_times(const models::TracedTimeline& traced) {
  return Collector(traced).times();
}

std::map<int, Seconds> iteration_starts(const models::Timeline& timeline) {
  std::map<int, Seconds> starts;
  for (const TimelineEvent& event : timeline.events) {
    if (event.kind != TaskKind::forward) continue;
    const auto [entry, is_new] = starts.try_emplace(event.iteration, event.start);
    if (!is_new) entry->second = std::min(entry->second, event.start);
  }
  return starts;
}

}  // namespace paceline::calibration
