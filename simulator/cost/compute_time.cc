// Tests: tests/simulator/cost_test.cc, tests/simulator/compute_time_test.cc.
#include "simulator/cost/compute_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/network/zoo.h"
#include "simulator/cost/transformer_roofline.h"

namespace paceline::simulator {
namespace {

using models::Precision;

// The time of a network at the ends of its interval, over the roofline scaled by another network's
// calibration.
struct Transferred {
  double least;
  double most;

  [[nodiscard]] double at(Bound bound) const {
    return bound == Bound::stated ? 1 : bound == Bound::fast ? least : most;
  }
};
// The middle 90 % of 166 pairs of networks that published sources ran on one device (experiments/roofline.py).
constexpr Transferred between_networks{0.45, 2.2};
// The same of pairs of transformers whose layers take what kernels reach (experiments/transformers.py).
constexpr Transferred between_transformers{0.79, 1.27};

bool takes_kernels(const ComputeRequest& request) {
  return is_by_kernels(request.network, request.device, request.precision);
}

double bytes_of_copies(const ComputeRequest& request) {
  return models::has_masters(request.precision)
             ? 2.0 * static_cast<double>(request.network.parameters())
             : 0;
}

// The time of an update of all parameters of the network: its memory traffic, in mixed precision with the 16-bit
// weights, and its products.
Seconds update_time(const ComputeRequest& request, const Roofline& roofline) {
  const models::OptimizerCost cost =
      models::optimizer_cost(request.network, request.optimizer.of(request.network));
  return Bytes{cost.bytes + bytes_of_copies(request)} / roofline.memory +
         Flops{cost.flops} / roofline.flops;
}

// The same by the processors of the host, which all ranks of a node share, and the way of the copies to the device.
Seconds update_on_host(const ComputeRequest& request, const models::Effects& effects, Bound bound) {
  const double bytes =
      models::optimizer_cost(request.network, request.optimizer.of(request.network)).bytes;
  const double copies = bytes_of_copies(request);
  const Seconds way = request.host_link == nullptr
                          ? Seconds{0}
                          : Bytes{copies} / rate_at(request.host_link->bandwidth, bound);
  return Bytes{request.ranks_of_node * (bytes + copies)} / rate_at(effects.host_update, bound) +
         way;
}

void scale(ComputeTimes& times, double factor) {
  for (LayerTime& layer : times.layers) {
    layer.forward *= factor;
    layer.backward *= factor;
  }
  for (LayerTime& layer : times.beside_traffic) {
    layer.forward *= factor;
    layer.backward *= factor;
  }
  times.update *= factor;
}

// Takes the calibrated update of the network, if there is one.
bool take_update(const ComputeRequest& request, Bound bound, ComputeTimes& times) {
  for (const models::CalibratedUpdate& entry : request.profile->updates) {
    if (entry.network != request.network.name || entry.precision != request.precision) continue;
    times.update = cost_at(entry.time, bound);
    return true;
  }
  return false;
}

std::optional<ComputeTimes> layer_profile_times(const ComputeRequest& request, Bound bound) {
  if (request.profile == nullptr) return std::nullopt;
  ComputeTimes times = roofline_times(request, bound);
  std::vector<LayerTime> beside = times.layers;
  std::size_t found = 0;
  std::size_t found_beside = 0;
  for (const models::CalibratedLayer& entry : request.profile->layers) {
    const bool applies = entry.network == request.network.name &&
                         entry.precision == request.precision &&
                         entry.batch_per_rank == request.batch_per_rank;
    if (!applies) continue;
    for (std::size_t i = 0; i < times.layers.size(); ++i) {
      if (request.network.layers[i].name != entry.layer) continue;
      times.layers[i] = {cost_at(entry.forward, bound), cost_at(entry.backward, bound)};
      ++found;
      beside[i] = times.layers[i];
      if (!entry.forward_beside_traffic || !entry.backward_beside_traffic) continue;
      beside[i] = {cost_at(*entry.forward_beside_traffic, bound),
                   cost_at(*entry.backward_beside_traffic, bound)};
      ++found_beside;
    }
  }
  if (found == 0) return std::nullopt;
  if (found_beside > 0) times.beside_traffic = std::move(beside);
  const bool has_update = take_update(request, bound, times);
  const bool has_all = found == times.layers.size();
  times.source =
      fmt::format("{} of {} layers{} as calibrated in profile {}{}{}", found, times.layers.size(),
                  has_update ? " and the update" : "", request.profile->name,
                  found_beside > 0 ? ", alone and beside traffic" : "",
                  has_update && has_all ? ""
                  : has_update          ? ", the rest by roofline"
                                        : ", the rest and the update by roofline");
  return times;
}

bool is_of_sequence(const models::CalibratedThroughput& entry, std::int64_t sequence) {
  return entry.sequence == 0 || entry.sequence == sequence;
}

// The throughputs of a network for samples of one length: the request's, or else the nearest that
// there is. That at the batch nearest to the wanted one comes first.
std::vector<const models::CalibratedThroughput*> throughputs(const ComputeRequest& request) {
  std::vector<const models::CalibratedThroughput*> found;
  for (const models::CalibratedThroughput& entry : request.profile->throughputs) {
    if (entry.network == request.network.name && entry.precision == request.precision &&
        entry.ranks == 1)
      found.push_back(&entry);
  }
  if (found.empty()) return found;
  const auto away = [&](const models::CalibratedThroughput* entry) {
    return is_of_sequence(*entry, request.network.sequence)
               ? 0
               : std::abs(entry->sequence - request.network.sequence);
  };
  const auto* nearest = *std::min_element(
      found.begin(), found.end(), [&](const auto* a, const auto* b) { return away(a) < away(b); });
  std::erase_if(found,
                [least = away(nearest), &away](const auto* entry) { return away(entry) > least; });
  const auto distance = [&](const models::CalibratedThroughput* entry) {
    return std::abs(entry->batch_per_rank - request.batch_per_rank);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto* a, const auto* b) { return distance(a) < distance(b); });
  return found;
}

Seconds sample_time(const models::CalibratedThroughput& entry, Bound bound) {
  return 1.0 / rate_at(entry.samples, bound);
}

Seconds batch_time(const models::CalibratedThroughput& entry, Bound bound) {
  return entry.batch_per_rank * sample_time(entry, bound);
}

// Whether it is a layer of matrix products, with which its norm and activation go.
bool has_products(const models::LayerWork& layer) {
  return layer.forward_flops > 0;
}

int layers_with_weights(const models::NetworkWork& network) {
  return static_cast<int>(
      std::count_if(network.layers.begin(), network.layers.end(), has_products));
}

constexpr double forward_share = 1.0 / 3;  // of a layer's fixed time; the rest is backward

// The share of its fixed time in FP32 that a layer takes at the precision of the request.
double launch_share(const ComputeRequest& request) {
  return models::has_masters(request.precision) && request.network.sequence == 0
             ? request.effects->mixed_launch_share
             : 1;
}

// Makes the device wait for the host, which launches layers one after the other, each in `launch`, from
// the iteration's start on: a layer's pass starts when the pass before it has ended and it is launched.
void wait_for_host(const models::NetworkWork& network, Seconds launch, ComputeTimes& times) {
  if (launch <= Seconds{0}) return;
  Seconds launched{0};
  Seconds ended{0};
  const auto pass = [&](const models::LayerWork& layer, double share, Seconds& time) {
    if (has_products(layer)) launched += share * launch;
    const Seconds end = std::max(ended, launched) + time;
    time = end - ended;
    ended = end;
  };
  for (std::size_t i = 0; i < times.layers.size(); ++i)
    pass(network.layers[i], forward_share, times.layers[i].forward);
  for (std::size_t i = times.layers.size(); i-- > 0;)
    pass(network.layers[i], 1 - forward_share, times.layers[i].backward);
}

// The time in which the host launches a layer of the network.
Seconds launch_by_host(const ComputeRequest& request, Bound bound) {
  const models::Effects& effects = *request.effects;
  return cost_at(
      request.network.sequence > 0 ? effects.host_launch_transformer : effects.host_launch, bound);
}

void wait_for_host(const ComputeRequest& request, Bound bound, ComputeTimes& times) {
  if (request.effects == nullptr) return;
  wait_for_host(request.network, launch_by_host(request, bound), times);
}

// The part of a batch's time that does not grow with the batch, and where it is from. However much
// the effects say, most of a calibrated time grows with the batch.
constexpr double most_fixed = 0.8;
struct FixedTime {
  Seconds time;
  std::string source;
};

FixedTime fixed_time(const ComputeRequest& request,
                     const std::vector<const models::CalibratedThroughput*>& known, Seconds update,
                     Bound bound) {
  const models::CalibratedThroughput& nearest = *known.front();
  const Seconds time = batch_time(nearest, bound);
  const auto other = std::find_if(known.begin(), known.end(), [&](const auto* entry) {
    return entry->batch_per_rank != nearest.batch_per_rank;
  });
  if (other != known.end()) {
    const Seconds slope = (time - batch_time(**other, bound)) /
                          static_cast<double>(nearest.batch_per_rank - (*other)->batch_per_rank);
    return {std::clamp(time - nearest.batch_per_rank * slope, Seconds{0}, most_fixed * time),
            fmt::format("by the line through batch {} and {}", nearest.batch_per_rank,
                        (*other)->batch_per_rank)};
  }
  if (request.effects == nullptr)
    return {Seconds{0}, "the time of a sample is taken to be the same"};
  // More fixed time makes a larger batch faster, and a smaller one slower.
  const bool is_larger = request.batch_per_rank > nearest.batch_per_rank;
  const Figure<Seconds>& launch = request.effects->layer_launch;
  const Seconds each =
      launch_share(request) * (is_larger ? rate_at(launch, bound) : cost_at(launch, bound));
  const Seconds all =
      std::min(most_fixed * time, layers_with_weights(request.network) * each + update);
  return {all, fmt::format("{} of it do not grow with the batch", to_text(all))};
}

// The time of a batch over that of another one, without what does not grow with it.
double batches_over(const ComputeRequest& request, int other, Bound bound) {
  const double ratio = static_cast<double>(request.batch_per_rank) / static_cast<double>(other);
  if (!takes_kernels(request)) return ratio;
  const auto computed = [&](int batch) {
    ComputeRequest of = request;
    of.batch_per_rank = batch;
    const ComputeTimes times = roofline_times(of, bound);
    return times.total() - times.update;
  };
  return computed(request.batch_per_rank) / computed(other);
}

// The roofline, with the time of each layer that does not grow with the batch.
ComputeTimes structural_times(const ComputeRequest& request, Bound bound = Bound::stated) {
  ComputeTimes times = roofline_times(request, bound);
  if (request.effects != nullptr) {
    const Seconds fixed = launch_share(request) * request.effects->layer_launch.value;
    for (std::size_t i = 0; i < times.layers.size(); ++i) {
      if (!has_products(request.network.layers[i])) continue;
      times.layers[i].forward += forward_share * fixed;
      times.layers[i].backward += (1 - forward_share) * fixed;
    }
  }
  return times;
}

// Whether the network that an entry is about is known, by itself or as one of the zoo.
bool is_known(const models::CalibratedThroughput& entry) {
  return entry.of != nullptr || models::is_in_zoo(entry.network);
}

// The network that an entry is about, for samples of its length.
models::NetworkWork as_measured(const models::CalibratedThroughput& entry) {
  if (entry.of != nullptr) return *entry.of;
  models::Network network = models::zoo_network(entry.network);
  if (entry.sequence != 0 && network.input().is_sequence)
    network = network.with_sequence(entry.sequence);
  return models::work(network);
}

// The total of the structural times of a network on the request's device.
Seconds structural_total(const ComputeRequest& request, const models::NetworkWork& network,
                         int batch) {
  return structural_times(
             {network, request.device, nullptr, request.precision, batch, 1, request.effects})
      .total();
}

// The time of a batch whose samples have the request's length, over that of a batch whose samples have
// the entry's length. For a network that is known, whose samples can have any length, or with fused attention, it is
// the ratio of structural times; the ratio of lengths, which leaves attention out, is the other end of the
// interval. For other networks it is the ratio of lengths. Throws InputError if the network reads no sequence.
double length_ratio(const ComputeRequest& request, const models::CalibratedThroughput& entry,
                    Bound bound) {
  if (request.network.sequence == 0)
    throw InputError(fmt::format("profile {}: a throughput of {} is of samples of {} elements, and "
                                 "the network reads no sequence",
                                 request.profile->name, entry.network, entry.sequence),
                     "leave its sequence out");
  const double by_length =
      static_cast<double>(request.network.sequence) / static_cast<double>(entry.sequence);
  if (!is_known(entry) && !request.network.fuses_attention()) return by_length;
  const models::NetworkWork measured =
      is_known(entry) ? as_measured(entry) : models::scaled_to(request.network, entry.sequence);
  const double by_roofline = structural_total(request, request.network, entry.batch_per_rank) /
                             structural_total(request, measured, entry.batch_per_rank);
  return bound == Bound::stated ? by_roofline
         : bound == Bound::fast ? std::min(by_roofline, by_length)
                                : std::max(by_roofline, by_length);
}

std::optional<ComputeTimes> throughput_times(const ComputeRequest& request, Bound bound) {
  if (request.profile == nullptr) return std::nullopt;
  const auto known = throughputs(request);
  if (known.empty()) return std::nullopt;
  const models::CalibratedThroughput& entry = *known.front();
  ComputeTimes times = roofline_times(request, bound);
  Seconds total = batch_time(entry, bound);
  std::string transfer;
  if (entry.batch_per_rank != request.batch_per_rank) {
    const FixedTime fixed = fixed_time(request, known, times.update, bound);
    total = fixed.time + batches_over(request, entry.batch_per_rank, bound) * (total - fixed.time);
    transfer = fmt::format(" (at batch {}; {})", entry.batch_per_rank, fixed.source);
  }
  if (!is_of_sequence(entry, request.network.sequence)) {
    total *= length_ratio(request, entry, bound);
    transfer += fmt::format(" (of samples of {} elements, x {:.3g} for {})", entry.sequence,
                            length_ratio(request, entry, Bound::stated), request.network.sequence);
  }
  // The update takes the same for any batch.
  const Seconds update = std::min(times.update, most_fixed * total);
  scale(times, (total - update) / (times.total() - times.update));
  times.update = update;
  // The host launches as much for any batch, and took no longer than the calibrated one.
  if (request.effects != nullptr && entry.batch_per_rank != request.batch_per_rank)
    wait_for_host(
        request.network,
        std::min(launch_by_host(request, bound),
                 batch_time(entry, bound) / std::max(1, layers_with_weights(request.network))),
        times);
  times.calibrated_ranks = entry.solved_from;
  times.source = fmt::format(
      "calibrated throughput {:.4g} samples/s of profile {} ({}){}, spread over layers by roofline",
      entry.samples.value.value(), request.profile->name, entry.samples.source, transfer);
  return times;
}

std::optional<ComputeTimes> transferred_times(const ComputeRequest& request, Bound bound) {
  if (request.profile == nullptr || request.profile->device != request.device.name)
    return std::nullopt;
  for (const models::CalibratedThroughput& entry : request.profile->throughputs) {
    if (entry.precision != request.precision || entry.ranks != 1 || !is_known(entry)) continue;
    const models::NetworkWork measured = as_measured(entry);
    const double ratio = entry.batch_per_rank * sample_time(entry, Bound::stated) /
                         structural_total(request, measured, entry.batch_per_rank);
    const bool by_kernels = takes_kernels(request) && measured.fuses_attention();
    const double spread = (by_kernels ? between_transformers : between_networks).at(bound);
    ComputeTimes times = structural_times(request, by_kernels ? bound : Bound::stated);
    scale(times, ratio * spread);
    wait_for_host(request, bound, times);
    times.calibrated_ranks = entry.solved_from;
    times.source = fmt::format(
        "roofline of {} x {:.3g}, the ratio of calibrated to roofline time of {} in profile {}",
        request.device.name, ratio, entry.network, request.profile->name);
    return times;
  }
  return std::nullopt;
}

// The structural times over what training steps reach of them. The ends are that share's alone, which
// has all assumptions of the roofline in it.
ComputeTimes reached_roofline(const ComputeRequest& request, Bound bound) {
  const bool by_kernels = takes_kernels(request);
  ComputeTimes times = structural_times(request, by_kernels ? bound : Bound::stated);
  const Figure<double>& reached = by_kernels ? request.device.transformer->reached
                                  : models::has_masters(request.precision)
                                      ? request.device.roofline_efficiency_mixed
                                      : request.device.roofline_efficiency;
  scale(times, 1 / rate_at(reached, bound));
  wait_for_host(request, bound, times);
  times.source += fmt::format(", x {:.3g} ({:.3g} to {:.3g}, {}: {})", reached.value, reached.low,
                              reached.high, name(reached.provenance), reached.source);
  return times;
}

// Adds what is computed again of forward passes to the backward passes, which begin with it.
void recompute(const ComputeRequest& request, ComputeTimes& times) {
  if (request.recompute == models::Recompute::none) return;
  const models::Recomputation recomputation(request.network, request.recompute);
  for (auto* layers : {&times.layers, &times.beside_traffic})
    for (std::size_t i = 0; i < layers->size(); ++i)
      (*layers)[i].backward += recomputation.again(i) * (*layers)[i].forward;
  times.source +=
      fmt::format(", and what is recomputed again ({})", models::name(request.recompute));
}

// A rank's share takes as many times its structural time as the whole network does, where that is calibrated.
std::optional<ComputeTimes> share_of_calibrated(const ComputeRequest& request, Bound bound) {
  const ComputeRequest whole{*request.whole,    request.device,         request.profile,
                             request.precision, request.batch_per_rank, request.ranks,
                             request.effects,   request.optimizer};
  auto calibrated = layer_profile_times(whole, bound);
  if (!calibrated) calibrated = throughput_times(whole, bound);
  if (!calibrated) return std::nullopt;
  const Bound of_kernels = takes_kernels(request) ? bound : Bound::stated;
  const ComputeTimes structural = structural_times(whole, of_kernels);
  ComputeTimes times = structural_times(request, of_kernels);
  const Seconds update = times.update;
  scale(times,
        (calibrated->total() - calibrated->update) / (structural.total() - structural.update));
  times.update = update;
  wait_for_host(request, bound, times);
  times.calibrated_ranks = calibrated->calibrated_ranks;
  times.source = calibrated->source + ", shared out by roofline";
  return times;
}

// The times of a rank that computes alone.
ComputeTimes times_alone(const ComputeRequest& request, Bound bound) {
  if (request.whole != nullptr) {
    if (auto times = share_of_calibrated(request, bound)) return *std::move(times);
    if (auto times = transferred_times(request, bound)) return *std::move(times);
    return reached_roofline(request, bound);
  }
  if (auto times = layer_profile_times(request, bound)) return *std::move(times);
  if (auto times = throughput_times(request, bound)) return *std::move(times);
  if (auto times = transferred_times(request, bound)) return *std::move(times);
  return reached_roofline(request, bound);
}

// The times of a rank of several, which slow each other down where that is calibrated.
ComputeTimes times_in_job(const ComputeRequest& request, Bound bound) {
  ComputeTimes times = times_alone(request, bound);
  recompute(request, times);
  if (request.profile == nullptr || request.ranks == 1) return times;
  for (const models::CalibratedSlowdown& entry : request.profile->slowdowns) {
    if (entry.network != request.network.name || entry.precision != request.precision) continue;
    scale(times, cost_at(entry.factor, bound));
    times.calibrated_ranks = entry.solved_from;
    times.source += fmt::format(", x {:.4g} in a job of several ranks as calibrated ({})",
                                entry.factor.value, entry.factor.source);
    times.beside_collectives = entry.beside_traffic;
    if (entry.beside_traffic)
      times.source += fmt::format(", x {:.4g} beside collectives", entry.beside_traffic->value);
  }
  return times;
}

}  // namespace

FlopsPerSecond peak_rate(const models::Device& device, Precision precision, Bound bound) {
  FlopsPerSecond best = rate_at(device.fp32, bound);
  if (device.tf32) best = std::max(best, rate_at(*device.tf32, bound));
  if (models::has_masters(precision)) {
    for (const auto& rate : {device.fp16, device.fp16_tensor, device.bf16}) {
      if (rate) best = std::max(best, rate_at(*rate, bound));
    }
  }
  return best;
}

ComputeTimes ComputeTimes::shortest() const {
  ComputeTimes least = *this;
  least.beside_traffic.clear();
  least.beside_collectives.reset();
  for (std::size_t i = 0; i < beside_traffic.size(); ++i) {
    least.layers[i].forward = std::min(layers[i].forward, beside_traffic[i].forward);
    least.layers[i].backward = std::min(layers[i].backward, beside_traffic[i].backward);
  }
  return least;
}

Seconds ComputeTimes::total() const {
  Seconds sum;
  for (const LayerTime& layer : layers) sum += layer.forward + layer.backward;
  return update + (1 + repeated) * sum;
}

ComputeTimes roofline_times(const ComputeRequest& request, Bound bound) {
  PACELINE_ASSERT(request.batch_per_rank >= 1, "a batch has samples");
  const models::Device& device = request.device;
  const FlopsPerSecond best = peak_rate(device, request.precision, bound);
  const Roofline roofline{best * rate_at(device.compute_efficiency, bound),
                          effective_memory_bandwidth(device, bound)};
  const bool by_kernels = takes_kernels(request);
  const FlopsPerSecond stated = peak_rate(device, request.precision, Bound::stated);
  const Bytes element = models::element_size(request.precision);
  const double batch = request.batch_per_rank;

  ComputeTimes times;
  times.layers.reserve(request.network.layers.size());
  for (const models::LayerWork& layer : request.network.layers) {
    const auto moved = [&](std::int64_t activations, std::int64_t weights) {
      return (batch * static_cast<double>(activations) + static_cast<double>(weights)) * element;
    };
    const LayerRooflines of =
        by_kernels ? transformer_rooflines(request.network, layer, request.batch_per_rank, device,
                                           request.precision, stated, bound)
                   : LayerRooflines{roofline, roofline};
    const auto cast = [&](std::int64_t elements) {
      return batch * static_cast<double>(elements) * element / roofline.memory;
    };
    times.layers.push_back(
        {of.forward.time(
             batch * static_cast<double>(layer.forward_flops),
             moved(layer.forward_read + layer.forward_written, layer.forward_weights())) +
             cast(of.forward_cast),
         of.backward.time(batch * static_cast<double>(layer.backward_flops()),
                          moved(layer.backward_read + layer.backward_written + of.also_moved,
                                layer.backward_weights())) +
             cast(of.backward_cast)});
  }
  times.update = update_time(request, roofline);
  times.source = fmt::format(
      "roofline of {}: compute efficiency {:.2g} ({}), memory efficiency {:.2g} ({})", device.name,
      device.compute_efficiency.value, name(device.compute_efficiency.provenance),
      device.memory_efficiency.value, name(device.memory_efficiency.provenance));
  if (by_kernels)
    times.source = fmt::format(
        "kernels of transformers on {}: matrix products at {:.2g} of the peak ({}), attention at "
        "up to {} ({})",
        device.name, device.transformer->product.value,
        name(device.transformer->product.provenance), to_text(device.transformer->attention.value),
        name(device.transformer->attention.provenance));
  return times;
}

ComputeTimes compute_times(const ComputeRequest& request, Bound bound) {
  ComputeTimes times = times_in_job(request, bound);
  if (!request.optimizer.on_host || request.effects == nullptr) return times;
  const Figure<BytesPerSecond>& rate = request.effects->host_update;
  times.update = update_on_host(request, *request.effects, bound);
  times.source += fmt::format(", the update by the host at {} of a node ({})", to_text(rate.value),
                              name(rate.provenance));
  return times;
}

}  // namespace paceline::simulator
