// What it would be worth to know a figure: a prediction with its interval as if some of the figures
// that it rests on were known exactly, at their stated values.
//
// Figures are in groups, each of which one kind of measurement tells.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "models/cluster/cluster.h"
#include "models/profile/profile.h"

namespace paceline::simulator {

enum class FigureGroup {
  compute,             // rates and efficiencies of the device, fixed times, calibrated throughputs
  nic_bandwidth,       // with what a library's curves between nodes say of it
  nic_latency,         // likewise
  intra_link,          // latency and bandwidth inside a node, and of its host
  waiting,             // for the slowest rank: spread, jitter, crowding
  beside_collectives,  // computation while a collective is on its way
  collective_launch,
  input,        // host link, storage, decoding
  unexplained,  // by any figure
  price,
};

inline constexpr std::array<std::pair<FigureGroup, std::string_view>, 10> figure_groups = {
    {{FigureGroup::compute, "compute"},
     {FigureGroup::nic_bandwidth, "NIC bandwidth"},
     {FigureGroup::nic_latency, "NIC latency"},
     {FigureGroup::intra_link, "links inside a node"},
     {FigureGroup::waiting, "waiting for the slowest rank"},
     {FigureGroup::beside_collectives, "computing beside collectives"},
     {FigureGroup::collective_launch, "launch of a collective"},
     {FigureGroup::input, "input"},
     {FigureGroup::unexplained, "what no figure explains"},
     {FigureGroup::price, "price"}}};

[[nodiscard]] std::string_view name(FigureGroup group);

// Takes the interval from all figures of the group, in the cluster and in the profile, if there is one.
// Their values stay as they are.
void make_known(FigureGroup group, models::Cluster& cluster,
                std::optional<models::Profile>& profile);

}  // namespace paceline::simulator
