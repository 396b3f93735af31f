// Tests: tests/cli/plan_test.py (end to end).
#include "cli/job/plan_file.h"

#include <fmt/core.h>

#include "cli/job/files.h"
#include "models/base/error.h"
#include "models/plan/strategy.h"

namespace paceline::job {

void refuse_beside_plan(const std::vector<std::string>& given) {
  if (given.empty()) return;
  throw InputError({given.front()}, "the plan of --plan says this already",
                   "leave one of the two out");
}

void refuse_of_other_system(const models::Plan& plan, const char* source) {
  if (plan.layout != models::Layout{})
    throw InputError({source},
                     fmt::format("its layout ({}) can be predicted, not run",
                                 described(plan.layout, plan.all_ranks())),
                     "make a plan of data parallelism, or for train with --tensor and "
                     "--no-sequence-parallel");
  const bool is_sharded = plan.uses<models::ShardUse>() != nullptr;
  if ((is_sharded || !plan.is_of_other_system()) && models::strategy(plan.strategy).is_runnable())
    return;
  throw InputError({source},
                   fmt::format("{} models what another system does: it can be predicted, not run",
                               plan.strategy),
                   "choose a strategy of ours, such as fused-ring, without --host-copies");
}

models::PlanDocument read_plan(const std::string& path) {
  return models::parse_plan(read_input_file(path), path);
}

void write_plan(const std::string& path, const models::PlanDocument& document) {
  write_output_file(path, to_json(document));
}

}  // namespace paceline::job
