// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/layer_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "calibration/fit/statistics.h"
#include "models/base/to_size.h"
#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/transport_channel.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/network/cpu_network.h"
#include "runtime/training/data/synthetic.h"

namespace paceline::calibration {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_iterations = 50;
constexpr Bytes most_traffic{256.0 * 1024 * 1024};
constexpr Bytes bucket{4.0 * 1024 * 1024};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void wait_for_all(runtime::Transport& transport) {
  runtime::TransportChannel channel(transport);
  runtime::barrier(channel);
}

// Rank 0's value, on all ranks.
double agreed(runtime::Transport& transport, double value) {
  runtime::TransportChannel channel(transport);
  runtime::broadcast(channel, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::int64_t elements_of(const std::vector<models::Gradient>& gradients) {
  return std::accumulate(
      gradients.begin(), gradients.end(), std::int64_t{0},
      [](std::int64_t sum, const models::Gradient& g) { return sum + g.elements; });
}

// The first gradients that have this many elements together; the last of them may be cut.
std::vector<models::Gradient> first_of(const std::vector<models::Gradient>& gradients,
                                       std::int64_t elements) {
  std::vector<models::Gradient> first;
  for (models::Gradient gradient : gradients) {
    if (elements <= 0) break;
    gradient.elements = std::min(gradient.elements, elements);
    elements -= gradient.elements;
    first.push_back(std::move(gradient));
  }
  return first;
}

// Gradients that travel between all ranks without a pause. Ranks compute at their own pace and yet
// start the same number of all-reduces: the first element says how many are done with what they
// measure, so that all see in the same one that they may stop.
class Traffic {
 public:
  Traffic(runtime::Transport& transport, const std::vector<models::Gradient>& gradients)
      : ranks_(transport.ranks()),
        last_(static_cast<int>(gradients.size()) - 1),
        exchange_(transport, plan_of(gradients, transport.ranks()),
                  runtime::parameter_places(gradients)) {
    for (auto& values : gradients_) values.assign(to_size(elements_of(gradients)), 0);
    start();
    start();
  }

  // Between two layers: goes on with as many as are back.
  void go_on() {
    while (exchange_.under_way() > 0 && exchange_.is_back()) finish();
  }
  // This rank has measured enough; others may have not.
  void is_done() { done_ = true; }
  [[nodiscard]] bool all_are_done() const { return all_done_; }
  // Waits for what is under way, as nothing new starts.
  void settle() {
    while (exchange_.under_way() > 0) finish();
  }

  // Seconds that one all-reduce of the gradients takes alone.
  static double time_of(runtime::Transport& transport,
                        const std::vector<models::Gradient>& gradients) {
    const std::vector<runtime::ParameterPlace> parameters = runtime::parameter_places(gradients);
    runtime::GradientExchange exchange(transport, plan_of(gradients, transport.ranks()),
                                       parameters);
    std::vector<float> values(to_size(elements_of(gradients)));
    double time = 0;
    for (int i = 0; i < 3; ++i) {  // the last is warm
      const Clock::time_point start = Clock::now();
      exchange.begin(values, i);
      exchange.ready(static_cast<int>(parameters.size()) - 1);
      (void)exchange.finish();
      time = seconds_since(start);
    }
    return time;
  }

 private:
  static models::Plan plan_of(const std::vector<models::Gradient>& gradients, int ranks) {
    return models::make_plan(models::strategy("fused-ring"), gradients, ranks,
                             models::WireType::fp32, {.fusion = bucket});
  }

  void start() {
    std::vector<float>& gradients = gradients_[to_size(started_ % 2)];
    gradients.front() = done_ ? 1.0F : 0.0F;
    exchange_.begin(gradients, started_++);
    exchange_.ready(last_);
  }
  void finish() {
    const auto which = to_size((started_ - exchange_.under_way()) % 2);
    (void)exchange_.finish();
    all_done_ = all_done_ || gradients_[which].front() >= static_cast<float>(ranks_);
    if (!all_done_) start();
  }

  int ranks_;
  bool done_ = false;
  bool all_done_ = false;
  std::int64_t started_ = 0;
  int last_;  // parameter
  std::array<std::vector<float>, 2> gradients_;
  runtime::GradientExchange exchange_;
};

// Gradients of the network that take at least so long to travel.
std::vector<models::Gradient> traffic_for(runtime::Transport& transport,
                                          const models::NetworkWork& network, double longest) {
  const std::int64_t all = network.parameters();
  const auto few = std::min(all, static_cast<std::int64_t>(bucket.value() / sizeof(float)));
  const double round =
      agreed(transport, Traffic::time_of(transport, first_of(network.gradients, few)));
  const double needed = std::ceil(longest / round * static_cast<double>(few));
  if (needed <= static_cast<double>(all))
    return first_of(network.gradients, std::max(few, static_cast<std::int64_t>(needed)));
  const double most =
      std::max(1.0, std::floor(most_traffic.value() / sizeof(float) / static_cast<double>(all)));
  const double times = std::ceil(needed / static_cast<double>(all));
  std::vector<models::Gradient> gradients = network.gradients;
  for (models::Gradient& gradient : gradients)
    gradient.elements *= static_cast<std::int64_t>(std::min(times, most));
  return gradients;
}

// Times of each layer and pass, one for each iteration.
class Stopwatch final : public runtime::LayerObserver {
 public:
  explicit Stopwatch(std::size_t layers) {
    for (auto& times : times_) times.resize(layers);
  }

  void began(bool /*backward*/, int /*layer*/) override {
    if (traffic != nullptr) traffic->go_on();
    start_ = Clock::now();
  }
  void ended(bool backward, int layer) override {
    now_[{backward, layer}] += seconds_since(start_);
  }
  void end_iteration() {
    for (const auto& [which, time] : now_)
      times_[which.first ? 1 : 0][to_size(which.second)].push_back(time);
    now_.clear();
  }
  void forget() { now_.clear(); }

  [[nodiscard]] double longest() const {
    double longest = 0;
    for (const auto& layers : times_) {
      for (const auto& times : layers) {
        for (const double time : times) longest = std::max(longest, time);
      }
    }
    return longest;
  }
  // Three seconds for each pass of each layer: the median, and the ends of its interval. Forward
  // comes before backward, and layer after layer. A pass that was not timed has zeros.
  [[nodiscard]] std::vector<float> medians() const {
    std::vector<float> all;
    for (std::size_t layer = 0; layer < times_[0].size(); ++layer) {
      for (const auto& pass : times_) {
        const std::vector<double>& times = pass[layer];
        const Interval interval = times.empty() ? Interval{} : median_interval(times);
        all.push_back(times.empty() ? 0.0F : static_cast<float>(median(times)));
        all.push_back(static_cast<float>(interval.low));
        all.push_back(static_cast<float>(interval.high));
      }
    }
    return all;
  }

  Traffic* traffic = nullptr;  // that goes on between layers; may be null

 private:
  std::array<std::vector<std::vector<double>>, 2> times_;  // forward, backward; of each layer
  std::map<std::pair<bool, int>, double> now_;
  Clock::time_point start_;
};

constexpr std::size_t figures_of_layer = 6;

// The network, with something to compute.
class Load {
 public:
  Load(const LayerTimesRequest& request, const models::NetworkWork& work)
      : network_(request.network, {.batch = request.batch,
                                   .storage = request.precision == models::Precision::mixed
                                                  ? models::NumberType::bf16
                                                  : models::NumberType::fp32,
                                   .threads = request.threads}),
        images_(to_size(work.input_elements * request.batch)),
        labels_(to_size(request.batch * network_.traits().labels)) {
    network_.set_weights(runtime::initial_weights(request.network, {}));
    const auto data = runtime::make_synthetic_dataset({.source = "synthetic",
                                                       .sample = request.network.input(),
                                                       .classes = network_.classes(),
                                                       .synthetic_samples = request.batch});
    const std::size_t elements = images_.size() / to_size(request.batch);
    const std::size_t labels = to_size(data->labels());
    for (std::size_t i = 0; i < to_size(request.batch); ++i)
      data->read(runtime::Part::training, static_cast<std::int64_t>(i), {}, 1,
                 std::span(images_).subspan(i * elements, elements),
                 std::span(labels_).subspan(i * labels, labels));
    gradients_.resize(to_size(network_.parameter_elements()));
  }

  void iterate(Stopwatch& stopwatch) {
    network_.observe(&stopwatch);
    (void)network_.forward(images_, labels_, runtime::Pass::training, 1);
    network_.backward(1.0F, gradients_);
  }

 private:
  runtime::CpuNetwork network_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  std::vector<float> gradients_;
};

// From the median and the ends of its interval, as Stopwatch::medians has them.
Figure<Seconds> figure(std::span<const float> seconds, const std::string& source) {
  return {Seconds{seconds[0]}, Seconds{seconds[1]}, Seconds{seconds[2]}, Provenance::measured,
          source};
}

// Among the figures of all ranks, those of the rank whose medians have the largest sum.
std::vector<float> slowest(const std::vector<float>& all, int ranks) {
  const std::size_t each = all.size() / to_size(ranks);
  std::vector<float> worst;
  double longest = -1;
  for (std::size_t rank = 0; rank < to_size(ranks); ++rank) {
    double sum = 0;
    for (std::size_t i = 0; i < each; i += 3) sum += static_cast<double>(all[rank * each + i]);
    if (sum <= longest) continue;
    longest = sum;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * each);
    worst.assign(first, first + static_cast<std::ptrdiff_t>(each));
  }
  return worst;
}

}  // namespace

std::vector<models::CalibratedLayer> measure_layers(runtime::Transport& transport,
                                                    const LayerTimesRequest& request,
                                                    const std::string& source) {
  const models::NetworkWork work = models::work(request.network);
  Load load(request, work);
  Stopwatch alone(work.layers.size());
  load.iterate(alone);
  alone.forget();
  wait_for_all(transport);
  const Clock::time_point start = Clock::now();
  load.iterate(alone);
  alone.end_iteration();
  const double fitting = request.time.value() / std::max(1e-6, seconds_since(start));
  const auto iterations = static_cast<int>(agreed(
      transport, std::max<double>(request.iterations, std::min<double>(most_iterations, fitting))));
  const auto say = [&](const char* which, int i) {
    if (transport.rank() == 0 && request.progress)
      request.progress(fmt::format("layers {}, pass {} of {}", which, i + 1, iterations),
                       static_cast<double>(i) / iterations);
  };
  for (int i = 1; i < iterations; ++i) {
    say("alone", i);
    wait_for_all(transport);
    load.iterate(alone);
    alone.end_iteration();
  }
  std::vector<float> figures = alone.medians();
  const bool has_traffic = transport.ranks() > 1 && work.parameters() > 0;
  if (has_traffic) {
    const double longest = agreed(transport, alone.longest());
    Stopwatch beside(work.layers.size());
    Traffic traffic(transport, traffic_for(transport, work, longest));
    beside.traffic = &traffic;
    // The first begins before the others may have: it does not count.
    for (int i = 0; i <= iterations; ++i) {
      say("beside traffic", std::max(0, i - 1));
      load.iterate(beside);
      i == 0 ? beside.forget() : beside.end_iteration();
    }
    traffic.is_done();
    while (!traffic.all_are_done()) {
      load.iterate(beside);
      beside.forget();
    }
    traffic.settle();
    const std::vector<float> more = beside.medians();
    figures.insert(figures.end(), more.begin(), more.end());
  }
  runtime::TransportChannel channel(transport);
  const std::vector<float> all = gather(channel, figures);
  std::vector<models::CalibratedLayer> layers;
  if (transport.rank() != 0) return layers;
  const std::vector<float> worst = slowest(all, transport.ranks());
  const std::span<const float> values(worst);
  for (std::size_t i = 0; i < work.layers.size(); ++i) {
    const auto at = values.subspan(figures_of_layer * i);
    layers.push_back({work.name, request.precision, request.batch, work.layers[i].name,
                      figure(at, source), figure(at.subspan(3), source)});
    if (!has_traffic) continue;
    const auto beside = values.subspan(figures_of_layer * (work.layers.size() + i));
    layers.back().forward_beside_traffic = figure(beside, source);
    layers.back().backward_beside_traffic = figure(beside.subspan(3), source);
  }
  return layers;
}

}  // namespace paceline::calibration
