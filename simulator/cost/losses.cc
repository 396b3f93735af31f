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

double beside_collective(const Losses& losses, int multiprocessors, BytesPerSecond memory,
                         BytesPerSecond bus_bandwidth) {
  if (multiprocessors < 1 || bus_bandwidth <= BytesPerSecond{0}) return 1;
  const double channels = std::max(least_channels, bus_bandwidth / channel_bandwidth);
  const double s = std::min(most_taken, channels / multiprocessors);
  const double h = std::min(most_taken, memory_bytes_per_byte * (bus_bandwidth / memory));
  const double taken = std::max(s / (1 - s), losses.memory_bound * h / (1 - h));
  return 1 + losses.slowdown * taken;
}

Figure<double> beside_another(const Figure<double>& calibrated, double there, double here) {
  if (here >= there) return calibrated;
  const double share = (here - 1) / (there - 1);
  Figure<double> beside = calibrated;
  for (double* times : {&beside.value, &beside.low, &beside.high})
    *times = 1 + share * (*times - 1);
  return beside;
}

ComputeTimes slowed(ComputeTimes compute, double waiting, double beside) {
  for (auto* layers : {&compute.layers, &compute.beside_traffic}) {
    for (LayerTime& layer : *layers) {
      layer.forward *= waiting;
      layer.backward *= waiting;
    }
  }
  compute.update *= waiting;
  if (compute.beside_collectives) beside = compute.beside_collectives->value;
  if (beside <= 1 || !compute.beside_traffic.empty()) return compute;
  compute.beside_traffic = compute.layers;
  compute.beside_kernels_only = true;
  for (LayerTime& layer : compute.beside_traffic) {
    layer.forward *= beside;
    layer.backward *= beside;
  }
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
