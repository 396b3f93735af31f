// How long it takes to plan a network with cuDNN, on the host alone: anew by one thread (processor
// time, and as it passes), anew by as many threads as there are cores, and from what an earlier run
// stored.
//
//   LD_LIBRARY_PATH=build/release/tests/doubles/libcuda build/release/tests/benchmarks/plans_benchmark [DEVICE [NETWORK...]]
//
// (The folder is needed where there is no driver: most operations are compiled at run time.)
#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "models/network/zoo.h"
#include "runtime/network/cudnn/network_plans.h"

namespace {

using namespace paceline;
using namespace paceline::runtime::cudnn;

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const Planner& planner, const std::string& name, int threads) {
  const models::Network network = models::zoo_network(name);
  const auto plan = [&](PlanStore& store, int by) {
    return plan_network(network, 64, models::NumberType::fp16, store, by);
  };
  PlanStore alone(planner);
  PlanStore together(planner);
  PlanStore again(planner);
  NetworkPlans plans;
  const std::clock_t start = std::clock();
  const double one = seconds_of([&] { plans = plan(alone, 1); });
  const double processor = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const double all = seconds_of([&] { plan(together, threads); });
  const std::string text = alone.text();
  const double stored = seconds_of([&] {
    again.take(text, "plans");
    plan(again, 1);
  });
  int compiled = 0;
  for (const auto& keyed : plans.plans) compiled += keyed.plan.compiled;
  fmt::print(
      "{:<20} {:>6} {:>6} {:>9} {:>10.1f} MB {:>9.2f} s {:>9.2f} s {:>9.2f} s {:>9.2f} s {:>8.1f} "
      "MB\n",
      name, plans.steps.size(), plans.plans.size(), compiled,
      static_cast<double>(plans.workspace) / 1e6, processor, one, all, stored,
      static_cast<double>(text.size()) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const Planner planner(shipped_device(arguments.empty() ? "h100" : arguments[0]));
    std::vector<std::string> networks = {"alexnet",      "alexnet-bn", "vgg16",     "inception-v3",
                                         "inception-v4", "resnet50",   "resnet101", "resnet152"};
    if (arguments.size() > 1) networks.assign(arguments.begin() + 1, arguments.end());
    const int threads = static_cast<int>(std::thread::hardware_concurrency());
    fmt::print("cuDNN {} for {}, batch 64, FP16\n", cudnn_version(), planner.device().name);
    fmt::print("{:<20} {:>6} {:>6} {:>9} {:>13} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "network",
               "steps", "plans", "compiled", "workspace", "processor", "1 thread",
               fmt::format("{} threads", threads), "stored", "document");
    for (const std::string& network : networks) measure(planner, network, threads);
  } catch (const std::exception& error) {
    fmt::print(stderr, "plans_benchmark: {}\n", error.what());
    return 2;
  }
}
