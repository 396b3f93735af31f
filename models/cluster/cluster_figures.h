// The figures of a cluster one by one, for all who list them, and its fabric in words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/cluster/cluster.h"

namespace paceline::models {

// Calls `visit(part, what, figure)` for each figure that the cluster has: of its device, its links,
// its fabric, its nodes. A figure's type is its unit. A cluster on a platform has no links of its
// own.
template <class Visit>
void for_each_figure(const Cluster& cluster, Visit visit) {
  const Device& device = cluster.device;
  const auto visit_any = [&visit](const char* part, const char* what, const auto& figure) {
    if (figure) visit(part, what, *figure);
  };
  const auto visit_link = [&visit](const char* part, const Link& link) {
    visit(part, "line rate", link.line_rate);
    if (link.bandwidth_by_ranks.empty()) visit(part, "bandwidth", link.bandwidth);
    for (const auto& [ranks, bandwidth] : link.bandwidth_by_ranks)
      visit(part, ("bandwidth from " + std::to_string(ranks) + " ranks").c_str(), bandwidth);
    visit(part, "latency", link.latency);
  };
  visit("device", "FP32", device.fp32);
  visit_any("device", "TF32", device.tf32);
  visit_any("device", "FP16", device.fp16);
  visit_any("device", "FP16 matrix", device.fp16_tensor);
  visit_any("device", "BF16", device.bf16);
  visit("device", "memory bandwidth", device.memory_bandwidth);
  visit("device", "memory", device.memory);
  visit("device", "compute efficiency", device.compute_efficiency);
  visit("device", "memory efficiency", device.memory_efficiency);
  visit_any("device", "rated power", device.power);
  visit("device", "roofline, FP32", device.roofline_efficiency);
  visit("device", "roofline, mixed", device.roofline_efficiency_mixed);
  if (device.transformer) {
    visit("device", "matrix products", device.transformer->product);
    visit("device", "attention", device.transformer->attention);
    visit_any("device", "FP8 over 16 bits", device.transformer->fp8);
    visit("device", "reached by steps", device.transformer->reached);
  }
  if (cluster.platform == nullptr) {
    visit_link("intra link", cluster.intra);
    if (cluster.has_nic()) visit_link("NIC", cluster.nic);
  }
  if (cluster.host) {
    if (cluster.host->lane) visit_link("lane", *cluster.host->lane);
    visit_any("host", "between sockets", cluster.host->crossing);
    visit_any("host", "memory bandwidth", cluster.host->memory_bandwidth);
    visit_any("host", "uplink of a switch", cluster.host->uplink);
  }
  visit_any("fabric", "hop latency", cluster.hop_latency);
  if (cluster.host_link) visit_link("host link", *cluster.host_link);
  visit_any("node", "storage", cluster.storage);
  visit_any("node", "decode", cluster.decode_per_node);
  visit_any("node", "power in training", cluster.power.node);
  visit_any("node", "price", cluster.price);
}

// "flat", "two-level fat tree, 4 nodes at 2:1", or "platform NAME" where one is named.
[[nodiscard]] std::string described_fabric(const Cluster& cluster);
// "striped" or "affinity".
[[nodiscard]] std::string_view name(NicUse use);

}  // namespace paceline::models
