// Tests: tests/cuda/calibration.
#include "calibration/device_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "calibration/accepted_layers.h"
#include "calibration/fit/acceptance.h"
#include "calibration/fit/statistics.h"
#include "models/base/limits.h"
#include "models/base/parse_units.h"

namespace paceline::calibration {
namespace {

using models::CurveKind;
using models::DeviceWork;

std::string name_of(const NetworkTimes& times) {
  return fmt::format("{} at batch {}, {}", times.network, times.batch, name(times.precision));
}

std::optional<models::RateKind> rate_kind(DeviceWork work) {
  switch (work) {
    case DeviceWork::copy:
      return models::RateKind::copy;
    case DeviceWork::cast:
      return models::RateKind::cast;
    case DeviceWork::reduce:
      return models::RateKind::reduce;
    default:
      return std::nullopt;
  }
}

BytesPerSecond rate_of(double bytes, double seconds) {
  return BytesPerSecond{std::clamp(bytes / std::max(seconds, 1e-300),
                                   Limits<BytesPerSecond>::least.value(),
                                   Limits<BytesPerSecond>::most.value())};
}

class ProfileMaker {
 public:
  ProfileMaker(const DeviceMeasurements& measured, const ProfileNames& names)
      : measured_(measured), names_(names) {}

  DeviceProfile make() {
    profile_.name = names_.name;
    profile_.cluster = names_.cluster;
    profile_.device = names_.device;
    profile_.origin = names_.origin;
    for (const NetworkTimes& times : measured_.networks) add_network(times);
    add_updates();
    if (!measured_.device.launch.empty()) add_launches();
    for (const WorkTimes& times : measured_.device.works) add_work(times);
    for (const CollectiveTimes& times : measured_.collectives) add_collective(times);
    return std::move(made_);
  }

 private:
  [[nodiscard]] Figure<Seconds> median_of(const std::vector<Seconds>& samples,
                                          const std::string& what) const {
    return median_figure(samples, Provenance::measured, fmt::format("{}: {}", what, names_.origin));
  }

  void add_network(const NetworkTimes& times) {
    if (!times.remark.empty())
      made_.complaints.push_back(fmt::format("{}: {}", name_of(times), times.remark));
    std::vector<models::CalibratedLayer> layers =
        accepted_layers(times.layers, name_of(times), times.sums.size(), accepted_);
    if (layers.empty()) return;
    if (times.traffic.empty())
      made_.complaints.push_back(
          fmt::format("time of the layers of {} beside traffic is left out of the profile: no "
                      "traffic outlasted "
                      "them",
                      name_of(times)));
    add_check(times, sum_of(layers));
    std::move(layers.begin(), layers.end(), std::back_inserter(profile_.layers));
  }

  // The figures that a prediction adds up, against what they are to be equal to.
  void add_check(const NetworkTimes& times, const SumOfPasses& layers) {
    const Figure<Seconds> update = median_of(times.updates, "update");
    const models::CalibrationCheck check{
        .network = times.network,
        .precision = times.precision,
        .batch_per_rank = times.batch,
        .iteration = median_of(times.iterations, "whole iterations"),
        .sum = {layers.value + update.value, layers.low + update.low, layers.high + update.high,
                Provenance::predicted, "the sum of the layers' figures and the update's"}};
    profile_.checks.push_back(check);
    if (std::abs(check.difference()) > far_sum)
      made_.complaints.push_back(fmt::format(
          "the layers and the update of {} add up to {}, {:+.1f} % off the {} of a whole iteration",
          name_of(times), to_text(check.sum.value), 100 * check.difference(),
          to_text(check.iteration.value)));
  }

  void add_updates() {
    std::map<std::pair<std::string, models::Precision>, std::vector<Seconds>> samples;
    for (const NetworkTimes& times : measured_.networks) {
      auto& of_network = samples[{times.network, times.precision}];
      of_network.insert(of_network.end(), times.updates.begin(), times.updates.end());
    }
    for (const auto& [key, all] : samples) {
      const auto& [network, precision] = key;
      const std::string what = fmt::format("update of {}, {}", network, name(precision));
      const Figure<Seconds> time = median_of(all, what);
      if (accepted_(what, all.size(), time)) profile_.updates.push_back({network, precision, time});
    }
  }

  models::DeviceCosts& costs() {
    if (!profile_.device_costs) profile_.device_costs.emplace();
    return *profile_.device_costs;
  }

  void add_launches() {
    const Figure<Seconds> launch =
        median_of(measured_.device.launch, "from one kernel on a number to the next");
    if (accepted_("launch of a kernel", measured_.device.launch.size(), launch))
      costs().launch = launch;
    const Figure<Seconds> host = median_of(measured_.device.host_launch,
                                           "the host's time to start a kernel, by its own clock");
    if (accepted_("launch of a kernel by the host", measured_.device.host_launch.size(), host))
      costs().host_launch = host;
  }

  // The fit to samples, or nothing where it is of no use.
  std::optional<Fit> fitted(const std::string& what, const std::vector<Sample>& samples) {
    Fit fit = fit_piecewise(samples, {.source = fmt::format("{}: {}", what, names_.origin)});
    if (!accepted_(what, fit)) return std::nullopt;
    return fit;
  }

  void add_work(const WorkTimes& times) {
    const std::string what = fmt::format("{} {}", name(times.work), name(times.type));
    const std::optional<Fit> fit = fitted(what, times.samples);
    if (fit)
      costs().curves.push_back(
          {.work = times.work,
           .type = times.type,
           .measured = models::MeasuredSizes{fit->sizes.front().bytes, fit->sizes.back().bytes},
           .pieces = fit->pieces,
           .residual = fit->residual,
           .source = fmt::format("{}: {}", what, names_.origin)});
    const std::optional<models::RateKind> kind = rate_kind(times.work);
    if (!kind || times.samples.empty()) return;
    const Bytes largest =
        std::max_element(times.samples.begin(), times.samples.end(),
                         [](const auto& a, const auto& b) { return a.bytes < b.bytes; })
            ->bytes;
    std::vector<BytesPerSecond> rates;
    for (const Sample& sample : times.samples)
      if (sample.bytes == largest) rates.push_back(rate_of(largest.value(), sample.time.value()));
    const Figure<BytesPerSecond> rate =
        median_figure(rates, Provenance::measured,
                      fmt::format("{} of {}: {}", what, to_text_binary(largest), names_.origin));
    if (accepted_("rate of " + what, rates.size(), rate))
      profile_.rates.push_back({*kind, times.type, rate});
  }

  void add_collective(const CollectiveTimes& times) {
    const bool is_library = times.kind == CurveKind::all_reduce;
    const std::string what = fmt::format(
        "{}{}{} between {} devices", is_library ? measured_.library + "'s " : "", name(times.kind),
        is_library ? fmt::format(" {}", name(times.wire)) : std::string(), times.ranks);
    const std::optional<Fit> fit = fitted(what, times.samples);
    if (!fit) return;
    profile_.curves.push_back(
        {.kind = times.kind,
         .between_nodes = false,
         .library = is_library ? measured_.library : "",
         .wire = times.wire,
         .ranks = times.ranks,
         .measured = models::MeasuredSizes{fit->sizes.front().bytes, fit->sizes.back().bytes},
         .pieces = fit->pieces,
         .residual = fit->residual,
         .source = fmt::format("{}: {}", what, names_.origin)});
    if (times.kind != CurveKind::exchange) return;
    const Figure<Seconds>& alpha = fit->pieces.front().alpha;
    if (accepted_("latency within a node", times.samples.size(), alpha))
      profile_.intra_latency = alpha;
    const Figure<SecondsPerByte>& beta = fit->pieces.back().beta;
    const Figure<BytesPerSecond> bandwidth = {
        rate_of(1, beta.value.value()), rate_of(1, beta.high.value()), rate_of(1, beta.low.value()),
        Provenance::calibrated, fmt::format("1 / beta of the {}: {}", what, names_.origin)};
    if (accepted_("bandwidth within a node", times.samples.size(), bandwidth))
      profile_.intra_bandwidth = bandwidth;
  }

  const DeviceMeasurements& measured_;
  const ProfileNames& names_;
  DeviceProfile made_;
  Acceptance accepted_{made_.complaints};
  models::Profile& profile_ = made_.profile;
};

}  // namespace

DeviceProfile make_device_profile(const DeviceMeasurements& measured, const ProfileNames& names) {
  return ProfileMaker(measured, names).make();
}

}  // namespace paceline::calibration
