// Tests: tests/simulator/losses_test.cc.
#include "simulator/cost/losses.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

// Bytes of device memory that a collective moves for each byte of its bus bandwidth
// (NVIDIA/nccl#1428): stored, read back, and in part copied once more.
constexpr double memory_bytes_per_byte = 2.5;

// What one channel of a collective carries, and the least number of channels.
constexpr BytesPerSecond channel_bandwidth{11e9};
constexpr double least_channels = 2;

// The share of the memory bandwidth that collectives take where slowdowns beside them were measured:
// 2.5 B over NVLink is 0.36 of it on V100, 0.37 on A100, 0.34 on H100.
constexpr double measured_share = 0.36;

// A collective leaves a part of the device to computation.
constexpr double most_taken = 0.9;

double normal_density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

double normal_distribution(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

}  // namespace

Losses stated_losses(const models::Effects& effects) {
  return {.rank_spread = effects.rank_spread.value,
          .jitter = effects.jitter.value,
          .crowding = effects.crowding.value,
          .slowdown = effects.slowdown.value,
          .memory_bound = effects.memory_bound.value,
          .collective_launch = effects.collective_launch.value};
}

// The integral of x n phi(x) Phi(x)^(n-1), by the trapezoidal rule, which converges exponentially for
// what is smooth and vanishes at both ends (Trefethen & Weideman 2014).
double expected_maximum(int n) {
  PACELINE_ASSERT(n >= 1, "a maximum is of at least one value");
  if (n == 1) return 0;
  constexpr double reach = 9;
  constexpr int intervals = 240;
  constexpr double step = 2 * reach / intervals;
  double sum = 0;
  for (int i = 1; i < intervals; ++i) {
    const double x = -reach + i * step;
    sum += x * normal_density(x) * std::pow(normal_distribution(x), n - 1);
  }
  return n * sum * step;
}

WaitingRanks::WaitingRanks(int ranks, int ranks_per_node)
    : maximum(expected_maximum(ranks)),
      are_crowded(std::min(ranks, ranks_per_node) >= models::crowded_ranks) {}

double waiting_factor(const Losses& losses, const WaitingRanks& ranks) {
  const double slowest = 1 + std::hypot(losses.rank_spread, losses.jitter) * ranks.maximum;
  return ranks.are_crowded ? slowest * losses.crowding : slowest;
}

Seconds Interference::lost(Bytes bus_bytes, Seconds time) const {
  return std::min(most * time, std::max(least * time, bus_bytes * a_byte));
}

double Interference::share(BytesPerSecond bus_bandwidth) const {
  if (bus_bandwidth <= BytesPerSecond{0}) return 0;
  return std::min(most, std::max(least, a_byte.value() * bus_bandwidth.value()));
}

double Interference::beside(BytesPerSecond bus_bandwidth) const {
  return 1 / (1 - share(bus_bandwidth));
}

Interference estimated_interference(const Losses& losses, int multiprocessors,
                                    BytesPerSecond memory) {
  if (multiprocessors < 1) return {};
  const SecondsPerByte of_blocks = 1.0 / (multiprocessors * channel_bandwidth);
  const double w = losses.memory_bound;
  const SecondsPerByte of_memory =
      w / (1 - measured_share * (1 - w)) * memory_bytes_per_byte / memory;
  return {.least = std::min(most_taken, losses.slowdown * least_channels / multiprocessors),
          .a_byte = losses.slowdown * std::max(of_blocks, of_memory),
          .most = most_taken};
}

Interference calibrated_interference(const Interference& estimate, double beside,
                                     BytesPerSecond bus_bandwidth) {
  const double share = 1 - 1 / std::max(1.0, beside);
  const double estimated = estimate.share(bus_bandwidth);
  if (estimated <= 0) return {.least = share, .a_byte = SecondsPerByte{0}, .most = share};
  const double times = share / estimated;
  const double most = std::max(most_taken, share);
  return {.least = std::min(most, times * estimate.least),
          .a_byte = times * estimate.a_byte,
          .most = most};
}

Bytes bus_bytes(Bytes bytes, int ranks) {
  return 2 * static_cast<double>(ranks - 1) / ranks * bytes;
}

ComputeTimes slowed(ComputeTimes compute, double waiting, const Interference& interference,
                    int ranks) {
  for (auto* layers : {&compute.layers, &compute.beside_traffic}) {
    for (LayerTime& layer : *layers) {
      layer.forward *= waiting;
      layer.backward *= waiting;
    }
  }
  compute.update *= waiting;
  // Where bytes do not count, a collective takes `least`, which is then its full load.
  const bool by_bytes = interference.a_byte > SecondsPerByte{0};
  const double most = by_bytes ? interference.most : interference.least;
  if (most <= 0 || !compute.beside_traffic.empty()) return compute;
  compute.beside_traffic = compute.layers;
  compute.beside_kernels_only = true;
  for (LayerTime& layer : compute.beside_traffic) {
    layer.forward /= 1 - most;
    layer.backward /= 1 - most;
  }
  if (by_bytes)
    compute.load = {.least = interference.least / most,
                    .a_byte = bus_bytes(Bytes{1}, ranks).value() / most * interference.a_byte};
  return compute;
}

BytesPerSecond bus_bandwidth(const CommunicationCost& cost, int ranks) {
  if (ranks <= 1 || cost.platform != nullptr) return BytesPerSecond{0};
  const BytesPerSecond inside = 1.0 / cost.intra.beta;
  if (ranks <= cost.ranks_per_node) return inside;
  const BytesPerSecond outside = static_cast<double>(cost.nics_per_node) / cost.nic.beta;
  return cost.ranks_per_node == 1 ? outside : std::min(inside, outside);
}

}  // namespace paceline::simulator
