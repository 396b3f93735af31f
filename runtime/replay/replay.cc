// Tests: tests/runtime/loop/replay_test.cc.
#include "runtime/replay/replay.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <span>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/exchange/unit_weights.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {
namespace {

using Clock = Recorder::Clock;

// Sleeps until a point in time, and not for a duration, so that a sleep that ends late does not
// make the next one later.
void sleep_until(Clock::time_point when) {
  const auto since = when.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  const timespec time{.tv_sec = seconds.count(),
                      .tv_nsec = std::chrono::nanoseconds(since - seconds).count()};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

Clock::duration duration_of(Seconds time) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value()));
}

void check(const ReplayRequest& request) {
  if (request.iterations < 1 || request.warm_up < 1)
    throw InputError(
        fmt::format("{} iterations after {} to warm up", request.iterations, request.warm_up),
        "ask for at least one of each");
  if (request.network.layers.empty() || request.layers.size() != request.network.layers.size())
    throw InputError(fmt::format("durations of {} layers for a network of {}",
                                 request.layers.size(), request.network.layers.size()),
                     "give one for each layer");
}

class Player {
 public:
  Player(Transport& transport, const ReplayRequest& request)
      : request_(request),
        places_(parameter_places(request.network.gradients)),
        exchange_(transport, request.plan, places_, request.recorder),
        ranks_(transport.ranks()),
        waits_(request.plan.only_waits()),
        lag_(request.plan.overlap == models::Overlap::double_buffered ? 1 : 0) {
    const std::int64_t elements =
        places_.empty() ? 0 : places_.back().offset + places_.back().elements;
    for (int i = 0; i <= lag_; ++i) gradients_[to_size(i)].assign(to_size(elements), 1.0F);
    if (exchange_.is_sharded() && ranks_ > 1) make_units(elements);
  }

  ReplayOutcome play() {
    ReplayOutcome outcome;
    Clock::time_point last = Clock::now();
    const int all = request_.warm_up + request_.iterations;
    for (int iteration = 0; iteration < all; ++iteration) {
      const Seconds exposed = iterate(iteration);
      const Clock::time_point now = Clock::now();
      if (iteration >= request_.warm_up) {
        outcome.iterations.emplace_back(std::chrono::duration<double>(now - last).count());
        outcome.exposed.push_back(exposed);
      }
      last = now;
    }
    while (exchange_.under_way() > 0) (void)exchange_.finish();
    if (units_) units_->arrive();  // peers may wait for what this rank has asked for
    return outcome;
  }

 private:
  // A rank has ones in its own parts of the weights, and zeros elsewhere until they are gathered.
  void make_units(std::int64_t elements) {
    weights_.assign(to_size(elements), 0.0F);
    for (const models::Elements& part : exchange_.own())
      std::fill_n(weights_.begin() + part.begin, part.size, 1.0F);
    units_.emplace(places_, request_.plan, exchange_, view_of(std::span(weights_)),
                   request_.layers.size());
    units_->serve({check_weights, [](int, int) {}});
  }
  static void check_weights(const ArrayView& values, int /*first*/, int /*count*/) {
    const std::span<const float> all = host_floats(ConstArrayView(values));
    const auto wrong = std::ranges::find_if(all, [](float v) { return v != 1.0F; });
    if (wrong != all.end())
      throw RunError("all-gather",
                     fmt::format("element {} is {} and not 1", wrong - all.begin(), *wrong));
  }

  // A layer begins when its weights are there. Until then the time of layers stands still.
  void begin(bool backward, std::size_t layer) {
    if (!units_ || !units_->lacks(static_cast<int>(layer))) return;
    sleep_until(deadline_);
    const Clock::time_point awake = Clock::now();
    units_->began(backward, static_cast<int>(layer));
    deadline_ += Clock::now() - awake;
  }
  void end(bool backward, std::size_t layer) {
    if (units_) units_->ended(backward, static_cast<int>(layer));
  }

  // The number that the recorder knows an iteration by: it counts from the first that is reported.
  [[nodiscard]] std::int64_t numbered(int iteration) const { return iteration - request_.warm_up; }
  std::vector<float>& gradients(int iteration) {
    return gradients_[to_size(lag_ == 0 ? 0 : iteration % 2)];
  }

  Seconds iterate(int iteration) {
    deadline_ = Clock::now();
    if (units_) units_->at(numbered(iteration), nullptr);
    for (std::size_t i = 0; i < request_.layers.size(); ++i) {
      begin(false, i);
      compute(models::TaskKind::forward, static_cast<int>(i), request_.layers[i].forward,
              iteration);
      end(false, i);
    }
    sleep_until(deadline_);
    exchange_.begin(gradients(iteration), numbered(iteration));
    next_bucket_ = 0;
    std::size_t next = 0;
    for (std::size_t i = request_.layers.size(); i-- > 0;) {
      begin(true, i);
      compute(models::TaskKind::backward, static_cast<int>(i), request_.layers[i].backward,
              iteration);
      end(true, i);
      const std::size_t first = next;
      while (next < places_.size() && places_[next].layer == static_cast<int>(i)) ++next;
      if (next == first) continue;
      give_until(deadline_);
      const Clock::time_point awake = Clock::now();
      give(static_cast<int>(next) - 1);
      if (units_) deadline_ += Clock::now() - awake;  // fsdp waits for earlier buckets
    }
    give_until(deadline_);
    const Clock::time_point end_of_backward = Clock::now();
    give_until(held_.empty() ? deadline_ : held_.back().when);
    const Clock::time_point given = Clock::now();
    Seconds exposed{0};
    if (iteration >= lag_) {
      exposed = exchange_.finish().exposed +
                Seconds{std::chrono::duration<double>(given - end_of_backward).count()};
      if (iteration == lag_) check_sums(iteration - lag_);
    }
    const Clock::time_point start = Clock::now();
    sleep_until(start + duration_of(request_.update));
    record(models::TaskKind::update, -1, iteration, start, Clock::now());
    if (units_) {
      units_->refresh();
      exposed += units_->take_waited();
    }
    return exposed;
  }

  // The gradients up to `last` are there. A bucket of a system with cycles waits from when its last
  // gradient is there until the system looks for it.
  void give(int last) {
    const std::vector<models::Bucket>& buckets = request_.plan.buckets;
    if (!waits_) return exchange_.ready(last);
    for (; next_bucket_ < buckets.size(); ++next_bucket_) {
      const models::Bucket& bucket = buckets[next_bucket_];
      const int last_of_bucket = bucket.first_gradient + bucket.gradient_count - 1;
      if (last_of_bucket > last) return;
      Clock::time_point when = deadline_ + duration_of(bucket.wait);
      if (!held_.empty()) when = std::max(when, held_.back().when);
      held_.push_back({when, last_of_bucket});
    }
  }

  // Sleeps, and gives buckets that waited to the exchange when their time has come.
  void give_until(Clock::time_point when) {
    while (!held_.empty() && held_.front().when <= when) {
      sleep_until(held_.front().when);
      exchange_.ready(held_.front().last_gradient);
      held_.pop_front();
    }
    sleep_until(when);
  }

  // Lets a layer's stated time pass from the end of the layer before. The thread does not wake for
  // it.
  void compute(models::TaskKind kind, int layer, Seconds time, int iteration) {
    const Clock::time_point start = deadline_;
    deadline_ += duration_of(time);
    record(kind, layer, iteration, start, deadline_);
  }

  void record(models::TaskKind kind, int index, int iteration, Clock::time_point start,
              Clock::time_point end) {
    if (request_.recorder != nullptr)
      request_.recorder->record(kind, models::Resource::compute, index, numbered(iteration), start,
                                end);
  }

  // Checks the sums of the ones that every rank gave. The gradients are zeros from then on, whose
  // sums are zeros.
  void check_sums(int iteration) {
    const auto sum = static_cast<float>(ranks_);
    std::vector<float>& values = gradients(iteration);
    for (const models::Elements& part : exchange_.own()) {
      const auto own = std::span(values).subspan(to_size(part.begin), to_size(part.size));
      const auto wrong = std::ranges::find_if(own, [sum](float v) { return v != sum; });
      if (wrong != own.end())
        throw RunError("all-reduce", fmt::format("element {} is {} and not {}",
                                                 part.begin + (wrong - own.begin()), *wrong, sum));
    }
    for (std::vector<float>& g : gradients_) {
      if (lag_ == 0 || &g == &values) std::fill(g.begin(), g.end(), 0.0F);
    }
  }

  const ReplayRequest& request_;
  std::vector<ParameterPlace> places_;
  std::array<std::vector<float>, 2> gradients_;  // of iterations in turn
  // These are for sharded plans. The exchange ends before what travels by it.
  std::vector<float> weights_;
  std::optional<UnitWeights> units_;
  GradientExchange exchange_;
  int ranks_;
  bool waits_;                   // whether a bucket of the plan waits for a cycle
  std::size_t next_bucket_ = 0;  // whose last gradient is not there yet, in this iteration
  struct Held {
    Clock::time_point when;
    int last_gradient;
  };
  std::deque<Held> held_;
  int lag_;  // iterations between a gradient and its update
  Clock::time_point deadline_;
};

}  // namespace

ReplayOutcome replay(Transport& transport, const ReplayRequest& request) {
  check(request);
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  return Player(transport, request).play();
}

}  // namespace paceline::runtime
