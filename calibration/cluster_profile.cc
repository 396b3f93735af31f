// Tests: tests/calibration/cluster_profile_test.cc.
#include "calibration/cluster_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "calibration/accepted_layers.h"
#include "calibration/fit/acceptance.h"
#include "calibration/fit/statistics.h"
#include "models/base/limits.h"
#include "models/base/parse_units.h"

namespace paceline::calibration {
namespace {

// The share by which a measured oversubscription may be off the stated one without a complaint.
constexpr double far_oversubscription = 0.1;
// Where a byte more takes this much less or more than one of a stream, messages wait for something
// else than the link.
constexpr double far_from_stream = 0.2;

const char* place(bool between_nodes) {
  return between_nodes ? "between nodes" : "within a node";
}

std::string described(const MessageTimes& times) {
  return fmt::format("{} {}{}", name(times.kind), place(times.between_nodes),
                     times.kind == models::CurveKind::point_to_point
                         ? ""
                         : fmt::format(", {} ranks", times.ranks));
}

// Null if none were measured.
const StreamTimes* streams_between_nodes(const ClusterMeasurements& measured) {
  const auto found = std::find_if(
      measured.streams.begin(), measured.streams.end(),
      [](const StreamTimes& times) { return times.between_nodes && !times.samples.empty(); });
  return found == measured.streams.end() ? nullptr : &*found;
}

// Makes the profile field by field, and collects what is to be said of it.
class ProfileMaker {
 public:
  ProfileMaker(const ClusterMeasurements& measured, const ProfileNames& names)
      : measured_(measured), names_(names) {}

  ClusterProfile make() {
    models::Profile& profile = made_.profile;
    profile.name = names_.name;
    profile.cluster = names_.cluster;
    profile.device = names_.device;
    profile.origin = names_.origin;
    for (const MessageTimes& times : measured_.messages) {
      if (!times.samples.empty()) add_curve(times);
    }
    for (const StreamTimes& times : measured_.streams) {
      if (!times.samples.empty()) set_bandwidth(times);
    }
    for (const BothWaysTimes& times : measured_.both_ways) {
      if (!times.samples.empty()) set_both_ways(times);
    }
    set_oversubscription();
    set_transport();
    add_rates();
    add_layers();
    return std::move(made_);
  }

 private:
  template <class Q>
  static Figure<Q> calibrated(const std::vector<Q>& samples, const std::string& source) {
    return median_figure(samples, Provenance::calibrated, source);
  }

  void add_curve(const MessageTimes& times) {
    const std::string what = described(times);
    const std::string source = fmt::format("{}: {}", what, names_.origin);
    const Fit& fit =
        made_.fits.emplace_back(fit_piecewise(times.samples, {.source = source}), source).fit;
    if (!accepted_(what, fit)) return;
    const Figure<Seconds>& alpha = fit.pieces.front().alpha;
    if (times.kind == models::CurveKind::exchange &&
        accepted_(fmt::format("latency {}", place(times.between_nodes)), times.samples.size(),
                  alpha)) {
      (times.between_nodes ? made_.profile.nic_latency : made_.profile.intra_latency) = alpha;
    }
    made_.profile.curves.push_back(
        {.kind = times.kind,
         .between_nodes = times.between_nodes,
         .library = is_of_library(times.kind) ? measured_.transport : "",
         .ranks = times.ranks,
         .measured = models::MeasuredSizes{fit.sizes.front().bytes, fit.sizes.back().bytes},
         .pieces = fit.pieces,
         .residual = fit.residual,
         .source = source});
  }

  void set_bandwidth(const StreamTimes& times) {
    const Figure<SecondsPerByte> beta = calibrated(times.samples, "");
    const auto rate = [](SecondsPerByte per_byte) {
      return BytesPerSecond{std::clamp(1 / std::max(per_byte.value(), 1e-300),
                                       Limits<BytesPerSecond>::least.value(),
                                       Limits<BytesPerSecond>::most.value())};
    };
    const Figure<BytesPerSecond> bandwidth = {
        rate(beta.value), rate(beta.high), rate(beta.low), Provenance::calibrated,
        fmt::format("messages in a row, {} ranks at once: {}", times.ranks, names_.origin)};
    const std::string text = beta.low > SecondsPerByte{0} ? interval_text(bandwidth)
                                                          : to_text(bandwidth.low) + " to no limit";
    if (accepted_(fmt::format("bandwidth {}", place(times.between_nodes)),
                  objection(times.samples.size(), beta.low.value(), beta.high.value(), text))) {
      (times.between_nodes ? made_.profile.nic_bandwidth : made_.profile.intra_bandwidth) =
          bandwidth;
    }
  }

  void set_both_ways(const BothWaysTimes& times) {
    const Figure<double> ratio =
        calibrated(times.samples, "a message each way at once: " + names_.origin);
    if (accepted_(fmt::format("both ways at once {}", place(times.between_nodes)),
                  objection_to_both_ways(times.samples.size(), ratio))) {
      (times.between_nodes ? made_.profile.nic_both_ways : made_.profile.intra_both_ways) = ratio;
    }
  }

  void set_oversubscription() {
    const StreamTimes* streams = streams_between_nodes(measured_);
    if (streams == nullptr || measured_.uplink.empty()) return;
    const Figure<SecondsPerByte> nic = calibrated(streams->samples, "");
    const Figure<SecondsPerByte> across = calibrated(measured_.uplink, "");
    const auto ratio = [](SecondsPerByte a, SecondsPerByte b) {
      return std::clamp(a.value() / std::max(b.value(), 1e-300), 1.0, Limits<double>::most);
    };
    const Figure<double> figure = {
        ratio(across.value, nic.value), ratio(across.low, nic.high), ratio(across.high, nic.low),
        Provenance::calibrated,
        "messages in a row from leaf to leaf, over those under a leaf: " + names_.origin};
    const auto text = fmt::format("{:.2f}:1 to {:.2f}:1", figure.low, figure.high);
    const std::size_t samples = std::min(measured_.uplink.size(), streams->samples.size());
    if (!accepted_("oversubscription of a leaf's uplink",
                   objection(samples, figure.low, figure.high, text)))
      return;
    made_.profile.uplink_oversubscription = figure;
    const double stated = measured_.stated_oversubscription;
    if (stated > 0 && std::abs(figure.value / stated - 1) > far_oversubscription) {
      made_.complaints.push_back(fmt::format(
          "uplink of a leaf: {:.2f}:1 as measured, {:.2f}:1 as stated; predictions take the "
          "measured one",
          figure.value, stated));
    }
  }

  void set_transport() {
    if (measured_.message_gaps.empty() || measured_.message_gaps.front().samples.empty()) return;
    const std::string source = "small messages in a row: " + names_.origin;
    const std::vector<Seconds>& gaps = measured_.message_gaps.front().samples;
    const Figure<Seconds> gap = calibrated(gaps, source);
    const bool has_gap = accepted_("message gap", gaps.size(), gap);
    made_.profile.transport = {
        .name = measured_.transport,
        .smallest_message = Bytes{static_cast<double>(measured_.message_sizes.smallest_bytes)},
        .largest_message = Bytes{static_cast<double>(measured_.message_sizes.largest_bytes)},
        .ahead = Bytes{static_cast<double>(measured_.message_sizes.ahead_bytes)},
        .message_gap = has_gap ? std::optional(gap) : std::nullopt,
        .message_header = message_header(source),
        .fairness = measured_.fairness};
  }

  std::optional<Figure<Bytes>> message_header(const std::string& source) {
    if (measured_.message_gaps.size() < 3) return std::nullopt;
    const MessageGaps& small = measured_.message_gaps[1];
    const MessageGaps& large = measured_.message_gaps[2];
    const StreamTimes* streams = streams_between_nodes(measured_);
    if (streams == nullptr || small.samples.empty() || large.samples.empty()) return std::nullopt;
    const double per_byte = std::max(median(streams->samples).value(), 1e-300);
    const double more_s = (median(large.samples) - median(small.samples)).value();
    const double of_stream = more_s / static_cast<double>(large.bytes - small.bytes) / per_byte;
    if (!(std::abs(of_stream - 1) <= far_from_stream)) return std::nullopt;
    const Figure<Seconds> gap = calibrated(small.samples, source);
    if (!accepted_("message header", small.samples.size(), gap)) return std::nullopt;
    const auto header = [&](Seconds time) {
      return Bytes{std::max(0.0, time.value() / per_byte - static_cast<double>(small.bytes))};
    };
    return Figure<Bytes>{header(gap.value), header(gap.low), header(gap.high),
                         Provenance::calibrated, source};
  }

  void add_rates() {
    for (const models::CalibratedRate& rate : measured_.rates) {
      const Figure<BytesPerSecond>& figure = rate.bytes;
      if (accepted_(fmt::format("rate of {} {}", name(rate.kind), name(rate.type)), least_samples,
                    figure))
        made_.profile.rates.push_back(rate);
    }
  }

  void add_layers() {
    if (measured_.layers.empty()) return;
    made_.profile.layers = accepted_layers(measured_.layers, measured_.layers.front().network,
                                           least_samples, accepted_);
  }

  const ClusterMeasurements& measured_;
  const ProfileNames& names_;
  ClusterProfile made_;
  Acceptance accepted_{made_.complaints};
};

}  // namespace

ClusterProfile make_profile(const ClusterMeasurements& measured, const ProfileNames& names) {
  return ProfileMaker(measured, names).make();
}

}  // namespace paceline::calibration
