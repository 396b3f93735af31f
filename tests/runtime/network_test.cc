// Whole networks: what a training loop relies on.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "models/base/random.h"
#include "models/network/zoo.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {
namespace {

std::vector<float> normal(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> v(n);
  for (float& x : v) x = static_cast<float>(random.normal());
  return v;
}

TEST(TrainableNetwork, Smoke) {
  for (const char* name : {"cnn-small", "resnet-small", "resnet50"}) {
    for (const auto type : {models::NumberType::fp32, models::NumberType::bf16, models::NumberType::fp16}) {
    const models::Network network = models::zoo_network(name);
    const int batch = std::string(name) == "resnet50" ? 16 : 64;
    TrainableNetwork net(network, {.batch = batch, .storage = type, .threads = 2});
    std::vector<float> w = initial_weights(network, {});
    const auto images = normal(static_cast<std::size_t>(batch * network.input().elements()), 1);
    std::vector<std::int32_t> labels;
    for (int i = 0; i < batch; ++i) labels.push_back(i % net.classes());
    std::vector<float> g(w.size());
    for (int step = 0; step < 5; ++step) {
      const auto t = std::chrono::steady_clock::now();
      net.set_weights(w);
      const auto out = net.forward(images, labels, Pass::training, 1);
      net.backward(1, g);
      const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
      for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.05f * g[i];
      std::printf("%s %d loss %g correct %ld %.1f images/s\n", name, int(type), out.loss, out.correct, batch / s);
    }
    }
  }
}

}  // namespace
}  // namespace paceline::runtime
