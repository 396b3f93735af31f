// Tests: tests/cli/schemas_test.py.
#include "cli/schemas.h"

#include <algorithm>

#include "calibration/check/check.h"
#include "calibration/compare/comparison_json.h"
#include "calibration/compare/what_if_json.h"
#include "calibration/fit/fit_json.h"
#include "cli/catalog.h"
#include "cli/doctor/doctor.h"
#include "cli/job/capacity.h"
#include "cli/job/cost_table.h"
#include "cli/job/layout_tuning.h"
#include "cli/job/prediction_json.h"
#include "cli/job/replay.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/shown_plan.h"
#include "cli/job/time_table.h"
#include "cli/serve/choices.h"
#include "experiments/agreement/agreement_totals.h"
#include "experiments/convergence/convergence_json.h"
#include "experiments/reproduction_json.h"
#include "models/cluster/cluster_json.h"
#include "models/collective/verify_json.h"
#include "models/network/network_json.h"
#include "runtime/training/recipe_json.h"
#include "runtime/training/training_json.h"
#include "simulator/cost/nccl_json.h"

namespace paceline::cli {
namespace {

template <auto document>
Schema schema() {
  return {document().name(), document().description(), [] { return document().schema(); }};
}

}  // namespace

std::vector<Schema> schemas() {
  std::vector<Schema> all = {schema<calibration::check_document>(),
                             schema<calibration::comparison_document>(),
                             schema<calibration::fits_document>(),
                             schema<calibration::what_if_document>(),
                             schema<catalog_document>(),
                             schema<clusters_document>(),
                             schema<doctor::doctor_document>(),
                             schema<experiments::agreement_document>(),
                             schema<experiments::convergence_document>(),
                             schema<experiments::mechanisms_document>(),
                             schema<experiments::reproduction_document>(),
                             schema<experiments::reproductions_document>(),
                             schema<job::capacity_document>(),
                             schema<job::cost_document>(),
                             schema<job::layouts_document>(),
                             schema<job::plan_travel_document>(),
                             schema<job::prediction_document>(),
                             schema<job::predictions_document>(),
                             schema<job::replay_document>(),
                             schema<job::scaling_document>(),
                             schema<job::time_document>(),
                             schema<job::tuning_document>(),
                             schema<models::cluster_document>(),
                             schema<models::network_document>(),
                             schema<models::platform_document>(),
                             schema<models::proof_document>(),
                             schema<runtime::recipes_document>(),
                             schema<runtime::training_document>(),
                             schema<serve::choices_document>(),
                             schema<simulator::nccl_document>()};
  std::ranges::sort(all, {}, &Schema::name);
  return all;
}

}  // namespace paceline::cli
