// Plans of all steps of a network, each distinct operation planned once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/network/network.h"
#include "runtime/network/cudnn/planner.h"
#include "runtime/network/steps/layer_steps.h"

namespace paceline::runtime::cudnn {

using steps::Operation;
using steps::Step;

// Plans by operation and storage type, for one device, one version of cuDNN and one set of rules.
// They can be written down and taken back, so that a later run compiles nothing.
class PlanStore {
 public:
  // The planner must outlive the store.
  explicit PlanStore(const Planner& planner, const PlanRules& rules = {});

  // The plan of the store, or a new one, which is stored. Throws RunError as Planner::plan does. The
  // reference is good as long as the store.
  const Plan& plan(const Operation& operation, models::NumberType storage);
  // Makes the plans that are not there, by this many threads: what is compiled at run time takes
  // nearly all of the time, and is compiled side by side. Throws as plan() does, for the first
  // operation that has no plan; what others have is stored.
  void plan_all(std::span<const Operation> operations, models::NumberType storage, int threads);

  [[nodiscard]] std::size_t size() const { return plans_.size(); }
  // How many of them were made here, and not taken from a document.
  [[nodiscard]] std::size_t made() const { return made_; }

  // A JSON document with all plans, in the order of their keys:
  // {"schema": "paceline.cudnn-plans/1", "made_for": ..., "plans": [{"operation", "engine",
  //  "workspace", "configurations", "chosen", "compiled", "serialised"}]}.
  [[nodiscard]] std::string text() const;
  // The version of cuDNN, the rules and the kind of device.
  [[nodiscard]] std::string made_for() const;
  // Takes the plans of a document that was made for this device, version and rules, and returns true;
  // leaves those of any other, and returns false. A plan that cuDNN does not load is made anew when
  // it is asked for. Throws InputError that names file and place if the document is damaged.
  bool take(std::string_view text, const std::string& file);

 private:
  struct Stored {
    Plan plan;
    bool is_checked = true;  // that cuDNN loads it
  };
  // The stored plan that cuDNN loads; null if there is none.
  const Plan* find(const std::string& key);

  const Planner& planner_;
  PlanRules rules_;
  std::unordered_map<std::string, Stored> plans_;
  std::size_t made_ = 0;
};

struct NetworkPlans {
  struct Keyed {
    std::string operation;  // its key
    Plan plan;
  };
  std::vector<Step> steps;
  std::vector<int> plan_of_step;  // an index into plans; -1 for kernels of our own
  std::vector<Keyed> plans;       // in the order of their first use
  // What the largest plan needs, bytes. Steps run one after the other on one stream, so that one
  // block of it serves all of them.
  std::int64_t workspace = 0;
};

// Throws as layer_steps and PlanStore::plan do.
[[nodiscard]] NetworkPlans plan_network(const models::Network& network, int batch,
                                        models::NumberType storage, PlanStore& store,
                                        int threads = 1);

}  // namespace paceline::runtime::cudnn
