// Each bucket is summed by servers of another system, on machines (models/plan/servers.h).
#pragma once

#include <cstdint>
#include <optional>

#include "models/plan/servers.h"
#include "models/plan/ways/traits.h"

namespace paceline::models {

struct Served {
  // Tensors of at least this many elements are summed by all servers, an equal share each; smaller ones
  // by one server. 0: all of them by all.
  std::int64_t shared_from = 0;
  // How the one server of a smaller tensor is chosen: as in a parameter-server plan; or, where this
  // is empty, number (9973 x key) mod s, for keys that count tensors in forward order.
  std::optional<ServerPlacement> placement = {};

  static constexpr WayTraits traits{
      .takes_servers = true, .takes_machines = true, .by_kernels = false};
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const { return "its servers"; }
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int ranks, const Thresholds& thresholds) const;
};

}  // namespace paceline::models
