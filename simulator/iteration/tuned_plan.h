// The best plan of a job that can be found, with how far from the best it can be.
//
// Where one stream carries buckets in order, wait-free or after the backward pass, and the step engine
// times all of them, the plan is the optimum of contiguous fusion and of the schedule of each bucket
// (simulator/planner/optimal_fusion.h). Elsewhere (links that are shared, so that the flow engine times
// buckets; several streams, priorities, double buffering, a profile of our transport, layers that
// traffic slows unevenly), the optimum by the planner's clock is where a search begins, and the DAG
// judges: ends of buckets move, buckets are merged and cut, and all-reduces change, as long as that makes
// the iteration shorter (plan_search.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/iteration/alternatives.h"
#include "simulator/iteration/tuning_job.h"

namespace paceline::simulator {

struct TuningProgress {
  Seconds period;     // of the best plan so far
  int evaluated = 0;  // plans, by the DAG
};

struct TuningRequest {
  // Plans to begin with, beside that of the planner's clock; for the job's ranks and wire type.
  std::vector<models::Plan> seeds = {};
  // Names of the all-reduces that a bucket may take; empty: all of the catalogue. The name of a library,
  // which then is the only one, has it sum all buckets.
  std::vector<std::string> all_reduces = {};
  // The share of the latency that several streams would hide, and do not (sampled_interval.h), from 0 to
  // 1. All periods of a search are this much of the way from that of the plan to that of one stream.
  double unhidden = 0;
  // Asked between two plans: whether to stop with what is found. May be empty, as may the next.
  std::function<bool()> stop = {};
  std::function<void(const TuningProgress&)> progress = {};
  // Whether to say what each bucket would lose by its next best choices. A plan that one of them
  // improves by more than 1e-6 takes it, as long as `stop_explaining`, which may be empty, says no.
  bool explain = false;
  std::function<bool()> stop_explaining = {};
};

struct TunedPlan {
  models::Plan plan;  // of models::strategy_of() its all-reduces, or one of the seeds
  Seconds period;     // by the DAG, as Predictor::predict(plan) has it
  // No plan of the same overlap on as many streams gets below this, whatever its schedules; where
  // `is_optimal`, none of contiguous buckets and the candidates' schedules gets below the period. Where
  // buckets of the plan travel together, this counts bytes (planner/traffic_bound.h), for all plans.
  Seconds least_period;
  bool is_optimal = false;
  std::string why_not;                // it is not known to be optimal, in words; empty where it is
  int candidates = 0;                 // all-reduces that each bucket could take
  std::vector<std::string> left_out;  // candidates that were not tried
  int evaluated = 0;                  // plans, by the DAG
  bool is_complete = true;            // false: the search was stopped
  // The changes of each bucket (alternatives.h), where they were asked for.
  std::vector<std::vector<Alternative>> alternatives;
};

[[nodiscard]] TunedPlan tune(const TuningJob& job, const TuningRequest& request);

}  // namespace paceline::simulator
