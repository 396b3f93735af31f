// How fast predictions are, and how much faster than enumerating every rank.
//
//   build/release/tests/benchmarks/predict_benchmark
//
// WholeProcess starts `paceline predict` as a user does and reports its peak memory; NullProcess
// is the harness's own overhead (a process that does nothing). Enumerated is the peer in the
// same run: the same engine without collapse, which visits every transfer as event-driven
// simulators do.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "calibration/shipped_profiles.h"
#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/engine/step_engine.h"
#include "simulator/iteration/prediction.h"

namespace {

using namespace paceline;

// Runs a command with its output thrown away; returns its peak resident memory in MB.
double run_process(benchmark::State& state, const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || status != 0)
    state.SkipWithError("the command failed");
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

void NullProcess(benchmark::State& state) {
  for (auto _ : state) run_process(state, {"/bin/true"});
}
BENCHMARK(NullProcess)->Unit(benchmark::kMillisecond)->UseRealTime();

void WholeProcessPredict(benchmark::State& state) {
  double peak_mb = 0;
  for (auto _ : state) {
    peak_mb = run_process(state, {PACELINE_COMMAND, "predict", "--model", "resnet50", "--cluster",
                                  "jizhi-p40", "--ranks", "1024", "--json"});
  }
  state.counters["peak_MB"] = peak_mb;
}
BENCHMARK(WholeProcessPredict)->Unit(benchmark::kMillisecond)->UseRealTime();

void WholeProcessScale(benchmark::State& state) {
  double peak_mb = 0;
  for (auto _ : state) {
    peak_mb = run_process(state, {PACELINE_COMMAND, "scale", "--model", "resnet50", "--cluster",
                                  "h200-ndr", "--ranks", "1-65536", "--json"});
  }
  state.counters["peak_MB"] = peak_mb;
}
BENCHMARK(WholeProcessScale)->Unit(benchmark::kMillisecond)->UseRealTime();

// A network's iteration with its buckets followed through the links that they share, on as many
// streams: every strategy that fuses.
void WholeProcessFlowEngine(benchmark::State& state, std::string strategy) {
  double peak_mb = 0;
  for (auto _ : state) {
    peak_mb = run_process(state, {PACELINE_COMMAND, "predict", "--model", "resnet50", "--cluster",
                                  "jizhi-p40", "--ranks", "1024", "--engine", "flow", "--strategy",
                                  strategy, "--streams", std::to_string(state.range(0)), "--json"});
  }
  state.counters["peak_MB"] = peak_mb;
}

const bool fusing_strategies_are_registered = [] {
  for (const models::Strategy& strategy : models::strategy_catalogue()) {
    if (strategy.fusion != models::Fusion::by_default || strategy.library()) continue;
    benchmark::RegisterBenchmark(("WholeProcessFlowEngine/" + std::string(strategy.name)).c_str(),
                                 WholeProcessFlowEngine, std::string(strategy.name))
        ->Arg(1)
        ->Arg(4)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  return true;
}();

// One strategy from nothing but the loaded inputs: thresholds, plan, three readings and the
// baseline.
void OneStrategy(benchmark::State& state) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const models::Profile profile = calibration::shipped_profile("jizhi-p40");
  const models::Strategy& strategy =
      models::strategy_catalogue()[static_cast<std::size_t>(state.range(0))];
  state.SetLabel(std::string(strategy.name));
  for (auto _ : state) {
    simulator::Predictor predictor({.network = network,
                                    .cluster = cluster,
                                    .profile = &profile,
                                    .ranks = 1024,
                                    .batch_per_rank = 64,
                                    .precision = models::Precision::mixed,
                                    .wire = models::WireType::fp16,
                                    .thresholds = {},
                                    .overlap = {},
                                    .stored_sample = Bytes{0}});
    benchmark::DoNotOptimize(predictor.predict(strategy));
  }
}
BENCHMARK(OneStrategy)
    ->DenseRange(0, static_cast<int>(models::strategy_catalogue().size()) - 1)
    ->Unit(benchmark::kMicrosecond);

simulator::CommunicationCost jizhi_cost() {
  return simulator::communication_cost(models::catalog_cluster("jizhi-p40"), nullptr,
                                       simulator::Reading::stated);
}

void run_engine(benchmark::State& state, simulator::Collapse collapse) {
  const auto& algorithm = models::all_reduce_catalogue()[static_cast<std::size_t>(state.range(0))];
  const simulator::CommunicationCost cost = jizhi_cost();
  state.SetLabel(std::string(algorithm.name));
  for (auto _ : state) {
    const simulator::StepEngine engine(
        algorithm.build({.ranks = static_cast<int>(state.range(1)), .group_size = 0}), cost,
        collapse);
    benchmark::DoNotOptimize(engine.time(Bytes{64e6}));
  }
}

// Build the schedule, prepare it, time one bucket: {algorithm, ranks}.
void EngineCollapsed(benchmark::State& state) {
  run_engine(state, simulator::Collapse::equal_positions);
}
BENCHMARK(EngineCollapsed)
    ->ArgsProduct({{0, 1, 2}, {64, 1024, 2048, 65536, 1048576}})
    ->Unit(benchmark::kMicrosecond);

void EngineEnumerated(benchmark::State& state) {
  run_engine(state, simulator::Collapse::none);
}
BENCHMARK(EngineEnumerated)
    ->ArgsProduct({{0, 1, 2}, {64, 1024, 2048}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
