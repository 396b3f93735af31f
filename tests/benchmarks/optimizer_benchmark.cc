// How far an optimizer step is from the speed of memory.
//
//   build/release/tests/benchmarks/optimizer_benchmark
//
// The peer in the same run is the floor: an addition of arrays, target += source, which moves 12
// bytes an element and computes next to nothing, with as many threads. `ratio` is the time of the
// step over that of a floor of as many bytes, measured in turns; `GB_per_s` counts each byte that
// the step must read or write at least once: the second read of LARS is not counted.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "models/network/zoo.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/optimizer.h"

namespace {

using namespace paceline;
using runtime::OptimizerRecipe;
using runtime::ParameterPlace;
using Clock = std::chrono::steady_clock;

// Returns parameters of the sizes that a network of the zoo has.
std::vector<ParameterPlace> places_of(const std::string& network) {
  std::vector<ParameterPlace> places;
  std::int64_t offset = 0;
  for (const auto& gradient : models::work(models::zoo_network(network)).gradients) {
    const auto elements = gradient.elements;
    places.push_back(
        {.name = gradient.name,
         .role = elements > 4096 ? runtime::ParameterRole::weight : runtime::ParameterRole::gamma,
         .shape = {elements},
         .offset = offset,
         .elements = elements,
         .layer = 0});
    offset += elements;
  }
  return places;
}

// target[i] += source[i] for pieces, as many threads as the step has: 12 bytes an element.
void add(std::vector<float>& target, const std::vector<float>& source, int threads) {
  const auto piece = [&](std::size_t i) {
    const std::size_t first = target.size() * i / static_cast<std::size_t>(threads);
    const std::size_t last = target.size() * (i + 1) / static_cast<std::size_t>(threads);
    float* __restrict to = target.data();
    const float* __restrict from = source.data();
    for (std::size_t at = first; at < last; ++at) to[at] += from[at];
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < static_cast<std::size_t>(threads); ++i)
    helpers.emplace_back(piece, i);
  piece(0);
}

// As long as the floor of `bytes` takes: additions move 12 bytes an element.
double floor_seconds(std::vector<float>& target, const std::vector<float>& source, int threads,
                     double bytes) {
  const auto begin = Clock::now();
  add(target, source, threads);
  benchmark::ClobberMemory();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return seconds * bytes / (12.0 * static_cast<double>(target.size()));
}

void Step(benchmark::State& state, const OptimizerRecipe& recipe, double bytes_per_element,
          const std::string& network) {
  const auto threads = static_cast<int>(state.range(0));
  const std::vector<ParameterPlace> places = places_of(network);
  const auto elements = static_cast<std::size_t>(places.back().offset + places.back().elements);
  std::vector<float> weights(elements, 1);
  std::vector<float> gradients(elements, 1e-3F);
  runtime::Optimizer optimizer(recipe, places, threads);
  const double bytes = bytes_per_element * static_cast<double>(elements);
  std::vector<double> steps;
  std::vector<double> floors;
  for (auto _ : state) {
    const auto begin = Clock::now();
    optimizer.step(weights, gradients, 1, 1e-3, 5);
    benchmark::ClobberMemory();
    steps.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    state.SetIterationTime(steps.back());
    floors.push_back(floor_seconds(weights, gradients, threads, bytes));
    for (float& w : weights) w = 1;
  }
  const auto median = [](std::vector<double>& all) {
    std::nth_element(all.begin(), all.begin() + static_cast<long>(all.size() / 2), all.end());
    return all[all.size() / 2];
  };
  const double step = median(steps);
  state.counters["ratio"] = step / median(floors);
  state.counters["GB_per_s"] = bytes / step / 1e9;
  state.counters["elements"] = static_cast<double>(elements);
}

const bool registered = [] {
  const OptimizerRecipe lars{.lars = {.enabled = true}};
  const OptimizerRecipe rmsprop{.kind = runtime::OptimizerKind::rmsprop_warm_up};
  const OptimizerRecipe nesterov{.nesterov = true};
  for (const std::string network : {"resnet-small", "resnet50"}) {
    const auto add = [&](const std::string& name, const OptimizerRecipe& recipe, double bytes) {
      auto* step = benchmark::RegisterBenchmark(
          (name + "/" + network).c_str(),
          [=](benchmark::State& state) { Step(state, recipe, bytes, network); });
      step->ArgName("threads")->Arg(1)->UseManualTime()->MinTime(1)->Unit(benchmark::kMillisecond);
      if (network != "resnet-small") step->Arg(2);  // which is too small for a second thread
    };
    add("MomentumSgd", {}, 20);
    add("Nesterov", nesterov, 20);
    add("Lars", lars, 20);
    add("RmspropWarmUp", rmsprop, 28);
  }
  return true;
}();

// Weights and momentum of ResNet-50, 204 MB, written to disk and flushed; the peer is the time to
// copy as much in memory.
void CheckpointOfResnet50(benchmark::State& state) {
  const bool writes = state.range(0) == 1;
  const std::string path = std::filesystem::temp_directory_path() / "paceline_benchmark.checkpoint";
  runtime::Checkpoint checkpoint;
  for (const char* name : {"weights", "momentum"})
    checkpoint.arrays.push_back({name, std::vector<float>(25'557'032, 0.5F)});
  runtime::write_checkpoint(path, checkpoint);
  for (auto _ : state) {
    if (writes) runtime::write_checkpoint(path, checkpoint);
    if (!writes) benchmark::DoNotOptimize(runtime::read_checkpoint(path));
  }
  state.SetLabel(writes ? "write" : "read");
  state.SetBytesProcessed(state.iterations() * 2 * 4 * 25'557'032);
  std::filesystem::remove(path);
}
BENCHMARK(CheckpointOfResnet50)->Arg(1)->Arg(0)->UseRealTime()->Unit(benchmark::kMillisecond);

void CopyOfResnet50(benchmark::State& state) {
  const std::vector<float> from(2 * 25'557'032, 0.5F);
  std::vector<float> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()) * 4);
}
BENCHMARK(CopyOfResnet50)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
