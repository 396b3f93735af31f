// Tests: tests/cli/profile_use_test.cc.
#include "cli/job/profile_use.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/network/zoo.h"

namespace paceline::job {
namespace {

using models::CurveKind;

// Collects warnings about one profile, each once.
class Warnings {
 public:
  explicit Warnings(const models::Profile& profile) : profile_(profile) {}

  void add(const std::string& what) {
    std::string line = fmt::format("profile {}: {}", profile_.name, what);
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end())
      lines_.push_back(std::move(line));
  }
  [[nodiscard]] std::vector<std::string> lines() const { return lines_; }

 private:
  const models::Profile& profile_;
  std::vector<std::string> lines_;
};

// "batch 64, mixed precision"
template <class Entry>
std::string setting_of(const Entry& entry) {
  return fmt::format("batch {}, {} precision", entry.batch_per_rank, name(entry.precision));
}

// Warns of entries that say for which network, precision and batch they are, and that this job does
// not use. `applies` tells which entries the simulator takes.
template <class Entry, class Applies>
void check_entries(const std::vector<Entry>& entries, const char* kind, const Job& job,
                   const models::NetworkWork& network, Warnings& warnings, Applies applies) {
  const bool is_used = std::any_of(entries.begin(), entries.end(), applies);
  for (const Entry& entry : entries) {
    if (applies(entry)) continue;
    if (entry.network != network.name) {
      if (!is_used || !models::is_in_zoo(entry.network))
        warnings.add(fmt::format("its {} of network {} are not used for {}", kind,
                                 in_quotes(entry.network), in_quotes(network.name)));
    } else if (!is_used) {
      warnings.add(fmt::format("its {} of {} at {} are not used for batch {}, {} precision", kind,
                               network.name, setting_of(entry), job.question.batch_per_rank,
                               name(job.question.precision)));
    }
  }
}

void check_layers(const Job& job, const models::NetworkWork& network, Warnings& warnings) {
  const std::vector<models::CalibratedLayer>& layers = job.profile->layers;
  const auto applies = [&](const models::CalibratedLayer& entry) {
    return entry.network == network.name && entry.precision == job.question.precision &&
           entry.batch_per_rank == job.question.batch_per_rank;
  };
  check_entries(layers, "layer times", job, network, warnings, applies);
  std::vector<std::string> unknown;
  for (const models::CalibratedLayer& entry : layers) {
    const bool is_known =
        std::any_of(network.layers.begin(), network.layers.end(),
                    [&](const models::LayerWork& layer) { return layer.name == entry.layer; });
    if (applies(entry) && !is_known) unknown.push_back(entry.layer);
  }
  if (!unknown.empty())
    warnings.add(fmt::format("{} of its layers, {} among them, {} not in {}", unknown.size(),
                             in_quotes(unknown.front()), unknown.size() == 1 ? "is" : "are",
                             in_quotes(network.name)));
}

// Where a network has no throughput of its own, that of another network of the zoo on the same
// device scales the roofline (simulator/cost/compute_time.h).
void check_throughputs(const Job& job, const models::NetworkWork& network, Warnings& warnings) {
  const models::Profile& profile = *job.profile;
  const bool has_own =
      std::any_of(profile.throughputs.begin(), profile.throughputs.end(), [&](const auto& entry) {
        return entry.network == network.name && entry.precision == job.question.precision;
      });
  check_entries(profile.throughputs, "throughputs", job, network, warnings,
                [&](const models::CalibratedThroughput& entry) {
                  if (entry.precision != job.question.precision) return false;
                  return has_own ? entry.network == network.name
                                 : models::is_in_zoo(entry.network) &&
                                       profile.device == job.cluster.device.name;
                });
}

void check_links(const Job& job, Warnings& warnings) {
  const models::Profile& profile = *job.profile;
  const bool has_links = profile.intra_latency || profile.intra_bandwidth || profile.nic_latency ||
                         profile.nic_bandwidth;
  if (job.cluster.platform != nullptr && has_links)
    warnings.add("its latencies and bandwidths are not used: the platform has links of its own");
  if (profile.uplink_oversubscription && job.cluster.fabric.kind != models::FabricKind::fat_tree)
    warnings.add("the oversubscription of its uplinks is not used: the cluster is no fat tree");
}

void check_curves(const Job& job, Warnings& warnings) {
  const models::Profile& profile = *job.profile;
  if (profile.transport) return;
  for (const models::CalibratedCurve& curve : profile.curves) {
    if (!is_of_library(curve.kind))
      warnings.add("its curves of messages are not used: the profile has no transport");
  }
}

}  // namespace

std::vector<std::string> profile_warnings(const Job& job, const models::NetworkWork& network) {
  if (!job.profile) return {};
  const models::Profile& profile = *job.profile;
  Warnings warnings(profile);
  if (profile.cluster != job.cluster.name)
    warnings.add(fmt::format("it was calibrated on cluster {}, and is used for {}",
                             in_quotes(profile.cluster), in_quotes(job.cluster.name)));
  if (profile.device != job.cluster.device.name)
    warnings.add(fmt::format("it was calibrated on device {}, and is used for {}",
                             in_quotes(profile.device), in_quotes(job.cluster.device.name)));
  check_links(job, warnings);
  check_curves(job, warnings);
  check_layers(job, network, warnings);
  check_throughputs(job, network, warnings);
  return warnings.lines();
}

}  // namespace paceline::job
