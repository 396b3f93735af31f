// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/layer_times.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <utility>

#include "models/network/work.h"
#include "runtime/network/trainable_network.h"

namespace paceline::calibration {
namespace {

using Clock = std::chrono::steady_clock;

// Times of each layer and pass, one for each iteration.
class Stopwatch final : public runtime::LayerObserver {
 public:
  explicit Stopwatch(std::size_t layers) {
    for (auto& times : times_) times.resize(layers);
  }

  void began(bool /*backward*/, int /*layer*/) override { start_ = Clock::now(); }
  void ended(bool backward, int layer) override {
    const std::chrono::duration<double> time = Clock::now() - start_;
    now_[{backward, layer}] += time.count();
  }
  void end_iteration() {
    for (const auto& [which, time] : now_)
      times_[which.first ? 1 : 0][static_cast<std::size_t>(which.second)].push_back(time);
    now_.clear();
  }
  void forget() { now_.clear(); }

  [[nodiscard]] Figure<Seconds> figure(bool backward, std::size_t layer,
                                       const std::string& source) const {
    std::vector<double> times = times_[backward ? 1 : 0][layer];
    if (times.empty()) return Figure<Seconds>::exact(Seconds{0}, Provenance::measured, source);
    std::sort(times.begin(), times.end());
    const auto quantile = [&](std::size_t quarter) {
      return Seconds{times[quarter * (times.size() - 1) / 4]};
    };
    return {quantile(2), quantile(1), quantile(3), Provenance::measured, source};
  }

 private:
  std::vector<std::vector<double>> times_[2];  // forward, backward; of each layer
  std::map<std::pair<bool, int>, double> now_;
  Clock::time_point start_;
};

}  // namespace

std::vector<models::CalibratedLayer> measure_layers(const LayerTimesRequest& request,
                                                    const std::string& source) {
  const models::NetworkWork work = models::work(request.network);
  const bool mixed = request.precision == models::Precision::mixed;
  runtime::TrainableNetwork network(
      request.network, {.batch = request.batch,
                        .storage = mixed ? models::NumberType::bf16 : models::NumberType::fp32,
                        .threads = request.threads});
  network.set_weights(runtime::initial_weights(request.network, {}));
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> images(static_cast<std::size_t>(work.input_elements * request.batch));
  std::generate(images.begin(), images.end(), [&] { return normal(random); });
  std::vector<std::int32_t> labels(static_cast<std::size_t>(request.batch));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(network.classes()));
  std::vector<float> gradients(static_cast<std::size_t>(network.parameter_elements()));
  Stopwatch stopwatch(work.layers.size());
  network.observe(&stopwatch);
  for (int i = 0; i <= request.iterations; ++i) {
    (void)network.forward(images, labels, runtime::Pass::training, 1);
    network.backward(1.0F, gradients);
    i == 0 ? stopwatch.forget() : stopwatch.end_iteration();
  }
  std::vector<models::CalibratedLayer> layers;
  for (std::size_t i = 0; i < work.layers.size(); ++i) {
    layers.push_back({work.name, request.precision, request.batch, work.layers[i].name,
                      stopwatch.figure(false, i, source), stopwatch.figure(true, i, source)});
  }
  return layers;
}

}  // namespace paceline::calibration
