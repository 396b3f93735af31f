// Tests: tests/cli/calibrate_test.py (end to end).
#include "cli/job/cluster_calibration.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "calibration/import/table_text.h"
#include "calibration/measure/kernel_rates.h"
#include "calibration/measure/layer_times.h"
#include "cli/job/named_things.h"
#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "runtime/network/trainable_network.h"

namespace paceline::job {
namespace {

constexpr int most_gaps = 20;
// The smallest message, and two that a transport still sends at once but that wait for a slow link.
constexpr std::array<std::int64_t, 3> gap_sizes{1, 256, 1024};
constexpr int fairness_repetitions = 7;
constexpr int stream_repetitions = 7;
constexpr int both_ways_repetitions = 5;
// The share of the time that goes to the uplink.
constexpr double uplink_share = 0.1;
// How much of the time layers take on top of it, alone, and as much again beside traffic.
constexpr double layer_share = 0.1;
constexpr Seconds least_layer_time{2};
constexpr std::size_t kernel_bytes = std::size_t{16} << 20;
constexpr int kernel_repetitions = 15;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::int64_t message_size(const char* option, const std::string& text) {
  const Bytes size = parsing_option(option, [&] { return parse_bytes(text); });
  if (size < Bytes{1024} || size > Bytes{1 << 30})
    throw InputError({option}, text + " is no size of a message", "give 1 KiB to 1 GiB");
  return static_cast<std::int64_t>(size.value());
}

// The powers of four below the largest size, and that.
std::vector<std::int64_t> sizes_up_to(std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 4; size < largest; size *= 4) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

// The same with powers of two from the size on at which Open MPI may change to another algorithm.
std::vector<std::int64_t> all_reduce_sizes_up_to(std::int64_t largest) {
  constexpr std::int64_t dense_from = 4096;
  std::vector<std::int64_t> sizes = sizes_up_to(std::min(largest, dense_from));
  for (std::int64_t size = 2 * dense_from; size < 2 * largest; size *= 2)
    sizes.push_back(std::min(size, largest));
  return sizes;
}

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%MZ}", fmt::gmtime(std::time(nullptr)));
}

// Says how far the library's all-reduce was measured, where that is less far than it was asked for.
std::optional<std::string> unreached_size(const std::vector<calibration::MessageTimes>& messages,
                                          std::int64_t asked) {
  std::string reached;
  for (const calibration::MessageTimes& times : messages) {
    if (times.kind != models::CurveKind::all_reduce || times.samples.empty()) continue;
    const Bytes last = times.samples.back().bytes;
    if (last >= Bytes{static_cast<double>(asked)}) continue;
    reached += fmt::format("{}{} on {} ranks", reached.empty() ? "" : ", ", to_text_binary(last),
                           times.ranks);
  }
  if (reached.empty()) return std::nullopt;
  return fmt::format(
      "all-reduce: --time was enough for {}, not for {}; larger buckets are extrapolated", reached,
      to_text_binary(Bytes{static_cast<double>(asked)}));
}

// What only ranks of a job of several can measure: how links pass messages.
void measure_links(const CalibrationRequest& request, const calibration::NodeMap& nodes,
                   runtime::Transport& transport, const CalibrationProgress& progress,
                   calibration::ClusterMeasurements& measured, double& nic_sharing) {
  const std::int64_t largest =
      request.largest > 0 ? request.largest : measured.message_sizes.largest_bytes;
  const std::int64_t of_a_stream = std::max<std::int64_t>(1, largest / 4);
  const auto start = std::chrono::steady_clock::now();
  progress("messages in a row", 0);
  measured.streams =
      calibration::measure_streams(transport, nodes, of_a_stream, stream_repetitions);
  measured.both_ways =
      calibration::measure_both_ways(transport, nodes, largest, both_ways_repetitions);
  if (request.stated_oversubscription > 0) {
    progress("uplinks", 0);
    measured.uplink = calibration::measure_uplink(transport, nodes, of_a_stream, stream_repetitions,
                                                  request.time * uplink_share);
  }
  for (const std::int64_t bytes : gap_sizes) {
    measured.message_gaps.push_back(
        calibration::measure_message_gap(transport, nodes, bytes, most_gaps));
  }
  measured.fairness =
      calibration::measure_fairness(transport, nodes, largest, fairness_repetitions);
  nic_sharing = calibration::measure_nic_sharing(transport, nodes, largest);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  measured.messages = calibration::measure_messages(
      transport, nodes,
      {.sizes = sizes_up_to(largest),
       .time = std::max(request.time * 0.25, request.time * 0.9 - Seconds{passed.count()}),
       .all_reduce_sizes = all_reduce_sizes_up_to(request.largest_all_reduce),
       .progress = progress});
}

}  // namespace

CalibrationRequest load_calibration(const CalibrationOptions& options) {
  CalibrationRequest request;
  request.time = parsing_option("--time", [&] { return parse_seconds(options.time); });
  if (request.time < Seconds{1})
    throw InputError({"--time"}, fmt::format("{} is too short", options.time), "give at least 1 s");
  if (!options.largest.empty()) request.largest = message_size("--largest", options.largest);
  request.largest_all_reduce = message_size("--largest-all-reduce", options.largest_all_reduce);
  const std::string name = calibration::printable(options.name);
  request.names = {.name = name, .cluster = name, .device = "cpu", .origin = {}};
  if (!options.cluster.empty()) {
    const models::Cluster cluster = load_cluster(options.cluster);
    request.names.cluster = cluster.name;
    request.names.device = cluster.device.name;
    if (cluster.fabric.kind == models::FabricKind::fat_tree && !cluster.fabric.levels.empty()) {
      const models::FatTreeLevel& leaf = cluster.fabric.levels.front();
      request.nodes_per_leaf = leaf.members;
      if (cluster.nics_per_node == 1) request.stated_oversubscription = leaf.oversubscription;
    }
  }
  if (!options.model.empty()) {
    request.network = load_layers(options.model);
    parsing_option("--model", [&] { runtime::check_trainable(*request.network); });
  }
  request.batch = static_cast<int>(
      parsing_option("--batch", [&] { return parse_count(options.batch, 1, 1 << 20); }));
  request.precision = parsing_option(
      "--precision", [&] { return models::computed_precision_from_name(options.precision); });
  request.threads = static_cast<int>(
      parsing_option("--threads", [&] { return parse_count(options.threads, 1, 1024); }));
  return request;
}

std::optional<ClusterCalibration> calibrate(const CalibrationRequest& request,
                                            runtime::Transport& transport,
                                            const CalibrationProgress& progress) {
  // Only rank 0 speaks.
  const CalibrationProgress say = [&](const std::string& what, double share) {
    if (transport.rank() == 0) progress(what, share);
  };
  calibration::NodeMap nodes = calibration::find_nodes(transport, host_name());
  nodes.nodes_per_leaf = request.nodes_per_leaf;
  calibration::ClusterMeasurements measured;
  measured.transport = transport.name();
  measured.message_sizes = transport.message_sizes();
  measured.stated_oversubscription = request.stated_oversubscription;
  double nic_sharing = 0;
  if (transport.ranks() > 1) measure_links(request, nodes, transport, say, measured, nic_sharing);
  calibration::ProfileNames names = request.names;
  names.origin =
      fmt::format("paceline calibrate, {} ranks on {} nodes, {}, {}, {}", transport.ranks(),
                  nodes.nodes(), transport.name(), host_name(), now_text());
  if (request.network) {
    say("layers", 0);
    measured.layers =
        calibration::measure_layers(transport,
                                    {.network = *request.network,
                                     .batch = request.batch,
                                     .precision = request.precision,
                                     .threads = request.threads,
                                     .time = std::max(least_layer_time, request.time * layer_share),
                                     .progress = say},
                                    names.origin);
  }
  if (transport.rank() != 0) return std::nullopt;
  say("kernels", 0);
  measured.rates =
      calibration::measure_kernel_rates(kernel_bytes, kernel_repetitions, names.origin);
  calibration::ClusterProfile made = make_profile(measured, names);
  if (const auto complaint = unreached_size(measured.messages, request.largest_all_reduce))
    made.complaints.push_back(*complaint);
  return ClusterCalibration{.made = std::move(made),
                            .messages = std::move(measured.messages),
                            .nic_sharing = nic_sharing};
}

}  // namespace paceline::job
