// Tests: tests/cli/predict_test.py.
#include "cli/job/basis.h"

#include <fmt/core.h>

#include <utility>

#include "models/cluster/cluster_figures.h"
#include "models/cluster/placement.h"
#include "simulator/iteration/sampled_interval.h"

namespace paceline::job {
namespace {

double number(double value) {
  return value;
}

template <class Q>
double number(Q value) {
  return value.value();
}

template <class Q>
BasisLine line(const char* what, const Figure<Q>& figure, BasisUnit unit) {
  return {.what = what,
          .figure = {number(figure.value), number(figure.low), number(figure.high),
                     figure.provenance, figure.source},
          .unit = unit};
}

template <class Q>
const Figure<Q>& calibrated_or(const std::optional<Figure<Q>>& calibrated,
                               const Figure<Q>& stated) {
  return calibrated ? *calibrated : stated;
}

void add_links(std::vector<BasisLine>& lines, const models::Cluster& cluster,
               const models::Profile& profile) {
  const auto add = [&lines](const char* latency_name, const auto& latency,
                            const char* bandwidth_name, const auto& bandwidth,
                            const models::Link& link) {
    lines.push_back(line(latency_name, calibrated_or(latency, link.latency), BasisUnit::seconds));
    lines.push_back(line(bandwidth_name, calibrated_or(bandwidth, link.bandwidth),
                         BasisUnit::bytes_per_second));
  };
  if (cluster.has_nic())
    add("NIC latency", profile.nic_latency, "NIC bandwidth", profile.nic_bandwidth, cluster.nic);
  add("intra latency", profile.intra_latency, "intra bandwidth", profile.intra_bandwidth,
      cluster.intra);
}

void add_effects(std::vector<BasisLine>& lines, const models::Effects& effects) {
  lines.push_back(line("rank spread", effects.rank_spread, BasisUnit::share));
  lines.push_back(line("jitter", effects.jitter, BasisUnit::share));
  // Effects that only GPUs have are left out where they do nothing.
  if (effects.crowding.high > 1)
    lines.push_back(line("crowding", effects.crowding, BasisUnit::factor));
  if (effects.slowdown.high > 0) {
    lines.push_back(line("slowdown", effects.slowdown, BasisUnit::factor));
    lines.push_back(line("memory-bound", effects.memory_bound, BasisUnit::share));
  }
  if (effects.collective_launch.high > Seconds{0})
    lines.push_back(line("launch", effects.collective_launch, BasisUnit::seconds));
  if (effects.layer_launch.high > Seconds{0})
    lines.push_back(line("fixed per layer", effects.layer_launch, BasisUnit::seconds));
  if (effects.host_launch.high > Seconds{0})
    lines.push_back(line("host per layer", effects.host_launch, BasisUnit::seconds));
  lines.push_back(line("unexplained", effects.unexplained, BasisUnit::share));
  lines.push_back(line("per doubling", effects.unexplained_doubling, BasisUnit::share));
  lines.push_back(line("per exposed", effects.unexplained_exposed, BasisUnit::share));
}

}  // namespace

std::string_view name(BasisUnit unit) {
  switch (unit) {
    case BasisUnit::seconds:
      return "s";
    case BasisUnit::bytes_per_second:
      return "bytes_per_s";
    case BasisUnit::share:
      return "share";
    case BasisUnit::factor:
      return "factor";
    case BasisUnit::ratio:
      return "ratio";
    case BasisUnit::number:
      return "number";
  }
  return "unknown";
}

const models::Effects* effects_of(const Job& job) {
  return simulator::effects_of(job.cluster, job.profile ? &*job.profile : nullptr,
                               job.question.compute_is_exact);
}

std::vector<BasisLine> basis_of(const Job& job) {
  const models::Cluster& cluster = job.cluster;
  const models::Profile none;
  const models::Profile& profile = job.profile ? *job.profile : none;
  std::vector<BasisLine> lines;
  if (!job.question.what_if.empty())
    lines.push_back(
        {.what = "what if",
         .text = fmt::format("{}: the figures of links and devices below have it in them",
                             job.question.what_if)});
  if (cluster.platform != nullptr) {
    lines.push_back(
        {.what = "platform",
         .text = fmt::format("{}: {} hosts, {} links", cluster.platform->name,
                             cluster.platform->hosts.size(), cluster.platform->links.size())});
  } else {
    add_links(lines, cluster, profile);
  }
  if (cluster.fabric.kind != models::FabricKind::flat)
    lines.push_back({.what = "fabric", .text = described_fabric(cluster)});
  if (profile.uplink_oversubscription && cluster.fabric.kind == models::FabricKind::fat_tree)
    lines.push_back(line("uplink of a leaf", *profile.uplink_oversubscription, BasisUnit::ratio));
  if (cluster.placement != models::Placement::node_major || !cluster.slots.empty())
    lines.push_back({.what = "placement", .text = std::string(described_placement(cluster))});
  lines.push_back(
      line("memory bandwidth", cluster.device.memory_bandwidth, BasisUnit::bytes_per_second));
  lines.push_back(line("memory efficiency", cluster.device.memory_efficiency, BasisUnit::number));
  const int streams =
      job.plan ? job.plan->plan.streams : job.question.thresholds.streams.value_or(1);
  if (streams > 1)
    lines.push_back(line("latency not hidden", simulator::unhidden_latency(), BasisUnit::share));
  if (const models::Effects* effects = effects_of(job)) add_effects(lines, *effects);
  return lines;
}

const Document<BasisLine>& basis_document() {
  static const auto number_of = [](auto get) {
    return [get](const BasisLine& line) {
      return line.text.empty() ? std::optional(std::invoke(get, line)) : std::nullopt;
    };
  };
  using Line = BasisLine;
  static const auto document =
      Document<Line>()
          .add("what", &Line::what)
          .add_if_any("text", [](const Line& line) { return non_empty(line.text); })
          .add_if_any("value", number_of([](const Line& line) { return line.figure.value; }))
          .add_if_any("low", number_of([](const Line& line) { return line.figure.low; }))
          .add_if_any("high", number_of([](const Line& line) { return line.figure.high; }))
          .add_if_any("unit", number_of(&Line::unit))
          .add_if_any("provenance",
                      number_of([](const Line& line) { return line.figure.provenance; }))
          .add_if_any("source", number_of([](const Line& line) { return line.figure.source; }),
                      any_text());
  return document;
}

}  // namespace paceline::job
