// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/layer_times.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "runtime/network/trainable_network.h"
#include "runtime/training/gradient_exchange.h"
#include "runtime/transport/messages.h"

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
  std::array<double, 1> nothing{};
  sum_over_ranks(transport, nothing);
}

// Rank 0's.
double agreed(runtime::Transport& transport, double value) {
  broadcast(transport, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

// Gradients that travel between all ranks without a pause. Ranks compute at their own pace and yet
// start the same number of all-reduces: the first element says how many are done with what they
// measure, so that all see in the same one that they may stop.
class Traffic {
 public:
  Traffic(runtime::Transport& transport, const models::NetworkWork& network, std::int64_t scale)
      : ranks_(transport.ranks()),
        last_(static_cast<int>(network.gradients.size()) - 1),
        exchange_(transport, plan_of(network, scale, transport.ranks()), places(network, scale)) {
    for (auto& gradients : gradients_)
      gradients.assign(static_cast<std::size_t>(scale * network.parameters()), 0);
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

  // One of them alone, in seconds.
  static double time_of(runtime::Transport& transport, const models::NetworkWork& network) {
    const std::vector<runtime::ParameterPlace> parameters = places(network, 1);
    runtime::GradientExchange exchange(transport, plan_of(network, 1, transport.ranks()),
                                       parameters);
    std::vector<float> gradients(static_cast<std::size_t>(network.parameters()));
    double time = 0;
    for (int i = 0; i < 3; ++i) {  // the last is warm
      const Clock::time_point start = Clock::now();
      exchange.begin(gradients, i);
      exchange.ready(static_cast<int>(parameters.size()) - 1);
      (void)exchange.finish();
      time = seconds_since(start);
    }
    return time;
  }

 private:
  static models::Plan plan_of(const models::NetworkWork& network, std::int64_t scale, int ranks) {
    std::vector<models::Gradient> gradients = network.gradients;
    for (models::Gradient& gradient : gradients) gradient.elements *= scale;
    return models::make_plan(models::strategy("fused-ring"), gradients, ranks,
                             models::WireType::fp32, {.fusion = bucket});
  }
  static std::vector<runtime::ParameterPlace> places(const models::NetworkWork& network,
                                                     std::int64_t scale) {
    std::vector<runtime::ParameterPlace> places;
    std::int64_t offset = 0;
    for (const models::Gradient& gradient : network.gradients) {
      places.push_back({.name = gradient.name,
                        .shape = {},
                        .offset = offset,
                        .elements = scale * gradient.elements,
                        .layer = gradient.layer});
      offset += scale * gradient.elements;
    }
    return places;
  }

  void start() {
    std::vector<float>& gradients = gradients_[static_cast<std::size_t>(started_ % 2)];
    gradients.front() = done_ ? 1.0F : 0.0F;
    exchange_.begin(gradients, started_++);
    exchange_.ready(last_);
  }
  void finish() {
    const auto which = static_cast<std::size_t>((started_ - exchange_.under_way()) % 2);
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
      times_[which.first ? 1 : 0][static_cast<std::size_t>(which.second)].push_back(time);
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
  // Median and quartiles of forward, then of backward, layer after layer.
  [[nodiscard]] std::vector<float> quartiles() const {
    std::vector<float> all;
    for (std::size_t layer = 0; layer < times_[0].size(); ++layer) {
      for (const auto& pass : times_) {
        std::vector<double> times = pass[layer];
        std::sort(times.begin(), times.end());
        for (const std::size_t quarter : {2, 1, 3})
          all.push_back(
              times.empty() ? 0.0F : static_cast<float>(times[quarter * (times.size() - 1) / 4]));
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
        images_(static_cast<std::size_t>(work.input_elements * request.batch)),
        labels_(static_cast<std::size_t>(request.batch)) {
    network_.set_weights(runtime::initial_weights(request.network, {}));
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::generate(images_.begin(), images_.end(), [&] { return normal(random); });
    for (std::size_t i = 0; i < labels_.size(); ++i)
      labels_[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(network_.classes()));
    gradients_.resize(static_cast<std::size_t>(network_.parameter_elements()));
  }

  void iterate(Stopwatch& stopwatch) {
    network_.observe(&stopwatch);
    (void)network_.forward(images_, labels_, runtime::Pass::training, 1);
    network_.backward(1.0F, gradients_);
  }

 private:
  runtime::TrainableNetwork network_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  std::vector<float> gradients_;
};

Figure<Seconds> figure(std::span<const float> quartiles, const std::string& source) {
  return {Seconds{quartiles[0]}, Seconds{quartiles[1]}, Seconds{quartiles[2]}, Provenance::measured,
          source};
}

// Of all ranks' figures, those of the rank whose medians have the largest sum.
std::vector<float> slowest(const std::vector<float>& all, int ranks) {
  const std::size_t each = all.size() / static_cast<std::size_t>(ranks);
  std::vector<float> worst;
  double longest = -1;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
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
  for (int i = 1; i < iterations; ++i) {
    wait_for_all(transport);
    load.iterate(alone);
    alone.end_iteration();
  }
  std::vector<float> figures = alone.quartiles();
  const bool has_traffic = transport.ranks() > 1 && work.parameters() > 0;
  if (has_traffic) {
    const double round = agreed(transport, Traffic::time_of(transport, work));
    const double longest = agreed(transport, alone.longest());
    const double least_scale = std::ceil(longest / round);
    const double most_scale =
        std::floor(most_traffic.value() / (4.0 * static_cast<double>(work.parameters())));
    const auto scale =
        static_cast<std::int64_t>(std::clamp(least_scale, 1.0, std::max(1.0, most_scale)));
    Stopwatch beside(work.layers.size());
    Traffic traffic(transport, work, scale);
    beside.traffic = &traffic;
    // The first begins before the others may have: it does not count.
    for (int i = 0; i <= iterations; ++i) {
      load.iterate(beside);
      i == 0 ? beside.forget() : beside.end_iteration();
    }
    traffic.is_done();
    while (!traffic.all_are_done()) {
      load.iterate(beside);
      beside.forget();
    }
    traffic.settle();
    const std::vector<float> more = beside.quartiles();
    figures.insert(figures.end(), more.begin(), more.end());
  }
  const std::vector<float> all = gather(transport, figures);
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
