// One training step after the other on request, for training_throughput.py, which sets PyTorch
// beside it: reads lines from standard input, and answers each with the seconds and the CPU seconds
// of a step of set_weights, forward and backward.
//
//   training_throughput NETWORK BATCH THREADS fp32|bf16|fp16 [--layers]
//
// With --layers: prints the share of each kind of layer instead, and ends.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <map>
#include <string>

#include "models/base/random.h"
#include "models/network/zoo.h"
#include "runtime/network/cpu_network.h"

namespace {

using namespace paceline;
using Clock = std::chrono::steady_clock;

// Returns the CPU time of all threads of the process, in seconds. Other processes do not add to it.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

class Training {
 public:
  Training(const std::string& name, int batch, int threads, models::NumberType storage)
      : description_(models::zoo_network(name)),
        network_(description_, {.batch = batch, .storage = storage, .threads = threads}),
        weights_(runtime::initial_weights(description_, {})),
        gradients_(weights_.size()) {
    Random random(1);
    images_.resize(static_cast<std::size_t>(batch * description_.input().elements()));
    const auto tokens = static_cast<std::size_t>(network_.classes());
    for (float& pixel : images_)
      pixel = static_cast<float>(description_.input().is_sequence
                                     ? static_cast<double>(random.below(tokens))
                                     : random.normal());
    for (int i = 0; i < batch * network_.traits().labels; ++i)
      labels_.push_back(i % network_.classes());
  }

  double step() {
    const auto start = Clock::now();
    network_.set_weights(weights_);
    network_.forward(images_, labels_, runtime::Pass::training);
    network_.backward(1, gradients_);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  [[nodiscard]] const models::Network& description() const { return description_; }
  void observe(runtime::LayerObserver* observer) { network_.observe(observer); }

 private:
  models::Network description_;
  runtime::CpuNetwork network_;
  std::vector<float> weights_;
  std::vector<float> gradients_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
};

// CPU time by kind of layer and direction.
class Shares : public runtime::LayerObserver {
 public:
  explicit Shares(const models::Network& network) : network_(network) {}
  void began(bool, int) override { start_ = cpu_seconds(); }
  void ended(bool backward, int layer) override {
    const auto& kind = network_.layers()[static_cast<std::size_t>(layer)].kind;
    seconds_[std::string(models::name(kind)) + (backward ? " backward" : " forward")] +=
        cpu_seconds() - start_;
  }
  void print(int steps) const {
    for (const auto& [what, seconds] : seconds_)
      std::printf("%-40s %9.3f ms\n", what.c_str(), 1e3 * seconds / steps);
  }

 private:
  const models::Network& network_;
  double start_ = 0;
  std::map<std::string, double> seconds_;
};

void print_layers(Training& training) {
  constexpr int steps = 5;
  training.step();
  Shares shares(training.description());
  training.observe(&shares);
  const double start = cpu_seconds();
  for (int i = 0; i < steps; ++i) training.step();
  const double total = cpu_seconds() - start;
  training.observe(nullptr);
  shares.print(steps);
  std::printf("%-40s %9.3f ms of CPU\n", "step", 1e3 * total / steps);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "usage: %s NETWORK BATCH THREADS fp32|bf16|fp16 [--layers]\n",
                 arguments[0]);
    return 2;
  }
  Training training(arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]),
                    models::wire_type_from_name(arguments[4]));
  if (count > 5) {
    print_layers(training);
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    const double start = cpu_seconds();
    const double seconds = training.step();
    std::printf("%.9f %.9f\n", seconds, cpu_seconds() - start);
    std::fflush(stdout);
  }
}
