// Records what a run did when, as the events of a models::Timeline.
//
// Thread safety: any thread may record.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "models/timeline/timeline.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

// How many iterations commands record: enough for a median beside which outliers are seen.
inline constexpr int recorded_iterations = 10;

class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  // Keeps the events of `count` iterations of this run from `first` on; the first event is at 0.
  Recorder(std::int64_t first, int count) : first_(first), count_(count) {}

  [[nodiscard]] bool records(std::int64_t iteration) const {
    return iteration >= first_ && iteration < first_ + count_;
  }
  // Ignored if the iteration is not recorded. `stream` numbers the communication streams.
  void record(models::TaskKind kind, models::Resource resource, int index, std::int64_t iteration,
              Clock::time_point start, Clock::time_point end, int stream = 0);

  // The events so far; the period is the mean time between the starts of iterations. `title` and
  // `rank` as in models::Timeline.
  [[nodiscard]] models::Timeline timeline(std::string title, int rank) const;

 private:
  struct Entry {
    models::TimelineEvent event;
    Clock::time_point start;
    Clock::time_point end;
  };
  std::int64_t first_ = 0;
  int count_ = 0;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Records each layer's forward and backward work of one iteration at a time.
class LayerRecorder final : public LayerObserver {
 public:
  explicit LayerRecorder(Recorder& recorder) : recorder_(recorder) {}
  void at(std::int64_t iteration) { iteration_ = iteration; }
  void began(bool backward, int layer) override;
  void ended(bool backward, int layer) override;
  // Ranks that share the layer out exchanged what it made, behind its forward pass or ahead of its backward pass.
  void exchanged(Recorder::Clock::time_point start, Recorder::Clock::time_point end);

 private:
  struct Exchange {
    Recorder::Clock::time_point start;
    Recorder::Clock::time_point end;
  };
  Recorder& recorder_;
  std::optional<Exchange> exchange_;  // of the layer at hand
  std::int64_t iteration_ = 0;
  Recorder::Clock::time_point start_;
};

}  // namespace paceline::runtime
