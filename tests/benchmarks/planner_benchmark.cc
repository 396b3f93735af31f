// How fast plans are found: the exact plan of one stream, and how many plans a second are evaluated.
//
//   build/release/tests/benchmarks/planner_benchmark
//
// FromNothing has the curves of all all-reduces in it, by the step engine; WithCurves has the
// recurrence alone. Evaluations looks at plans of random buckets, one after the other; the DAG of the
// same plan is its peer.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/cost/losses.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/planner/candidates.h"
#include "simulator/planner/optimal_fusion.h"

namespace {

using namespace paceline;
using namespace paceline::simulator;

constexpr int ranks = 1024;

// A network of this many gradients, as large as ResNet-50's by turns.
models::NetworkWork network_of(int gradients) {
  const models::NetworkWork resnet = models::work(models::zoo_network("resnet50"));
  if (gradients == 0) return resnet;
  models::NetworkWork network;
  network.name = "long";
  for (int i = 0; i < gradients; ++i) {
    const models::Gradient& like =
        resnet.gradients[static_cast<std::size_t>(i) % resnet.gradients.size()];
    models::LayerWork layer;
    layer.name = std::to_string(i);
    layer.parameters = {{layer.name, {like.elements}, like.elements}};
    network.layers.push_back(std::move(layer));
  }
  for (int i = gradients; i-- > 0;)
    network.gradients.push_back({network.layers[static_cast<std::size_t>(i)].name,
                                 network.layers[static_cast<std::size_t>(i)].parameters[0].elements,
                                 i});
  return network;
}

struct Job {
  models::NetworkWork network;
  ComputeTimes compute;
  CommunicationCost cost;
  PlanningJob planning;

  explicit Job(int gradients)
      : network(network_of(gradients)),
        cost(communication_cost(models::catalog_cluster("jizhi-p40"), nullptr, Bound::stated,
                                ranks)),
        planning{.network = network} {
    const double layers = static_cast<double>(network.layers.size());
    for (std::size_t i = 0; i < network.layers.size(); ++i)
      compute.layers.push_back({Seconds{0.1 / layers}, Seconds{0.2 / layers}});
    compute.update = Seconds{2e-3};
    compute = slowed(compute, 1.02, Interference{.least = 0.17, .most = 0.17}, ranks);
    planning.ranks = ranks;
    planning.wire = models::WireType::fp16;
    planning.clock = stream_clock(network, compute, models::Overlap::wait_free, true);
    planning.aside = {20e-6, 0, 1e-11};
  }
};

void ExactPlanFromNothing(benchmark::State& state) {
  const Job job(static_cast<int>(state.range(0)));
  const std::vector<std::int64_t> sums = element_sums(job.network.gradients);
  int candidates = 0;
  for (auto _ : state) {
    CollectiveTimer timer(job.cost);
    const Candidates found = make_candidates(job.planning, {timer});
    candidates = found.tried;
    benchmark::DoNotOptimize(optimal_fusion(
        job.planning.clock, IntervalCost(sums, 2, found.least, job.planning.aside, true)));
  }
  state.counters["candidates"] = candidates;
}
BENCHMARK(ExactPlanFromNothing)->Arg(0)->Arg(2000)->Unit(benchmark::kMillisecond);

void ExactPlanWithCurves(benchmark::State& state) {
  const Job job(static_cast<int>(state.range(0)));
  const std::vector<std::int64_t> sums = element_sums(job.network.gradients);
  CollectiveTimer timer(job.cost);
  const Candidates found = make_candidates(job.planning, {timer});
  FusionOptimum optimum;
  for (auto _ : state) {
    optimum = optimal_fusion(job.planning.clock,
                             IntervalCost(sums, 2, found.least, job.planning.aside, true));
    benchmark::DoNotOptimize(optimum);
  }
  state.counters["pieces"] = static_cast<double>(found.least.pieces().size());
  state.counters["states"] = static_cast<double>(optimum.states);
}
BENCHMARK(ExactPlanWithCurves)->Arg(0)->Arg(2000)->Unit(benchmark::kMillisecond);

std::vector<std::vector<int>> random_plans(int gradients) {
  std::mt19937 random(1);
  std::vector<std::vector<int>> plans(100);
  for (std::vector<int>& ends : plans) {
    for (int end = 1; end < gradients; ++end)
      if (random() % 8 == 0) ends.push_back(end);
    ends.push_back(gradients);
  }
  return plans;
}

void Evaluations(benchmark::State& state) {
  const Job job(0);
  const std::vector<std::int64_t> sums = element_sums(job.network.gradients);
  CollectiveTimer timer(job.cost);
  const Candidates found = make_candidates(job.planning, {timer});
  const IntervalCost cost(sums, 2, found.least, job.planning.aside, true);
  const auto plans = random_plans(static_cast<int>(job.network.gradients.size()));
  for (auto _ : state)
    for (const std::vector<int>& ends : plans)
      benchmark::DoNotOptimize(done_s(job.planning.clock, ends, cost));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(plans.size()));
}
BENCHMARK(Evaluations);

void EvaluationsByTheDag(benchmark::State& state) {
  const Job job(0);
  models::Plan plan = models::make_plan(models::strategy("fused-ring"), job.network.gradients,
                                        ranks, models::WireType::fp16, {.fusion = Bytes{4e6}});
  const std::vector<BucketTimes> times(plan.buckets.size(), {{}, {}, Seconds{1e-3}, {}});
  for (auto _ : state) {
    const IterationDag dag(job.network, plan, job.compute, times, {});
    benchmark::DoNotOptimize(steady_state(dag));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(EvaluationsByTheDag);

}  // namespace

BENCHMARK_MAIN();
