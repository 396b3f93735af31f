// A job small enough to check by hand, and random ones for properties.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "simulator/engine/network_engine.h"
#include "simulator/iteration/dag.h"

namespace paceline::test {

// A chain of layers with one gradient each; `elements` in forward order.
inline models::NetworkWork chain_network(const std::vector<std::int64_t>& elements) {
  models::NetworkWork network;
  network.name = "chain";
  for (std::size_t i = 0; i < elements.size(); ++i) {
    models::LayerWork layer;
    layer.name = "layer" + std::to_string(i);
    layer.kind = "fully_connected";
    layer.parameters = {{layer.name + ".weight", {elements[i]}, elements[i]}};
    network.layers.push_back(layer);
  }
  for (std::size_t i = elements.size(); i-- > 0;) {
    network.gradients.push_back(
        {network.layers[i].parameters[0].name, elements[i], static_cast<int>(i)});
  }
  return network;
}

struct RandomJob {
  models::NetworkWork network;
  simulator::ComputeTimes compute;
  models::Plan plan;
  std::vector<simulator::BucketTimes> buckets;
};

inline RandomJob random_job(std::mt19937& random,
                            models::Overlap overlap = models::Overlap::wait_free) {
  const auto uniform = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  RandomJob job;
  std::vector<std::int64_t> elements(static_cast<std::size_t>(uniform(1, 12)));
  for (auto& count : elements) count = uniform(1, 1000);
  job.network = chain_network(elements);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    job.compute.layers.push_back({Seconds{uniform(0, 50) * 1e-3}, Seconds{uniform(0, 100) * 1e-3}});
  }
  job.compute.update = Seconds{uniform(0, 20) * 1e-3};
  job.plan = models::make_plan(
      models::strategy("fused-ring"), job.network.gradients, 4, models::WireType::fp32,
      {.fusion = Bytes{4.0 * uniform(0, 1500)}, .hybrid = Bytes{0}, .group_size = 1});
  job.plan.overlap = overlap;
  for (std::size_t i = 0; i < job.plan.buckets.size(); ++i) {
    job.buckets.push_back({Seconds{uniform(0, 3) * 1e-3}, Seconds{uniform(0, 3) * 1e-3},
                           Seconds{uniform(0, 150) * 1e-3}, Seconds{uniform(0, 3) * 1e-3}});
  }
  return job;
}

// The engines' schedules of a plan.
inline std::vector<models::Schedule> schedules_of(const models::Plan& plan) {
  std::vector<models::Schedule> schedules;
  for (const models::PlannedSchedule& planned : plan.schedules)
    schedules.push_back(planned.schedule());
  return schedules;
}

// The DAG of a plan in which nothing but compute and all-reduces takes time, and each of those as
// long as it takes alone.
inline simulator::IterationDag dag_of_buckets_alone(const models::NetworkWork& network,
                                                    const models::Plan& plan,
                                                    const simulator::ComputeTimes& compute,
                                                    simulator::NetworkEngine& engine) {
  std::vector<simulator::BucketTimes> buckets;
  for (const models::Bucket& bucket : plan.buckets)
    buckets.push_back({{}, {}, engine.completion(bucket.schedule, plan.bytes(bucket)).last(), {}});
  return {network, plan, compute, buckets, {}};
}

// One rank on each node; a byte takes 1 ns and nothing else takes time.
inline simulator::CommunicationCost one_gigabyte_a_second() {
  simulator::CommunicationCost cost;
  cost.nic = {Seconds{0}, SecondsPerByte{1e-9}};
  return cost;
}

inline std::vector<double> all_reduce_times(const simulator::IterationDag& dag) {
  std::vector<double> times;
  for (const simulator::Task& task : dag.tasks()) {
    if (task.kind == models::TaskKind::all_reduce) times.push_back(task.duration.value());
  }
  return times;
}

}  // namespace paceline::test
