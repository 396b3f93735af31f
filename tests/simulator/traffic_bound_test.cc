// Bounds that count bytes are below the iteration of every plan, on any number of streams.
#include "simulator/planner/traffic_bound.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "models/plan/tuned.h"
#include "simulator/cost/losses.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/planner/interval_cost.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

int between(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// A flat cluster, a torus, or nodes of one kind or another.
CommunicationCost random_cost(std::mt19937& random, int ranks_per_node, int nodes) {
  CommunicationCost cost;
  cost.ranks_per_node = ranks_per_node;
  cost.intra = {Seconds{between(random, 0, 5) * 1e-6},
                SecondsPerByte{between(random, 1, 20) * 1e-11}};
  cost.nic = {Seconds{between(random, 0, 20) * 1e-6},
              SecondsPerByte{between(random, 1, 20) * 1e-10}};
  cost.nics_per_node = between(random, 1, 2);
  cost.nic_use = random() % 2 == 0 ? models::NicUse::striped : models::NicUse::affinity;
  cost.gamma = SecondsPerByte{between(random, 0, 3) * 1e-11};
  constexpr models::IntraKind kinds[] = {models::IntraKind::switched, models::IntraKind::ring,
                                         models::IntraKind::all_to_all};
  cost.intra_kind = kinds[random() % 3];
  if (nodes > 1 && random() % 3 == 0) {
    cost.fabric.kind = models::FabricKind::torus;
    cost.fabric.shape = {nodes};
    cost.nic_use = models::NicUse::striped;
  }
  return cost;
}

// The same with a transport that was calibrated, so that ranks start buckets at their own times.
CommunicationCost with_transport(CommunicationCost cost, std::mt19937& random) {
  cost.fabric = {};
  cost.intra_kind = models::IntraKind::switched;
  cost.transport.emplace();
  cost.transport->message_sizes = {4096, 65'536};
  cost.transport->message_gap = Seconds{between(random, 0, 3) * 1e-6};
  cost.transport->message_header = Bytes{static_cast<double>(between(random, 0, 64))};
  cost.transport->is_fair = random() % 2 == 0;
  return cost;
}

models::Overlap random_overlap(std::mt19937& random) {
  return random() % 4 == 0 ? models::Overlap::none : models::Overlap::wait_free;
}

models::Plan random_plan(std::mt19937& random, const models::NetworkWork& network, int ranks,
                         models::Overlap overlap) {
  models::Plan plan{.strategy = std::string(models::tuned_strategy().name),
                    .ranks = ranks,
                    .wire = models::WireType::fp32,
                    .overlap = overlap,
                    .streams = between(random, 1, 4),
                    .schedules = {},
                    .buckets = {},
                    .dispatch = {}};
  for (const char* name : {"ring", "recursive-doubling", "torus-2d", "hierarchical",
                           "double-binary-tree", "direct-exchange"}) {
    const models::CollectiveAlgorithm& entry = models::all_reduce_algorithm(name);
    const models::ScheduleOptions options =
        models::taken_options(entry, {.ranks = ranks, .group_size = 2, .segments = 3});
    plan.schedules.push_back({std::string(name), options, entry.build(options)});
  }
  models::Bucket open;
  for (std::size_t i = 0; i < network.gradients.size(); ++i) {
    open.elements += network.gradients[i].elements;
    ++open.gradient_count;
    if (i + 1 < network.gradients.size() && random() % 2 == 0) continue;
    open.schedule = between(random, 0, static_cast<int>(plan.schedules.size()) - 1);
    plan.buckets.push_back(open);
    open = {.first_gradient = static_cast<int>(i) + 1};
  }
  return plan;
}

// The period of the plan by the engine that suits it, with nothing but all-reduces on its streams.
double period_of(const models::Plan& plan, const test::RandomJob& job,
                 const CommunicationCost& cost) {
  CollectiveTimer engine(cost, EngineKind::automatic);
  const TimingMethod method = timing_method(plan, engine);
  std::vector<BucketTimes> buckets;
  for (const models::Bucket& bucket : plan.buckets) {
    buckets.push_back({});
    if (method.beside == Beside::nothing)
      buckets.back().all_reduce = engine.time(
          plan.schedules[static_cast<std::size_t>(bucket.schedule)], plan.bytes(bucket));
  }
  PlanTimer timer(plan, method, cost);
  return steady_state(timer.timed({job.network, plan, job.compute, buckets, {}})).period.value();
}

// Layers that take microseconds, and gradients of 32 B to 64 kB.
test::RandomJob small_random_job(std::mt19937& random) {
  test::RandomJob job = test::random_job(random);
  for (LayerTime& layer : job.compute.layers) {
    layer.forward *= 1e-3;
    layer.backward *= 1e-3;
  }
  std::vector<std::int64_t> elements;
  for (std::size_t i = 0; i < job.network.layers.size(); ++i)
    elements.push_back(std::int64_t{1} << between(random, 3, 14));
  job.network = test::chain_network(elements);
  return job;
}

TEST(TrafficBound, IsBelowEveryPlan) {
  std::mt19937 random(1119);
  double closest = 0;
  double closest_of_late = 0;
  for (int round = 0; round < 1000; ++round) {
    const int ranks_per_node = between(random, 1, 4);
    const int nodes = between(random, 1, 4);
    const int ranks = ranks_per_node * nodes;
    if (ranks % 2 != 0) continue;
    const bool are_late = round % 2 == 0;
    CommunicationCost cost = random_cost(random, ranks_per_node, nodes);
    if (are_late) cost = with_transport(cost, random);
    const test::RandomJob job = small_random_job(random);
    const models::Plan plan = random_plan(random, job.network, ranks, random_overlap(random));
    const StreamClock clock = stream_clock(job.network, job.compute, plan.overlap, false);
    const double bound =
        clock.update_s + least_start_of_update_s(clock, element_sums(job.network.gradients), 4,
                                                 {least_time_of_a_byte(cost, ranks).value(),
                                                  least_latency(cost, ranks).value(), are_late});
    const double period = period_of(plan, job, cost);
    ASSERT_LE(bound, period * (1 + 1e-9))
        << "round " << round << ": " << ranks << " ranks on " << nodes << " nodes, " << plan.streams
        << " streams, " << plan.buckets.size() << " buckets";
    const double computed = clock.computed_s + clock.update_s;
    if (bound > computed * (1 + 1e-9))
      (are_late ? closest_of_late : closest) =
          std::max(are_late ? closest_of_late : closest, bound / period);
  }
  // Some plans come near, so that the bounds say something.
  EXPECT_GT(closest, 0.9);
  EXPECT_GT(closest_of_late, 0.5);
}

TEST(TrafficBound, IsBelowEveryPlanWithPriorities) {
  std::mt19937 random(1123);
  double closest[2] = {};  // of one stream, and of several
  for (int round = 0; round < 1000; ++round) {
    const int ranks_per_node = between(random, 1, 4);
    const int nodes = between(random, 1, 4);
    const int ranks = ranks_per_node * nodes;
    if (ranks % 2 != 0) continue;
    const CommunicationCost cost = random_cost(random, ranks_per_node, nodes);
    test::RandomJob job = small_random_job(random);
    job.compute.update *= 1e-3;
    const models::Plan plan = random_plan(random, job.network, ranks, models::Overlap::priority);
    const StreamClock clock =
        stream_clock(job.network, job.compute, models::Overlap::priority, false);
    const double bound = least_period_of_priorities_s(
        clock, element_sums(job.network.gradients), 4,
        {least_time_of_a_byte(cost, ranks).value(), least_latency(cost, ranks).value()},
        plan.streams);
    const double period = period_of(plan, job, cost);
    ASSERT_LE(bound, period * (1 + 1e-9))
        << "round " << round << ": " << ranks << " ranks on " << nodes << " nodes, " << plan.streams
        << " streams, " << plan.buckets.size() << " buckets";
    double& near = closest[plan.streams == 1 ? 0 : 1];
    if (bound > clock.computed_s * (1 + 1e-9)) near = std::max(near, bound / period);
  }
  EXPECT_GT(closest[0], 0.9);
  EXPECT_GT(closest[1], 0.9);
}

}  // namespace
}  // namespace paceline::simulator
