// Tests: tests/simulator/prediction_test.cc.
#include "simulator/prediction/job_settings.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/cluster/placement.h"
#include "models/plan/tuned.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/nccl_routes.h"
#include "simulator/engine/prepared_schedules.h"

namespace paceline::simulator {
namespace {

// The passes of all batches but the last stand before its forward pass: none of them sends anything.
ComputeTimes accumulated(ComputeTimes compute, int batches) {
  if (batches > 1) compute.earlier = {batches - 1, compute.layers};
  Seconds pass;
  for (const LayerTime& layer : compute.layers) pass += layer.forward + layer.backward;
  if (!compute.layers.empty())
    compute.layers.front().forward += static_cast<double>(batches - 1) * pass;
  if (!compute.beside_traffic.empty())
    compute.beside_traffic.front().forward += static_cast<double>(batches - 1) * pass;
  return compute;
}

// The link of a rank to its host.
const models::Link& link_to_host(const models::Cluster& cluster) {
  return cluster.host_link                    ? *cluster.host_link
         : cluster.host && cluster.host->lane ? *cluster.host->lane
                                              : cluster.intra;
}

// The times to read, decode and copy the batches of all ranks of a node, which share its storage and
// its CPUs. Decoded samples are copied to the device as FP32, over its host link.
InputTimes input_times(const PredictionRequest& request, int ranks, Bound bound) {
  const models::Cluster& cluster = request.cluster;
  const double batches = request.accumulate;  // of an iteration
  const double node_samples = batches * static_cast<double>(request.batch_per_rank) *
                              std::min(ranks, cluster.ranks_per_node);
  InputTimes times;
  if (cluster.storage && request.stored_sample > Bytes{0}) {
    times.read = node_samples * request.stored_sample / rate_at(*cluster.storage, bound);
  }
  if (cluster.decode_per_node)
    times.decode = node_samples / rate_at(*cluster.decode_per_node, bound);
  const models::Link& host = link_to_host(cluster);
  const Bytes batch_bytes = static_cast<double>(request.batch_per_rank) *
                            static_cast<double>(request.network.input_elements) * Bytes{4};
  times.host_to_device = batches * cost_at(host.latency, bound) +
                         batches * batch_bytes / rate_at(host.bandwidth, bound);
  return times;
}

// Whether compute times differ by it at all.
bool spreads(const models::ComputeSpread& spread) {
  return spread.kind == models::SpreadKind::empirical || spread.parameter > 0;
}

}  // namespace

const models::Effects* effects_of(const models::Cluster& cluster, const models::Profile* profile,
                                  bool compute_is_exact) {
  const bool is_known = compute_is_exact || (profile != nullptr && profile->transport.has_value());
  return cluster.effects && !is_known ? &*cluster.effects : nullptr;
}

int baseline_ranks(const models::Cluster& cluster, int ranks) {
  return ranks >= cluster.ranks_per_node ? cluster.ranks_per_node : 1;
}

// FP8 has rates of kernels alone.
void check_precision(const PredictionRequest& request) {
  if (request.precision != models::Precision::fp8) return;
  const models::Device& device = request.cluster.device;
  if (!request.network.fuses_attention())
    throw InputError({"--precision"},
                     fmt::format("fp8 is predicted for networks with fused attention, as {} is not",
                                 request.network.name),
                     "choose mixed or fp32");
  if (!device.transformer || !device.transformer->fp8)
    throw InputError({"--precision"},
                     fmt::format("no rate of fp8 is known for the device {}", device.name),
                     "choose mixed, or another device");
}

void check(const PredictionRequest& request) {
  models::check_ranks(request.cluster, request.ranks);
  if (request.batch_per_rank < 1) {
    throw InputError(fmt::format("a batch of {} samples", request.batch_per_rank),
                     "choose at least 1 per rank");
  }
  check_precision(request);
  if (request.optimizer.kind && request.optimizer.states)
    throw InputError({"--optimizer-states"}, "there is --optimizer, too",
                     "leave one of the two out");
  if (request.accumulate < 1)
    throw InputError({"--accumulate"}, fmt::format("{} batches", request.accumulate),
                     "choose at least 1");
  if (request.baseline_ranks &&
      (*request.baseline_ranks < 1 || *request.baseline_ranks > request.ranks))
    throw InputError(
        {"--baseline"},
        fmt::format("{} ranks are no baseline of {}", *request.baseline_ranks, request.ranks),
        fmt::format("choose 1 to {}", request.ranks));
  if (!request.stragglers) return;
  const models::Stragglers& stragglers = request.stragglers->stragglers;
  for (const auto& [rank, factor] : stragglers.slow_ranks) {
    if (rank >= request.ranks)
      throw InputError({"--slow-rank"},
                       fmt::format("rank {} is not among {} ranks", rank, request.ranks),
                       fmt::format("choose 0 to {}", request.ranks - 1));
  }
  if (stragglers.backup >= request.ranks)
    throw InputError(
        {"--backup"},
        fmt::format("{} backup ranks among {} leave none to wait for", stragglers.backup,
                    request.ranks),
        fmt::format("choose 0 to {}: --ranks counts the backup ranks, too", request.ranks - 1));
}

JobSettings::JobSettings(const PredictionRequest& request)
    : mesh_(request.layout == models::Layout{} ? nullptr : std::make_unique<const Mesh>(request)),
      request_(mesh_ ? mesh_->of_group() : request),
      schedules_(std::make_shared<PreparedSchedules>()) {
  check(request);
}

PredictorSetting& JobSettings::at(int ranks, Bound bound) {
  for (const auto& known : settings_) {
    if (known->ranks == ranks && known->bound == bound) return *known;
  }
  // All ranks of a node update at the same time, also where they are part of a mesh.
  const int ranks_of_copy = mesh_ ? mesh_->whole().layout.ranks_of_sample() : 1;
  const int ranks_per_node =
      mesh_ ? mesh_->whole().cluster.ranks_per_node : request_.cluster.ranks_per_node;
  const ComputeRequest request{.network = request_.network,
                               .device = request_.cluster.device,
                               .profile = request_.profile,
                               .precision = request_.precision,
                               .batch_per_rank = request_.batch_per_rank,
                               .ranks = ranks,
                               .effects = effects(),
                               .optimizer = request_.optimizer,
                               .ranks_of_node = std::min(ranks * ranks_of_copy, ranks_per_node),
                               .host_link = &link_to_host(request_.cluster),
                               .recompute = request_.recompute,
                               .whole = mesh_ ? &mesh_->whole().network : nullptr};
  const CommunicationCost cost =
      communication_cost(request_.cluster, request_.profile, bound, ranks);
  const Seconds launch = effects() != nullptr ? effects()->collective_launch.value : Seconds{0};
  ComputeTimes alone = compute_times(request, request_.compute_is_exact ? Bound::stated : bound);
  if (mesh_)
    alone.layout = mesh_->times(alone.layers, ranks, launch,
                                sums_by_nccl(request_.cluster.device) ? &tables() : nullptr, bound);
  // The stages of a pipeline take batches in turns.
  if (!alone.layout.is_pipeline()) alone = accumulated(std::move(alone), request_.accumulate);
  const std::int64_t most_messages = request_.time_budget != TimeBudget::unlimited
                                         ? most_prepared_in_time
                                         : most_prepared_messages;
  settings_.push_back(std::make_unique<PredictorSetting>(PredictorSetting{
      ranks,
      bound,
      alone,
      slowest(alone, cost, ranks),
      launch,
      request_.compute_is_exact ? InputTimes{} : input_times(request_, ranks, bound),
      effective_memory_bandwidth(request_.cluster.device, bound),
      CollectiveTimer(cost, EngineKind::step, most_messages, schedules_),
      CollectiveTimer(cost, request_.engine, most_prepared_messages, schedules_),
      {},
      std::nullopt,
      std::nullopt}));
  return *settings_.back();
}

const models::Strategy& JobSettings::as_run(const models::Strategy& strategy) const {
  constexpr int first_year_of_trees = 2020;
  const models::Device& device = request_.cluster.device;
  const bool chooses =
      device.year.value_or(0) >= first_year_of_trees || !request_.nccl_version.empty();
  const bool is_ours = request_.compute_is_exact || request_.thresholds.through_host ||
                       request_.thresholds.streams.value_or(1) > 1;
  return chooses && sums_by_nccl(device) && !is_ours
             ? models::by_library(strategy, models::Library::nccl)
             : strategy;
}

const models::Effects* JobSettings::effects() const {
  return effects_of(request_.cluster, request_.profile, request_.compute_is_exact);
}

BytesPerSecond JobSettings::calibrated_bus(const ComputeTimes& alone, const CommunicationCost& cost,
                                           int ranks) const {
  if (alone.calibrated_ranks == 1) return bus_bandwidth(cost, ranks);
  return bus_bandwidth(
      communication_cost(request_.cluster, request_.profile, Bound::stated, alone.calibrated_ranks),
      alone.calibrated_ranks);
}

Interference JobSettings::interference(const ComputeTimes& alone, const CommunicationCost& cost,
                                       int ranks) const {
  const models::Device& device = request_.cluster.device;
  Interference estimate;
  if (effects() != nullptr && cost.platform == nullptr)
    estimate = estimated_interference(stated_losses(*effects()), device.multiprocessors.value_or(0),
                                      device.memory_bandwidth.value);
  if (!alone.beside_collectives) return estimate;
  return calibrated_interference(estimate, alone.beside_collectives->value,
                                 calibrated_bus(alone, cost, ranks));
}

// Where the request has a spread of its own, ranks differ by that alone.
std::optional<models::Effects> JobSettings::effects_of_ranks() const {
  if (effects() == nullptr) return std::nullopt;
  models::Effects effects = *this->effects();
  if (request_.stragglers && spreads(request_.stragglers->stragglers.spread)) {
    const auto none = Figure<double>::exact(0, Provenance::assumed, "ranks differ by their spread");
    effects.rank_spread = effects.jitter = none;
  }
  return effects;
}

ComputeTimes JobSettings::slowest(const ComputeTimes& alone, const CommunicationCost& cost,
                                  int ranks) const {
  const int all = all_ranks(ranks);
  if (all == 1) return alone;
  const std::optional<models::Effects> effects = effects_of_ranks();
  const double waiting =
      effects ? waiting_factor(stated_losses(*effects), {all, whole().cluster.ranks_per_node}) : 1;
  return slowed(alone, waiting, interference(alone, cost, ranks), ranks);
}

const NcclTables& JobSettings::tables() {
  if (!nccl_tables_)
    nccl_tables_ =
        nccl_tables(request_.nccl_version.empty() ? nccl_versions().back() : request_.nccl_version);
  return *nccl_tables_;
}

PredictorSetting& JobSettings::at(const models::Strategy& strategy, int ranks, Bound bound) {
  PredictorSetting& setting = at(ranks, bound);
  // In a replay our executor runs the collectives.
  const bool are_by_nccl = sums_by_nccl(request_.cluster.device) && !request_.compute_is_exact;
  if (strategy.sharded() != nullptr && !setting.groups)
    setting.groups.emplace(GroupJob{request_.cluster, request_.profile,
                                    are_by_nccl ? &tables() : nullptr, ranks, request_.wire, bound,
                                    request_.engine});
  const auto library = strategy.library();
  if (!library || setting.curve_of(*library) != nullptr) return setting;
  auto curve = curve_on_routes(request_.profile, *library,
                               library_job(request_.cluster, ranks, request_.wire), bound,
                               setting.engine.cost());
  if (curve) {
    setting.curves.emplace(*library, *std::move(curve));
  } else if (library == models::Library::nccl && !setting.nccl) {
    setting.nccl.emplace(tables(), request_.cluster, ranks, setting.engine.cost(), bound);
  }
  return setting;
}

PredictorSetting& JobSettings::at(std::span<const std::string> all_reduces, int ranks,
                                  Bound bound) {
  const auto library = models::library_of(all_reduces);
  return library ? at(models::strategy(name(*library)), ranks, bound) : at(ranks, bound);
}

}  // namespace paceline::simulator
