// The clusters on which engines are held against each other: one of each kind that shares links in
// a way of its own, for any number of ranks.
//
// All have NICs of 100 Gbit/s and 5 us and ports of 16 GB/s and 2 us unless they say otherwise, and
// reduce at 500 GB/s. Where ranks do not fill the last node or switch, it is left partly empty.
#pragma once

#include <span>
#include <string_view>

#include "simulator/cost/communication_cost.h"

namespace paceline::experiments {

struct Topology {
  std::string_view name;
  std::string_view summary;
  simulator::CommunicationCost (*cost)(int ranks) = nullptr;  // ranks >= 1
};

[[nodiscard]] std::span<const Topology> topologies();
// Throws InputError that suggests the nearest name.
[[nodiscard]] const Topology& topology(std::string_view name);

}  // namespace paceline::experiments
