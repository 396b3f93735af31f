// Tests: tests/calibration/cluster_profile_test.cc.
#include "calibration/cluster_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibration/fit/median.h"
#include "models/base/limits.h"

namespace paceline::calibration {
namespace {

std::string described(const MessageTimes& times) {
  return fmt::format(
      "{} {}{}", name(times.kind), times.between_nodes ? "between nodes" : "within a node",
      times.kind == models::CurveKind::point_to_point ? ""
                                                      : fmt::format(", {} ranks", times.ranks));
}

template <class Q>
Figure<Q> percentiles(std::vector<Q> samples, const std::string& source) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples.size() - 1);
    return samples[static_cast<std::size_t>(std::lround(place))];
  };
  return {at(0.5), at(0.05), at(0.95), Provenance::calibrated, source};
}

std::vector<BytesPerSecond> bandwidths(const std::vector<SecondsPerByte>& betas) {
  std::vector<BytesPerSecond> rates;
  for (const SecondsPerByte beta : betas) {
    rates.emplace_back(std::clamp(1 / std::max(beta.value(), 1e-300),
                                  Limits<BytesPerSecond>::least.value(),
                                  Limits<BytesPerSecond>::most.value()));
  }
  return rates;
}

// Of what is stated, either way.
constexpr double far_oversubscription = 0.1;

// Null if they were not measured.
const StreamTimes* streams_between_nodes(const ClusterMeasurements& measured) {
  const auto found = std::find_if(
      measured.streams.begin(), measured.streams.end(),
      [](const StreamTimes& times) { return times.between_nodes && !times.samples.empty(); });
  return found == measured.streams.end() ? nullptr : &*found;
}

// Where both were measured.
std::optional<Figure<double>> oversubscription(const ClusterMeasurements& measured,
                                               const std::string& origin) {
  const StreamTimes* streams = streams_between_nodes(measured);
  if (streams == nullptr || measured.uplink.empty()) return std::nullopt;
  const double nic = std::max(percentiles(streams->samples, "").value.value(), 1e-300);
  std::vector<double> ratios;
  for (const SecondsPerByte across : measured.uplink)
    ratios.push_back(std::clamp(across.value() / nic, 1.0, Limits<double>::most));
  return percentiles(std::move(ratios),
                     "messages in a row from leaf to leaf, over those under a leaf: " + origin);
}

// A byte more takes so much less or more than one of a stream where messages wait for something
// else than the link.
constexpr double far_from_stream = 0.2;

std::optional<Figure<Bytes>> message_header(const ClusterMeasurements& measured,
                                            const std::string& source) {
  if (measured.message_gaps.size() < 3) return std::nullopt;
  const MessageGaps& small = measured.message_gaps[1];
  const MessageGaps& large = measured.message_gaps[2];
  const StreamTimes* streams = streams_between_nodes(measured);
  if (streams == nullptr || small.samples.empty() || large.samples.empty()) return std::nullopt;
  const double per_byte = std::max(median(streams->samples).value(), 1e-300);
  const double more_s = (median(large.samples) - median(small.samples)).value();
  const double of_stream = more_s / static_cast<double>(large.bytes - small.bytes) / per_byte;
  if (!(std::abs(of_stream - 1) <= far_from_stream)) return std::nullopt;
  std::vector<Bytes> headers;
  for (const Seconds gap : small.samples)
    headers.emplace_back(std::max(0.0, gap.value() / per_byte - static_cast<double>(small.bytes)));
  return percentiles(std::move(headers), source);
}

}  // namespace

ClusterProfile make_profile(const ClusterMeasurements& measured, const ProfileNames& names) {
  ClusterProfile made;
  models::Profile& profile = made.profile;
  profile.name = names.name;
  profile.cluster = names.cluster;
  profile.device = names.device;
  profile.origin = names.origin;
  for (const MessageTimes& times : measured.messages) {
    if (times.samples.empty()) continue;
    const std::string source = fmt::format("{}: {}", described(times), names.origin);
    Fit fit = fit_piecewise(times.samples, {.source = source});
    for (const std::string& complaint : fit.complaints)
      made.complaints.push_back(fmt::format("{}: {}", described(times), complaint));
    if (times.kind == models::CurveKind::exchange) {
      auto& latency = times.between_nodes ? profile.nic_latency : profile.intra_latency;
      latency = fit.pieces.front().alpha;
    }
    profile.curves.push_back(
        {.kind = times.kind,
         .between_nodes = times.between_nodes,
         .library = times.kind == models::CurveKind::all_reduce ? measured.transport : "",
         .ranks = times.ranks,
         .pieces = fit.pieces,
         .residual = fit.residual,
         .source = source});
    made.fits.push_back(std::move(fit));
  }
  for (const StreamTimes& times : measured.streams) {
    if (times.samples.empty()) continue;
    auto& bandwidth = times.between_nodes ? profile.nic_bandwidth : profile.intra_bandwidth;
    bandwidth = percentiles(
        bandwidths(times.samples),
        fmt::format("messages in a row, {} ranks at once: {}", times.ranks, names.origin));
  }
  for (const BothWaysTimes& times : measured.both_ways) {
    if (times.samples.empty()) continue;
    auto& both_ways = times.between_nodes ? profile.nic_both_ways : profile.intra_both_ways;
    both_ways = percentiles(times.samples, "a message each way at once: " + names.origin);
  }
  profile.uplink_oversubscription = oversubscription(measured, names.origin);
  const double stated = measured.stated_oversubscription;
  if (profile.uplink_oversubscription && stated > 0) {
    const Figure<double>& figure = *profile.uplink_oversubscription;
    if (std::abs(figure.value / stated - 1) > far_oversubscription) {
      made.complaints.push_back(fmt::format(
          "uplink of a leaf: {:.2f}:1 as measured, {:.2f}:1 as stated; predictions take the "
          "measured one",
          figure.value, stated));
    }
  }
  if (!measured.message_gaps.empty() && !measured.message_gaps.front().samples.empty()) {
    const std::string source = "small messages in a row: " + names.origin;
    profile.transport = {
        .name = measured.transport,
        .smallest_message = Bytes{static_cast<double>(measured.message_sizes.smallest_bytes)},
        .largest_message = Bytes{static_cast<double>(measured.message_sizes.largest_bytes)},
        .ahead = Bytes{static_cast<double>(measured.message_sizes.ahead_bytes)},
        .message_gap = percentiles(measured.message_gaps.front().samples, source),
        .message_header = message_header(measured, source),
        .fairness = measured.fairness};
  }
  profile.rates = measured.rates;
  profile.layers = measured.layers;
  return made;
}

}  // namespace paceline::calibration
