// A plan as a document: JSON of schema "paceline.plan/1" (docs/formats.md).
//
// The document names the network that the plan is for, and holds in each bucket the names and sizes
// of its gradients. So a reader can say which gradient is wrong where a plan is used with another
// network, or where its buckets do not hold every gradient once and in backward order. `predict
// --plan-out` writes the document; --plan of predict, train, replay, compare and show plan read it;
// rank 0 of a replay sends it to the other ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/recompute.h"
#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline {
class Json;
class JsonValue;
}  // namespace paceline

namespace paceline::models {

// A gradient as the document has it.
struct PlannedGradient {
  std::string name;
  std::int64_t elements = 0;

  bool operator==(const PlannedGradient&) const = default;
};

// The word of --offload and of documents for an optimizer on the host (OptimizerChoice::on_host).
inline constexpr std::string_view offloaded_optimizer = "optimizer";

// The job that a plan was made for, as far as the plan itself does not say it.
struct MadeFor {
  std::string cluster;         // its name
  std::string cluster_digest;  // of its description (models/cluster/cluster_json.h)
  int batch_per_rank = 1;
  int accumulate = 1;  // batches of an iteration
  Precision precision = Precision::mixed;
  std::int64_t sequence = 0;  // elements of one sample's sequence; 0 where it has none
  Recompute recompute = Recompute::none;
  bool optimizer_on_host = false;

  bool operator==(const MadeFor&) const = default;
};

struct PlanDocument {
  std::string network;
  std::vector<PlannedGradient> gradients;  // of all buckets, in their order
  Plan plan;
  std::optional<MadeFor> made_for = {};  // nothing where who wrote the plan did not say

  bool operator==(const PlanDocument&) const = default;
};

// The document of a plan that was made for this network.
[[nodiscard]] PlanDocument plan_document(const Plan& plan, const NetworkWork& network,
                                         std::optional<MadeFor> made_for = {});

[[nodiscard]] std::string to_json(const PlanDocument& document);
// The same as a value, for a document that holds plans.
[[nodiscard]] Json json_of(const PlanDocument& document);

// Throws InputError with the place in the document if the text is no such document, or if its plan
// cannot be: an unknown name, an option that the algorithm does not take or that does not fit the
// ranks, an algorithm that the strategy does not use, an all-reduce that no bucket uses.
// Whether it fits a network is check_plan's question. `file` is named in errors.
[[nodiscard]] PlanDocument parse_plan(std::string_view text, const std::string& file);
// The same for a plan inside another document.
[[nodiscard]] PlanDocument read_plan(const JsonValue& document);

// Throws InputError that names `file` unless the plan is for this network and this number of ranks,
// and its buckets hold the network's gradients, each once, in backward order.
void check_plan(const PlanDocument& document, const std::string& file, const NetworkWork& network,
                int ranks);

}  // namespace paceline::models
