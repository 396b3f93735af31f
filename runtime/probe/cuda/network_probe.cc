// Tests: tests/cuda/calibration.
#include "runtime/probe/cuda/network_probe.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "models/base/to_size.h"
#include "models/network/work.h"
#include "runtime/device/copies.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/probe/cuda/timer.h"
#include "runtime/probe/cuda/traffic.h"
#include "runtime/training/optimizer.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime::cuda {
namespace {

// What one round of the traffic carries, where that makes it last long enough, and at most.
constexpr std::size_t least_message = std::size_t{4} << 20;
constexpr std::size_t most_message = std::size_t{256} << 20;
// Rounds of traffic that are put into a stream at a time. A device takes about a thousand launches, and
// then makes the host wait.
constexpr int most_rounds = 200;

// Puts marks into the stream of a pass: where it begins, and behind every layer. The forward pass of the
// last layer ends where backward begins, when the loss is on its way to the host.
class LayerMarks final : public PassMarker {
 public:
  LayerMarks(Marks& marks, std::size_t layers)
      : marks_(marks), last_(static_cast<int>(layers) - 1) {}
  void began(bool /*backward*/, Stream& stream) override { put(stream); }
  void ended(bool backward, int layer, Stream& stream) override {
    if (backward || layer != last_) put(stream);
  }

 private:
  void put(Stream& stream) { marks_.put(static_cast<CudaStream&>(stream).handle()); }

  Marks& marks_;
  int last_;
};

class CudaNetworkProbe final : public NetworkProbe {
 public:
  CudaNetworkProbe(Backend& backend, const models::Network& network,
                   const NetworkProbeOptions& options)
      : device_(dynamic_cast<CudaDevice&>(backend.device())),
        layers_(network.layers().size()),
        recipe_(shipped_recipe(default_recipe)),
        current_(device_.index()),
        layer_marks_(marks_, layers_),
        images_memory_(
            device_.allocate(to_size(network.input().elements() * options.batch) * sizeof(float),
                             MemoryKind::pinned)),
        labels_(to_size(options.batch)),
        made_network_(backend.make_network(
            network, {.batch = options.batch, .storage = storage(options.precision)})),
        network_(dynamic_cast<CudaNetwork&>(*made_network_)),
        weights_memory_(allocate()),
        gradients_memory_(allocate()),
        found_(device_.allocate(sizeof(std::uint32_t), MemoryKind::pinned)),
        optimizer_(device_, recipe_.optimizer, network_.parameters()),
        devices_(options.devices),
        made_(device_.make_stream()),
        stream_(static_cast<CudaStream*>(made_.get())) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::ranges::generate(host_floats(images_memory_.array(NumberType::fp32)),
                          [&] { return normal(random); });
    for (std::size_t i = 0; i < labels_.size(); ++i)
      labels_[i] = static_cast<std::int32_t>(i % to_size(network_.classes()));
    copy_from_host(device_, *stream_, initial_weights(network, {}), weights());
    give_weights();
    // One bucket: all gradients are awaited at once.
    if (!network_.parameters().empty())
      network_.announce_at({static_cast<int>(network_.parameters().size()) - 1});
    make_traffic(least_message);
    mark_s_ = time_mark();
    bring();
  }

  [[nodiscard]] std::string traffic() const override { return traffic_->description(); }

  [[nodiscard]] std::string remark() override { return network_.take_remark(); }
  [[nodiscard]] std::vector<IterationTimes> time_layers(int count) override {
    marks_.clear();
    start_marked(count);
    marks_.wait("time the layers of a network");
    return read_marks(count, 0);
  }

  [[nodiscard]] std::vector<IterationTimes> time_beside_traffic(int count,
                                                                double seconds) override {
    if (round_s_ <= 0) round_s_ = time_round();
    // Larger messages last longer, unless what they take is not for their bytes.
    for (bool grows = true; grows && round_s_ * most_rounds < seconds && message_ < most_message;) {
      const double before = round_s_;
      make_traffic(2 * message_);
      round_s_ = time_round();
      grows = round_s_ > 1.2 * before;
    }
    marks_.clear();
    traffic_->start(static_cast<int>(
        std::clamp(std::ceil(seconds / round_s_), 1.0, static_cast<double>(most_rounds))));
    marks_.put(traffic_->stream());
    start_marked(count);
    constexpr std::string_view operation = "time the layers of a network beside traffic";
    marks_.wait(operation);
    marks_.wait(operation, 0);
    std::vector<IterationTimes> times = read_marks(count, 1);
    const bool outlasted = marks_.seconds(marks_.count() - 1, 0) >= 0;
    for (IterationTimes& iteration : times) iteration.traffic_outlasted = outlasted;
    return times;
  }

  [[nodiscard]] std::vector<double> time_iterations(int count) override {
    marks_.clear();
    for (int i = 0; i <= count; ++i) {
      iterate();
      marks_.put(stream_->handle());
    }
    marks_.wait("time the iterations of a network");
    std::vector<double> times;
    for (std::size_t i = 0; i + 1 < marks_.count(); ++i) times.push_back(marks_.seconds(i, i + 1));
    return times;
  }

 private:
  models::NumberType storage(models::Precision precision) const {
    return precision == models::Precision::mixed ? recipe_.storage : models::NumberType::fp32;
  }
  Memory allocate() {
    return device_.allocate(to_size(network_.parameter_elements()) * sizeof(float),
                            MemoryKind::device);
  }
  [[nodiscard]] ArrayView weights() const { return weights_memory_.array(NumberType::fp32); }
  [[nodiscard]] ArrayView gradients() const { return gradients_memory_.array(NumberType::fp32); }

  // Gives the network its weights in the way that Training::give_weights does.
  void give_weights() {
    stream_->wait_for(network_.take_weights(
        weights(), 0, static_cast<int>(network_.parameters().size()), stream_->record()));
  }

  // The batch of the next pass, which is always the same.
  void bring() {
    static_cast<void>(network_.bring(images_memory_.array(NumberType::fp32), labels_));
  }

  // What training on one rank does (runtime/training/trainer.cc), with one bucket. The learning rate
  // is 0, so that numbers stay as they are however often it is repeated.
  void iterate() {
    network_.start_pass(Pass::training, 1);
    Token last;
    network_.compute_gradients(1.0F, gradients(), [&](int, const Token& when) { last = when; });
    bring();
    stream_->wait_for(last);
    auto* const found = reinterpret_cast<std::uint32_t*>(found_.data());
    *found = 0;
    stream_->start(FindNotFinite{gradients(), found});
    wait_for(stream_->record(), device_patience, "look at the gradients");
    stream_->wait_for(network_.working_copies_read());
    optimizer_.step(*stream_, weights(), gradients(), 1.0F, 0.0, 0.0, network_.working_copies());
    network_.use_working_copies(stream_->record());
    static_cast<void>(network_.outcome());
  }

  // One iteration more than `count`, with all marks.
  void start_marked(int count) {
    network_.mark(&layer_marks_);
    for (int i = 0; i <= count; ++i) {
      iterate();
      marks_.put(stream_->handle());
    }
    network_.mark(nullptr);
  }

  // The marks of an iteration stand in the order in which they were put: begin, forward of each layer,
  // backward of each from the last on, and the update's end. Those of the first iteration begin at
  // `first`.
  [[nodiscard]] std::vector<IterationTimes> read_marks(int count, std::size_t first) const {
    std::vector<IterationTimes> all;
    for (int i = 1; i <= count; ++i) {
      IterationTimes times{.forward = std::vector<double>(layers_),
                           .backward = std::vector<double>(layers_)};
      std::size_t at = first + to_size(i) * (2 * layers_ + 2);
      const auto next = [&] {
        const double seconds = marks_.seconds(at, at + 1) - mark_s_;
        ++at;
        return std::max(0.0, seconds);
      };
      for (std::size_t l = 0; l < layers_; ++l) times.forward[l] = next();
      for (std::size_t l = layers_; l-- > 0;) times.backward[l] = next();
      times.update = next();
      all.push_back(std::move(times));
    }
    return all;
  }

  void make_traffic(std::size_t message) {
    traffic_.reset();
    traffic_ = make_nccl_traffic(device_.index(), devices_, message);
    if (traffic_ == nullptr) traffic_ = make_staged_traffic(device_, message);
    message_ = message;
  }

  // Seconds that a mark takes of the stream: what fills take with a mark behind each, less what they
  // take without. A fill lasts so long that the host stays ahead, and no longer, because its own jitter is
  // in the difference.
  double time_mark() {
    constexpr int count = 64;
    constexpr int repetitions = 9;
    constexpr double longer_than_the_host_s = 12e-6;
    constexpr std::size_t most_bytes = std::size_t{64} << 20;
    Memory array = device_.allocate(std::size_t{4} << 10, MemoryKind::device);
    const auto time = [&](bool marked) {
      marks_.clear();
      stream_->start(Fill{array.array(NumberType::fp32), 0});
      marks_.put(stream_->handle());
      for (int i = 0; i < count; ++i) {
        stream_->start(Fill{array.array(NumberType::fp32), 0});
        if (marked) marks_.put(stream_->handle());
      }
      marks_.put(stream_->handle());
      marks_.wait("time a CUDA event");
      return marks_.seconds(0, marks_.count() - 1) / count;
    };
    (void)time(true);  // makes the marks
    while (time(false) < longer_than_the_host_s && array.size() < most_bytes) {
      const std::size_t larger = 2 * array.size();
      array = {};
      array = device_.allocate(larger, MemoryKind::device);
    }
    std::vector<double> differences;
    for (int i = 0; i < repetitions; ++i) differences.push_back(time(true) - time(false));
    std::ranges::nth_element(differences, differences.begin() + repetitions / 2);
    return std::max(0.0, differences[repetitions / 2]);
  }

  // Seconds of a round of traffic, of several.
  double time_round() {
    constexpr int rounds = 8;
    traffic_->start(2);  // warms up
    marks_.clear();
    marks_.put(traffic_->stream());
    traffic_->start(rounds);
    marks_.put(traffic_->stream());
    marks_.wait("time traffic");
    return std::max(1e-9, marks_.seconds(0, 1) / rounds);
  }

  CudaDevice& device_;
  std::size_t layers_;
  Recipe recipe_;
  CurrentDevice current_;
  Marks marks_;
  LayerMarks layer_marks_;
  Memory images_memory_;
  std::vector<std::int32_t> labels_;
  std::unique_ptr<TrainableNetwork> made_network_;
  CudaNetwork& network_;
  Memory weights_memory_;
  Memory gradients_memory_;
  Memory found_;
  Optimizer optimizer_;
  int devices_;
  double mark_s_ = 0;
  double round_s_ = 0;
  std::size_t message_ = 0;  // of the traffic
  std::unique_ptr<Traffic> traffic_;
  std::unique_ptr<Stream> made_;  // is the first to go, because it waits for what it runs
  CudaStream* stream_;
};

}  // namespace

std::unique_ptr<NetworkProbe> make_network_probe(Backend& backend, const models::Network& network,
                                                 const NetworkProbeOptions& options) {
  return std::make_unique<CudaNetworkProbe>(backend, network, options);
}

}  // namespace paceline::runtime::cuda
