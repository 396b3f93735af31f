// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/message_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <span>

#include "calibration/fit/statistics.h"
#include "calibration/measure/message_patterns.h"
#include "models/base/error.h"

namespace paceline::calibration {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::Transport;

constexpr int most_repetitions = 200;
// The share of the time for messages that is kept for all-reduces that are larger than they are.
constexpr double share_above = 0.5;

int repetitions_in(double time, double cost) {
  return static_cast<int>(
      std::clamp(time / std::max(1e-7, cost), double{least_repetitions}, double{most_repetitions}));
}

// The samples of rank 0, which takes part in all patterns.
template <class F>
std::vector<Seconds> repeated(Transport& transport, int count, F pattern) {
  std::vector<Seconds> samples;
  for (int i = 0; i < count; ++i) {
    barrier(transport);
    samples.emplace_back(pattern());
  }
  if (transport.rank() != 0) samples.clear();
  return samples;
}

// The samples of rank 0 of what is played in a row. Each is the mean of two periods: a rank that is
// done goes on while others are not yet, and in some algorithms they take turns at that.
template <class F>
std::vector<Seconds> periods(Transport& transport, int count, F pattern) {
  std::vector<Seconds> samples;
  std::array<Clock::time_point, 2> ends;  // the last but one, and the last
  barrier(transport);
  for (int i = 0; i < count + 2; ++i) {
    pattern();
    const Clock::time_point end = Clock::now();
    if (i > 1) samples.emplace_back(std::chrono::duration<double>(end - ends[0]).count() / 2);
    ends = {ends[1], end};
  }
  if (transport.rank() != 0) samples.clear();
  return samples;
}

// How often `time` allows the pattern, as told by one repetition that opens connections and fills
// caches.
template <class F>
int repetitions_for(Transport& transport, double time, F pattern) {
  barrier(transport);
  const Clock::time_point start = Clock::now();
  (void)pattern();
  return repetitions_in(time, agreed(transport, seconds_since(start)));
}

// How often the first of `sizes` is tried, as rank 0 finds it, if `left` seconds are for all of
// them; 0 if it does not fit. Each is expected to take as long for a byte as the last one before
// did, and one repetition is kept for its taking longer.
int agreed_repetitions(Transport& transport, const std::vector<Sample>& before,
                       std::span<const std::int64_t> sizes, double left) {
  double repetitions = least_repetitions;
  if (!before.empty()) {
    const Bytes last = before.back().bytes;
    std::vector<double> times;
    for (const Sample& sample : before) {
      if (sample.bytes == last) times.push_back(sample.time.value());
    }
    const double of_a_byte = median(times) / last.value();
    const double cost = of_a_byte * static_cast<double>(sizes.front());
    const double of_all = of_a_byte * std::accumulate(sizes.begin(), sizes.end(), 0.0);
    // Periods take two more.
    repetitions = left < (least_repetitions + 3) * cost ? 0 : repetitions_in(left, of_all);
  }
  return static_cast<int>(agreed(transport, repetitions));
}

// Divides the time among patterns: a part of it, by weight, goes to the sizes up to `largest`, and
// what is left of the whole to the larger ones.
class Budget {
 public:
  Budget(const std::vector<Pattern>& list, std::int64_t largest, double time)
      : largest_(largest), time_(time) {
    double weights = 0;
    for (const Pattern& pattern : list) {
      sizes_ += pattern.sizes.size();
      weights +=
          pattern.weight * static_cast<double>(std::ranges::upper_bound(pattern.sizes, largest) -
                                               pattern.sizes.begin());
      if (goes_above(pattern)) weights_above_ += pattern.weight;
    }
    of_size_ = time * (weights_above_ > 0 ? 1 - share_above : 1) / std::max(1.0, weights);
  }
  // Seconds for a size up to `largest`.
  [[nodiscard]] double of_size(const Pattern& pattern) const { return pattern.weight * of_size_; }
  // Seconds for the larger sizes of a pattern that has them, when this much time has passed.
  [[nodiscard]] double above(const Pattern& pattern, double passed) const {
    return goes_above(pattern) ? (time_ - passed) * pattern.weight / weights_above_ : 0;
  }
  // The share of all sizes that is done, at the pattern's size `index`.
  [[nodiscard]] double share_done(std::size_t index) const {
    return static_cast<double>(sizes_done_ + index) / static_cast<double>(sizes_);
  }
  void done(const Pattern& pattern) {
    sizes_done_ += pattern.sizes.size();
    if (goes_above(pattern)) weights_above_ -= pattern.weight;
  }

 private:
  [[nodiscard]] bool goes_above(const Pattern& pattern) const {
    return pattern.sizes.back() > largest_;
  }

  std::int64_t largest_;
  double time_;
  double of_size_ = 0;
  double weights_above_ = 0;  // of the patterns that are not done
  std::size_t sizes_ = 0;
  std::size_t sizes_done_ = 0;
};

}  // namespace

std::vector<MessageTimes> measure_messages(Transport& transport, const NodeMap& nodes,
                                           const MessageRequest& request) {
  PACELINE_ASSERT(!request.sizes.empty(), "there are sizes to measure");
  const Clock::time_point start = Clock::now();
  const std::int64_t largest = request.sizes.back();
  const std::vector<std::int64_t>& all_reduce_sizes =
      request.all_reduce_sizes.empty() ? request.sizes : request.all_reduce_sizes;
  PatternPlayer play(transport, largest, transport.has_all_reduce() ? all_reduce_sizes.back() : 0);
  std::vector<Pattern> list = message_patterns(transport, nodes);
  for (Pattern& pattern : list)
    pattern.sizes =
        pattern.kind == models::CurveKind::all_reduce ? all_reduce_sizes : request.sizes;
  Budget budget(list, largest, agreed(transport, request.time.value()));
  std::vector<MessageTimes> all;
  for (const Pattern& pattern : list) {
    MessageTimes times{pattern.kind, pattern.between_nodes, pattern.ranks, {}};
    const double passed = seconds_since(start);
    const double end_above = passed + budget.above(pattern, passed);
    for (std::size_t i = 0; i < pattern.sizes.size(); ++i) {
      const std::int64_t size = pattern.sizes[i];
      const auto play_once = [&] { return play.once(pattern, size); };
      int repetitions = 0;  // to be found by a first one
      if (size > largest) {
        repetitions =
            agreed_repetitions(transport, times.samples, std::span(pattern.sizes).subspan(i),
                               end_above - seconds_since(start));
        if (repetitions == 0) break;
      }
      if (transport.rank() == 0 && request.progress)
        request.progress(fmt::format("{}, {} bytes", pattern.what, size), budget.share_done(i));
      if (repetitions == 0)
        repetitions = repetitions_for(transport, budget.of_size(pattern), play_once);
      const auto samples = pattern.kind == models::CurveKind::all_reduce
                               ? periods(transport, repetitions, play_once)
                               : repeated(transport, repetitions, play_once);
      for (const Seconds sample : samples)
        times.samples.push_back({Bytes{static_cast<double>(size)}, sample});
    }
    budget.done(pattern);
    all.push_back(std::move(times));
  }
  return all;
}

}  // namespace paceline::calibration
