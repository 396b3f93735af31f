// The plans that predictions of a job are of: with thresholds that are chosen, tuned, and those of the
// baseline.
#pragma once

#include <optional>

#include "models/plan/strategy.h"
#include "simulator/iteration/tuned_plan.h"
#include "simulator/iteration/tuning_job.h"
#include "simulator/planner/thresholds.h"
#include "simulator/prediction/job_settings.h"

namespace paceline::simulator {

// The job for which the planner chooses, on the ranks of a setting.
[[nodiscard]] PlanningJob planning_job(const JobSettings& settings,
                                       const models::Strategy& strategy,
                                       std::optional<models::Overlap> overlap, bool through_host,
                                       PredictorSetting& at);
[[nodiscard]] PlanningTimers planning_timers(PredictorSetting& at);

// The thresholds that the request names, and those that the planner chooses for the rest.
[[nodiscard]] ChosenThresholds thresholds_of(const JobSettings& settings,
                                             const models::Strategy& strategy,
                                             PredictorSetting& at);
// The strategy's plan on the request's ranks.
[[nodiscard]] models::Plan plan_of(JobSettings& settings, const models::Strategy& strategy,
                                   const models::Thresholds& thresholds);
// The plan that the planner chooses for the strategy on p0 ranks. Efficiencies are relative to it.
[[nodiscard]] models::Plan baseline_plan(JobSettings& settings, const models::Strategy& strategy,
                                         const models::Plan& plan, int p0);

// The job of tune(). The DAG gives it the period of a plan. Keeps references to the arguments.
[[nodiscard]] TuningJob tuning_job(const JobSettings& settings,
                                   std::optional<models::Overlap> overlap, int streams,
                                   PredictorSetting& at);
// The best plan of one in-order stream that is found (tuned_plan.h).
[[nodiscard]] TunedPlan tune(const JobSettings& settings, const TuningRequest& request,
                             std::optional<models::Overlap> overlap, PredictorSetting& at);

}  // namespace paceline::simulator
