// Tests: tests/simulator/server_cost_test.cc.
#include "models/plan/servers.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "models/base/names.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<ServerTransport, std::string_view>, 3> transports = {
    {{ServerTransport::grpc, "grpc"},
     {ServerTransport::tcp, "tcp"},
     {ServerTransport::rdma, "rdma"}}};

constexpr std::array<std::pair<ServerPlacement, std::string_view>, 2> placements = {
    {{ServerPlacement::round_robin, "round-robin"}, {ServerPlacement::balanced, "balanced"}}};

}  // namespace

std::string_view name(ServerPlacement placement) {
  return name_in(placements, placement);
}

ServerPlacement server_placement_from_name(std::string_view text) {
  return value_named(placements, "placement", text);
}

std::string_view name(ServerTransport transport) {
  for (const auto& [value, text] : transports) {
    if (value == transport) return text;
  }
  return "unknown";
}

ServerTransport server_transport_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, candidate] : transports) {
    if (candidate == text) return value;
    known.emplace_back(candidate);
  }
  throw unknown_name("server transport", text, known);
}

}  // namespace paceline::models
