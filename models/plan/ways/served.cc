// Tests: tests/models/strategy_test.cc, tests/simulator/server_cost_test.cc.
#include "models/plan/ways/served.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/json_reader.h"
#include "models/plan/ways/documents.h"
#include "models/plan/ways/plan_in_making.h"

namespace paceline::models {
namespace {

Json json(const PlannedSchedule& planned) {
  const auto& use = std::get<ServerUse>(planned.way);
  Json json = {{"served_by", use.servers},
               {"own_machines", use.own_machines},
               {"transport", name(use.transport)}};
  if (use.server >= 0) json["server"] = use.server;
  return json;
}

PlannedSchedule read(const JsonValue& entry, std::string_view strategy, int ranks) {
  entry.check_keys({"served_by", "own_machines", "transport", "server"});
  ServerUse use;
  use.servers = entry.at("served_by").count(1, most_servers);
  use.own_machines = entry.at("own_machines").flag();
  use.transport = entry.at("transport").named([](const std::string& text) {
    return server_transport_from_name(text);
  });
  if (entry.has("server")) use.server = entry.at("server").count(0, use.servers - 1);
  return {std::string(strategy), {.ranks = ranks}, use};
}

std::string in_words(const PlannedSchedule& schedule) {
  const auto& use = std::get<ServerUse>(schedule.way);
  return fmt::format("{}, {} over {}", schedule.algorithm,
                     use.server < 0 ? fmt::format("{} servers", use.servers)
                                    : fmt::format("server {}", use.server),
                     name(use.transport));
}

}  // namespace

const WayDocument served_document = {"served_by", json, read, nullptr, in_words};

bool Served::allows(const PlannedSchedule& schedule) const {
  return std::holds_alternative<ServerUse>(schedule.way);
}

void Served::check(int /*ranks*/, const Thresholds& thresholds) const {
  if (thresholds.servers < 1 || thresholds.servers > most_servers)
    throw InputError({"--servers"}, fmt::format("{} servers", thresholds.servers),
                     fmt::format("choose 1 to {}", most_servers));
}

int Served::schedule_of(const Bucket& bucket, PlanInMaking& plan) const {
  const Thresholds& chosen = plan.thresholds;
  ServerUse use{.servers = chosen.servers,
                .own_machines = chosen.own_machines,
                .transport = chosen.transport};
  if (bucket.elements < shared_from) {
    // A slice of a tensor counts with its own size, and is a key of its own.
    const auto key = chosen.partition > Bytes{0}
                         ? static_cast<std::int64_t>(plan.plan.buckets.size())
                         : plan.gradients - 1 - bucket.first_gradient;
    use.server = placement ? plan.next_server(bucket.elements, *placement)
                           : static_cast<int>(9973 * key % chosen.servers);
  }
  return plan.place_of({plan.plan.strategy, {.ranks = plan.plan.ranks}, use});
}

}  // namespace paceline::models
