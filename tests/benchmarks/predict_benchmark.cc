// How fast predictions are, and how much faster than enumerating every rank.
//
//   build/release/tests/benchmarks/predict_benchmark
//
// WholeProcess starts `paceline` as a user does and reports its peak memory, its CPU time, and how many
// null processes that is; NullProcess is the harness's own overhead (a process that does nothing). Enumerated is the peer in the
// same run: the same engine without collapse, which visits every transfer as event-driven
// simulators do.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "calibration/shipped_profiles.h"
#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/engine/step_engine.h"
#include "simulator/prediction/prediction.h"

namespace {

using namespace paceline;

struct Process {
  double peak_mb = 0;  // resident memory at its peak
  double cpu_s = 0;    // user and system time
  double wall_s = 0;
};

// Runs a command with its output thrown away. The status is 0 if it succeeded.
int run_command(const std::vector<std::string>& words, Process& process) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return 1;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  process.peak_mb = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
  process.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  process.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return status;
}

// The CPU time of a process that does nothing: the mean of 50, measured in this run.
double null_process_cpu_s() {
  double sum = 0;
  constexpr int processes = 50;
  for (int i = 0; i < processes; ++i) {
    Process process;
    (void)run_command({"/bin/true"}, process);
    sum += process.cpu_s;
  }
  return sum / processes;
}

// Times a command as a whole process. Counters: its peak memory, its CPU time, and how many times
// that of a null process this is.
void time_process(benchmark::State& state, const std::vector<std::string>& words) {
  const double null_cpu_s = null_process_cpu_s();
  double peak_mb = 0;
  double cpu_s = 0;
  for (auto _ : state) {
    Process process;
    if (run_command(words, process) != 0) state.SkipWithError("the command failed");
    peak_mb = std::max(peak_mb, process.peak_mb);
    cpu_s += process.cpu_s;
  }
  cpu_s /= static_cast<double>(state.iterations());
  state.counters["peak_MB"] = peak_mb;
  state.counters["cpu_s"] = cpu_s;
  state.counters["null_processes"] = cpu_s / null_cpu_s;
}

void NullProcess(benchmark::State& state) {
  time_process(state, {"/bin/true"});
}
BENCHMARK(NullProcess)->Unit(benchmark::kMillisecond)->UseRealTime();

// All strategies of ResNet-50 in one table.
void WholeProcessPredict(benchmark::State& state, const std::string& cluster,
                         const std::string& ranks) {
  time_process(state, {PACELINE_COMMAND, "predict", "--model", "resnet50", "--cluster", cluster,
                       "--ranks", ranks, "--json"});
}
BENCHMARK_CAPTURE(WholeProcessPredict, 1024, std::string("jizhi-p40"), std::string("1024"))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(WholeProcessPredict, 1001, std::string("jizhi-p40"), std::string("1001"))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(WholeProcessPredict, 2048, std::string("jizhi-p40"), std::string("2048"))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(WholeProcessPredict, 65536, std::string("h200-ndr"), std::string("65536"))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// All strategies at 14 numbers of ranks.
void WholeProcessScale(benchmark::State& state) {
  time_process(state, {PACELINE_COMMAND, "scale", "--model", "resnet50", "--cluster", "h200-ndr",
                       "--ranks", "8-65536", "--json"});
}
BENCHMARK(WholeProcessScale)->Unit(benchmark::kMillisecond)->UseRealTime();

// 300 candidates: 3 clusters, each with two kinds of NICs, of 1 to 50 nodes.
void WholeProcessCapacity(benchmark::State& state) {
  time_process(state, {PACELINE_COMMAND, "plan-capacity", "--model", "resnet50", "--cluster",
                       "h200-ndr,aws-p3-16xlarge,sony-abci", "--nic", "own,2xroce-100g", "--nodes",
                       "1-50:1", "--node-price", "20 USD/h", "--epochs", "90", "--dataset",
                       "imagenet", "--within", "1h", "--json"});
}
BENCHMARK(WholeProcessCapacity)->Unit(benchmark::kMillisecond)->UseRealTime();

// The rows that tables leave out or time by the step engine, asked for by name.
void WholeProcessNamed(benchmark::State& state, const std::string& strategy) {
  time_process(state, {PACELINE_COMMAND, "predict", "--model", "resnet50", "--cluster", "jizhi-p40",
                       "--ranks", "1024", "--strategy", strategy, "--json"});
}
BENCHMARK_CAPTURE(WholeProcessNamed, double_binary_tree, std::string("double-binary-tree"))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(WholeProcessNamed, parameter_server, std::string("parameter-server"))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// A network's iteration with its buckets followed through the links that they share, on as many
// streams: every strategy that fuses.
void WholeProcessFlowEngine(benchmark::State& state, std::string strategy) {
  time_process(state, {PACELINE_COMMAND, "predict", "--model", "resnet50", "--cluster", "jizhi-p40",
                       "--ranks", "1024", "--engine", "flow", "--strategy", strategy, "--streams",
                       std::to_string(state.range(0)), "--json"});
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

// One strategy from nothing but the loaded inputs: thresholds, plan, three bounds and the
// baseline.
void OneStrategy(benchmark::State& state) {
  const models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const models::Profile profile = calibration::shipped_profile("jizhi-p40");
  const models::Strategy& strategy =
      models::strategy_catalogue()[static_cast<std::size_t>(state.range(0))];
  state.SetLabel(std::string(strategy.name));
  if (strategy.library() == models::Library::open_mpi)
    return state.SkipWithError("needs a calibrated curve of MPI_Allreduce");
  for (auto _ : state) {
    simulator::Predictor predictor({{}, network, cluster, &profile, 1024, models::WireType::fp16});
    benchmark::DoNotOptimize(predictor.predict(strategy));
  }
}
BENCHMARK(OneStrategy)
    ->DenseRange(0, static_cast<int>(models::strategy_catalogue().size()) - 1)
    ->Unit(benchmark::kMicrosecond);

simulator::CommunicationCost jizhi_cost() {
  return simulator::communication_cost(models::catalog_cluster("jizhi-p40"), nullptr,
                                       simulator::Bound::stated);
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
