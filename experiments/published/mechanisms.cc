// Tests: tests/experiments/mechanisms_test.cc.
#include "experiments/published/mechanisms.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "models/base/error.h"
#include "models/cluster/link_rules.h"
#include "models/plan/strategy.h"

namespace paceline::experiments {
namespace {

using models::Cluster;
using models::Effects;

template <Figure<double> Effects::*effect>
void set_effect(Cluster& cluster, double value) {
  if (!cluster.effects) return;
  Figure<double>& figure = (*cluster.effects).*effect;
  figure.value = figure.low = figure.high = value;
}

template <Figure<Seconds> Effects::*... effects>
void no_time(Cluster& cluster) {
  if (!cluster.effects) return;
  const auto none = [](Figure<Seconds>& figure) {
    figure.value = figure.low = figure.high = Seconds{0};
  };
  (none((*cluster.effects).*effects), ...);
}

void no_waiting(Cluster& cluster) {
  set_effect<&Effects::rank_spread>(cluster, 0);
  set_effect<&Effects::jitter>(cluster, 0);
}

void no_crowding(Cluster& cluster) {
  set_effect<&Effects::crowding>(cluster, 1);
}

void no_slowdown(Cluster& cluster) {
  set_effect<&Effects::slowdown>(cluster, 0);
}

void no_host(Cluster& cluster) {
  cluster.host.reset();
  cluster.gpudirect = true;
}

// One stream of a benchmark gets this share of the line rate.
constexpr double benchmark_share = 0.94;

void no_tcp_rule(Cluster& cluster) {
  if (!cluster.has_nic() || cluster.nic.protocol != models::Protocol::tcp) return;
  cluster.nic.tcp_flows.reset();
  Figure<BytesPerSecond>& bandwidth = cluster.nic.bandwidth;
  bandwidth.value = bandwidth.low = bandwidth.high = benchmark_share * cluster.nic.line_rate.value;
}

// The rule of one rank a node, whatever ranks share the processors.
void no_shared_sockets(Cluster& cluster) {
  if (!cluster.has_nic() || !cluster.nic.tcp_flows) return;
  cluster.nic.bandwidth = models::tcp_bandwidth(cluster.nic.line_rate, *cluster.nic.tcp_flows, 1);
}

void reduce_after_receiving(Cluster& cluster) {
  cluster.device.reduction = models::Reduction::after_receiving;
}

void no_cycle(RowJob& job) {
  job.options.question.thresholds.cycle = Seconds{0};
}

// ByteScheduler's parts over NCCL 2.4, too.
void no_trees_of_nccl_2_4(RowJob& job) {
  const std::string_view name = job.options.strategy->name;
  if (name == "nccl-2.4" || name == "byte-scheduler")
    job.options.question.thresholds.hybrid = Bytes{0};
}

void no_host_copies(RowJob& job) {
  job.options.question.thresholds.through_host = false;
  if (job.options.strategy->name == "mpi-host")
    job.options.strategy = &models::strategy("fused-ring");
}

constexpr std::array<Mechanism, 12> all = {{
    {"waiting", "ranks are alike, and every iteration is", no_waiting},
    {"crowding", "ranks of a node do not slow each other", no_crowding},
    {"slowdown", "collectives take nothing from computation", no_slowdown},
    {"launch", "collectives start at once", no_time<&Effects::collective_launch>},
    {"fixed-time", "layers take time by the batch alone",
     no_time<&Effects::layer_launch, &Effects::host_launch>},
    {"host-paths", "no staging, no shared switches, sockets and memory", no_host},
    {"tcp", "TCP gets 0.94 of the line rate", no_tcp_rule},
    {"tcp-shared", "TCP flows get as much where four ranks or more share a node",
     no_shared_sockets},
    {"reduction", "sums are made after a message is there", reduce_after_receiving},
    {"cycle", "Horovod looks for gradients all the time", nullptr, no_cycle},
    {"nccl-trees", "NCCL 2.4 takes rings alone", nullptr, no_trees_of_nccl_2_4},
    {"host-copies", "buckets do not pass the host's memory", nullptr, no_host_copies},
}};

}  // namespace

std::span<const Mechanism> mechanisms() {
  return all;
}

int rows_moved(std::span<const Reproduction> with, std::span<const Reproduction> without) {
  PACELINE_ASSERT(with.size() == without.size(), "the same sources");
  constexpr double visible = 0.005;
  int moved = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    PACELINE_ASSERT(with[i].rows.size() == without[i].rows.size(), "the same rows");
    for (std::size_t j = 0; j < with[i].rows.size(); ++j) {
      const Row& row = with[i].rows[j];
      if (row.provenance == Provenance::predicted &&
          std::abs(without[i].rows[j].ours / row.ours - 1) > visible)
        ++moved;
    }
  }
  return moved;
}

}  // namespace paceline::experiments
