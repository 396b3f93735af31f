// Our engines beside SimGrid, in one run: ratios count, times depend on the machine.
//
//   build/release/tests/benchmarks/engine_benchmark
//
// SimGrid's time is the CPU time of its Engine::run() alone: neither the start of its process, nor
// reading the schedule, nor building the platform. Ours is everything from the schedule on. Both
// answer for the same bucket, and must agree. An iteration asks SimGrid once and ours as often as
// takes about a millisecond, one after the other, so that both see the same machine. Counters:
//   collapsed   the step engine as predictions use it
//   enumerated  every rank by itself; alike steps that add the same time to all are still cut short
//   unequal     from unequal ready times, where no step can be cut short: every message is visited
// The flow engine is held against it where ranks share NICs, by the same counters.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "models/collective/catalogue.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/simgrid_engine.h"
#include "simulator/engine/step_engine.h"

namespace {

using namespace paceline;
using simulator::Collapse;

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the CPU time of one call, in seconds.
template <class F>
double cpu_of(F&& call) {
  int calls = 0;
  const double start = cpu_s();
  double now = start;
  while (now - start < 1e-3) {
    benchmark::DoNotOptimize(call());
    ++calls;
    now = cpu_s();
  }
  return (now - start) / calls;
}

// One rank a node, so that no link is shared and the engines agree.
simulator::CommunicationCost unshared_cost() {
  simulator::CommunicationCost cost;
  cost.nic = {Seconds{5e-6}, SecondsPerByte{8e-11}};
  cost.gamma = SecondsPerByte{2e-12};
  return cost;
}

// A cluster of eight ranks behind each NIC.
simulator::CommunicationCost shared_cost(models::Placement placement) {
  simulator::CommunicationCost cost = unshared_cost();
  cost.ranks_per_node = 8;
  cost.intra = {Seconds{2e-6}, SecondsPerByte{6e-11}};
  cost.placement = placement;
  return cost;
}

constexpr Bytes bucket{64e6};

class StepEngine {
 public:
  StepEngine(const models::Schedule& schedule, const simulator::CommunicationCost& cost,
             Collapse collapse)
      : engine_(schedule, cost, collapse) {}
  Seconds time() { return engine_.time(bucket); }
  Seconds time(const std::vector<Seconds>& ready) {
    return engine_.completion(bucket, ready).last();
  }

 private:
  simulator::StepEngine engine_;
};

class FlowEngine {
 public:
  FlowEngine(const models::Schedule& schedule, const simulator::CommunicationCost& cost,
             Collapse collapse)
      : engine_({&schedule, 1}, cost, collapse) {}
  Seconds time() { return engine_.completion(0, bucket).last(); }
  Seconds time(const std::vector<Seconds>& ready) {
    return engine_.completion(0, bucket, ready).last();
  }

 private:
  simulator::FlowEngine engine_;
};

template <class Engine>
void beside_simgrid(benchmark::State& state, const models::Schedule& schedule,
                    const simulator::CommunicationCost& cost) {
  if (!simulator::SimgridEngine::is_built_in()) return state.SkipWithError("built without SimGrid");
  const auto ours = [&](Collapse collapse) { return Engine(schedule, cost, collapse).time(); };
  simulator::SimgridEngine simgrid({&schedule, 1}, cost);
  std::vector<Seconds> ready;
  for (int rank = 0; rank < schedule.ranks(); ++rank) ready.emplace_back(1e-4 * (rank * 37 % 101));
  const auto ours_unequal = [&] { return Engine(schedule, cost, Collapse::none).time(ready); };
  const auto agree = [](Seconds a, Seconds b) { return std::fabs(a / b - 1) < 1e-3; };

  constexpr double never = std::numeric_limits<double>::infinity();
  double simgrid_s = never, simgrid_unequal_s = never;
  double collapsed_s = never, enumerated_s = never, unequal_s = never;
  for (auto _ : state) {
    if (!agree(simgrid.completion(0, bucket).last(), ours(Collapse::equal_positions)))
      return state.SkipWithError("the engines do not agree");
    simgrid_s = std::min(simgrid_s, simgrid.run_cpu_s());
    if (!agree(simgrid.completion(0, bucket, ready).last(), ours_unequal()))
      return state.SkipWithError("the engines do not agree from unequal ready times");
    simgrid_unequal_s = std::min(simgrid_unequal_s, simgrid.run_cpu_s());
    collapsed_s = std::min(collapsed_s, cpu_of([&] { return ours(Collapse::equal_positions); }));
    enumerated_s = std::min(enumerated_s, cpu_of([&] { return ours(Collapse::none); }));
    unequal_s = std::min(unequal_s, cpu_of(ours_unequal));
  }
  state.counters["simgrid_s"] = simgrid_s;
  state.counters["simgrid_unequal_s"] = simgrid_unequal_s;
  state.counters["simgrid_per_collapsed"] = simgrid_s / collapsed_s;
  state.counters["simgrid_per_enumerated"] = simgrid_s / enumerated_s;
  state.counters["simgrid_per_unequal"] = simgrid_unequal_s / unequal_s;
}

// The time of an iteration includes SimGrid's processes.
void StepEngineBesideSimgrid(benchmark::State& state, std::string_view algorithm) {
  beside_simgrid<StepEngine>(
      state,
      models::all_reduce_algorithm(algorithm).build({.ranks = static_cast<int>(state.range(0))}),
      unshared_cost());
}
BENCHMARK_CAPTURE(StepEngineBesideSimgrid, ring, "ring")
    ->ArgsProduct({{16, 64, 256}})
    ->Iterations(5)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(StepEngineBesideSimgrid, halving_doubling, "halving-doubling")
    ->ArgsProduct({{16, 64, 256}})
    ->Iterations(5)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(StepEngineBesideSimgrid, hierarchical, "hierarchical")
    ->ArgsProduct({{16, 64, 256}})
    ->Iterations(5)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void FlowEngineBesideSimgrid(benchmark::State& state, std::string_view algorithm,
                             models::Placement placement) {
  beside_simgrid<FlowEngine>(
      state,
      models::all_reduce_algorithm(algorithm).build({.ranks = static_cast<int>(state.range(0))}),
      shared_cost(placement));
}
// Placed round-robin, all eight ranks of a node send to another node in every step.
BENCHMARK_CAPTURE(FlowEngineBesideSimgrid, ring_round_robin, "ring", models::Placement::round_robin)
    ->ArgsProduct({{64, 256}})
    ->Iterations(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FlowEngineBesideSimgrid, halving_doubling, "halving-doubling",
                  models::Placement::node_major)
    ->ArgsProduct({{64, 256}})
    ->Iterations(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(FlowEngineBesideSimgrid, hierarchical_scatter, "hierarchical-scatter",
                  models::Placement::node_major)
    ->ArgsProduct({{64, 256}})
    ->Iterations(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
