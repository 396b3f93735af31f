// Tests: tests/runtime/loop/trainer_test.cc.
#include "runtime/exchange/recorder.h"

#include <algorithm>

namespace paceline::runtime {
namespace {

Seconds between(Recorder::Clock::time_point start, Recorder::Clock::time_point end) {
  return Seconds{std::chrono::duration<double>(end - start).count()};
}

}  // namespace

void Recorder::record(models::TaskKind kind, models::Resource resource, int index,
                      std::int64_t iteration, Clock::time_point start, Clock::time_point end,
                      int stream) {
  if (!records(iteration)) return;
  const std::lock_guard lock(mutex_);
  entries_.push_back({{.kind = kind,
                       .resource = resource,
                       .stream = stream,
                       .index = index,
                       .iteration = static_cast<int>(iteration - first_),
                       .start = {},
                       .duration = between(start, end)},
                      start,
                      end});
}

models::Timeline Recorder::timeline(std::string title, int rank) const {
  const std::lock_guard lock(mutex_);
  models::Timeline timeline{.title = std::move(title),
                            .provenance = "measured",
                            .rank = rank,
                            .period = {},
                            .events = {}};
  if (entries_.empty()) return timeline;
  Clock::time_point origin = entries_.front().start;
  for (const Entry& entry : entries_) origin = std::min(origin, entry.start);
  Seconds first_forward{-1};
  Seconds last_forward{-1};
  int last_iteration = 0;
  for (const Entry& entry : entries_) {
    models::TimelineEvent event = entry.event;
    event.start = between(origin, entry.start);
    const bool begins = event.kind == models::TaskKind::forward &&
                        (first_forward < Seconds{0} || event.iteration > last_iteration);
    if (begins) {
      if (first_forward < Seconds{0}) first_forward = event.start;
      last_forward = event.start;
      last_iteration = event.iteration;
    }
    timeline.events.push_back(event);
  }
  if (last_iteration > 0)
    timeline.period = (last_forward - first_forward) * (1.0 / static_cast<double>(last_iteration));
  return timeline;
}

void LayerRecorder::began(bool /*backward*/, int /*layer*/) {
  start_ = Recorder::Clock::now();
}

void LayerRecorder::ended(bool backward, int layer) {
  Recorder::Clock::time_point end = Recorder::Clock::now();
  if (exchange_) {
    recorder_.record(models::TaskKind::exchange, models::Resource::communication, layer, iteration_,
                     exchange_->start, exchange_->end);
    if (backward)
      start_ = exchange_->end;
    else
      end = exchange_->start;
    exchange_.reset();
  }
  recorder_.record(backward ? models::TaskKind::backward : models::TaskKind::forward,
                   models::Resource::compute, layer, iteration_, start_, end);
}

void LayerRecorder::exchanged(Recorder::Clock::time_point start, Recorder::Clock::time_point end) {
  exchange_ = {exchange_ ? exchange_->start : start, end};
}

}  // namespace paceline::runtime
