// How the engines' time grows with the ranks, and how many transfers a second the step engine
// visits where none can be left out. Part of engine_benchmark.
//
//   build/release/tests/benchmarks/engine_benchmark --benchmark_filter='Growth|Transfers'
//
// Growth: from the algorithm's name to the time of one bucket, over 1,024 to 1,048,576 ranks, 8
// behind a NIC, with the complexity fitted to c * log2(p) and what is left of the times by it
// (RMS).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/step_engine.h"

namespace {

using namespace paceline;

simulator::CommunicationCost eight_behind_a_nic() {
  simulator::CommunicationCost cost;
  cost.ranks_per_node = 8;
  cost.intra = {Seconds{2e-6}, SecondsPerByte{6e-11}};
  cost.nic = {Seconds{5e-6}, SecondsPerByte{8e-11}};
  cost.gamma = SecondsPerByte{2e-12};
  return cost;
}

models::Schedule built(std::string_view algorithm, std::int64_t ranks) {
  const models::CollectiveAlgorithm& entry = models::all_reduce_algorithm(algorithm);
  return entry.build({.ranks = static_cast<int>(ranks), .group_size = entry.takes_group ? 8 : 0});
}

void StepEngineGrowth(benchmark::State& state, std::string_view algorithm) {
  const simulator::CommunicationCost cost = eight_behind_a_nic();
  for (auto _ : state) {
    const simulator::StepEngine engine(built(algorithm, state.range(0)), cost);
    benchmark::DoNotOptimize(engine.time(Bytes{64e6}));
  }
  state.SetComplexityN(state.range(0));
}

void FlowEngineGrowth(benchmark::State& state, std::string_view algorithm) {
  const simulator::CommunicationCost cost = eight_behind_a_nic();
  for (auto _ : state) {
    const models::Schedule schedule = built(algorithm, state.range(0));
    simulator::FlowEngine engine({&schedule, 1}, cost);
    benchmark::DoNotOptimize(engine.completion(0, Bytes{64e6}));
  }
  state.SetComplexityN(state.range(0));
}

void set_growth(benchmark::internal::Benchmark* family) {
  family->RangeMultiplier(4)
      ->Range(1 << 10, 1 << 20)
      ->Complexity(benchmark::oLogN)
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(StepEngineGrowth, ring, "ring")->Apply(set_growth);
BENCHMARK_CAPTURE(StepEngineGrowth, halving_doubling, "halving-doubling")->Apply(set_growth);
BENCHMARK_CAPTURE(StepEngineGrowth, hierarchical, "hierarchical")->Apply(set_growth);
BENCHMARK_CAPTURE(FlowEngineGrowth, ring, "ring")->Apply(set_growth);
BENCHMARK_CAPTURE(FlowEngineGrowth, halving_doubling, "halving-doubling")->Apply(set_growth);
BENCHMARK_CAPTURE(FlowEngineGrowth, hierarchical, "hierarchical")->Apply(set_growth);

// Every rank by itself, from unequal ready times and behind NICs that all differ, so that no run of
// steps is cut short: with one slowest NIC alone, the others' ranks would soon all go at its pace.
// Items are transfers; prepared once, as for all buckets of a plan.
void StepEngineTransfers(benchmark::State& state, std::string_view algorithm) {
  const models::Schedule schedule = built(algorithm, state.range(0));
  std::mt19937 random(1);
  const auto uniform = [&random](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  simulator::CommunicationCost cost = eight_behind_a_nic();
  for (int node = 0; node < state.range(0) / 8; ++node) cost.slow_nodes[node] = uniform(0.5, 1);
  const simulator::StepEngine engine(schedule, cost, simulator::Collapse::none);
  std::vector<Seconds> ready;
  for (std::int64_t rank = 0; rank < state.range(0); ++rank) ready.emplace_back(uniform(0, 1e-2));
  std::int64_t transfers = 0;
  for (int step = 0; step < schedule.steps(); step += schedule.repeats(step)) {
    std::int64_t of_step = 0;
    models::for_each_transfer(schedule, step, models::Span<double>{0.0, 1.0},
                              [&](const auto&) { ++of_step; });
    transfers += of_step * schedule.repeats(step);
  }
  for (auto _ : state) benchmark::DoNotOptimize(engine.completion(Bytes{64e6}, ready));
  state.SetItemsProcessed(state.iterations() * transfers);
}
BENCHMARK_CAPTURE(StepEngineTransfers, ring, "ring")
    ->Arg(1024)
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(StepEngineTransfers, halving_doubling, "halving-doubling")
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(StepEngineTransfers, hierarchical, "hierarchical")
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);

}  // namespace
