// Tests: tests/cli/tune_test.py (end to end).
#include "cli/job/tuning.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cli/job/basis.h"
#include "cli/job/option_values.h"
#include "cli/job/shown_plan.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/iteration/prediction_json.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::job {
namespace {

void check(const Job& job) {
  if (job.networks.size() > 1)
    throw InputError({"--model"}, fmt::format("{} networks and one plan", job.networks.size()),
                     "give one --model");
  if (job.plan)
    throw InputError({"--plan"}, "tune looks for a plan",
                     "leave it out; paceline predict --plan times it");
  if (job.thresholds.through_host)
    throw InputError({"--host-copies"}, "a tuned plan does not go through the host",
                     "leave it out");
}

// Says which buckets have no other choices beside them because the time was over. The choices of the
// buckets are found in their order.
void note_unexplained(Tuning& tuning) {
  const std::size_t buckets = tuning.tuned.plan.buckets.size();
  const auto& choices = tuning.tuned.alternatives;
  std::size_t explained = std::min(buckets, choices.size());
  while (explained > 0 && choices[explained - 1].empty()) --explained;
  if (explained == buckets) return;
  tuning.cut_short.push_back(
      explained + 1 == buckets
          ? fmt::format("bucket {} was not explained: the time was over (--time-limit)", explained)
          : fmt::format("buckets {} to {} were not explained: the time was over (--time-limit)",
                        explained, buckets - 1));
}

bool is_driven_by_thresholds(const simulator::StrategyPrediction& row) {
  return may_run(row) && models::strategy(row.name).fusion != models::Fusion::never &&
         models::strategy(row.name).on_servers() == nullptr;
}

}  // namespace

void compare_with_others(Job& job) {
  for (const models::Strategy& strategy : models::other_system_catalogue()) {
    const bool runs = !strategy.library() || simulator::is_gpu(job.cluster.device);
    if (runs && !job.names_strategies &&
        std::find(job.strategies.begin(), job.strategies.end(), &strategy) == job.strategies.end())
      job.strategies.push_back(&strategy);
  }
  if (!job.plan) check_taken(job.thresholds, job.strategies);
}

bool may_run(const simulator::StrategyPrediction& row) {
  const models::Strategy& strategy = models::strategy(row.name);
  return !strategy.library() && !strategy.other && !row.plan.is_of_other_system() &&
         row.plan.k_fac() == nullptr && row.not_followed == 0;
}

bool takes_only(const models::Plan& plan, const std::vector<std::string>& all_reduces) {
  return all_reduces.empty() ||
         std::all_of(plan.schedules.begin(), plan.schedules.end(), [&](const auto& one) {
           return one.has_steps() && std::find(all_reduces.begin(), all_reduces.end(),
                                               one.algorithm) != all_reduces.end();
         });
}

void leave_out_untimed(Job& job) {
  job.haste = simulator::Haste::in_time_by_any_engine;
  if (job.engine != simulator::EngineKind::step || job.names_strategies) return;
  std::erase_if(job.strategies,
                [](const models::Strategy* strategy) { return strategy->on_servers() != nullptr; });
}

Seconds parse_time_limit(const std::string& text) {
  return parsing_option("--time-limit", [&] { return parse_seconds(text); });
}

std::vector<std::string> parse_all_reduces(const std::string& text) {
  if (text.empty()) return {};
  return parsing_option("--all-reduce", [&] {
    std::vector<std::string> names;
    for (const std::string& name : comma_list(text))
      names.emplace_back(models::all_reduce_algorithm(name).name);
    return names;
  });
}

TuningTimes tuning_times(Seconds limit, bool explains, bool samples) {
  const int parts = 1 + (explains ? 1 : 0) + (samples ? 1 : 0);
  const Seconds part = limit / static_cast<double>(parts);
  return {part, explains ? 2 * part : part, limit};
}

Tuning tune_job(const Job& job, int ranks, const std::vector<std::string>& all_reduces,
                const TuningObserver& observer) {
  check(job);
  const LoadedNetwork& network = job.networks.front();
  Tuning tuning{predict_table(job, network, ranks, observer.table), {}, {}, {}, {}};
  tuning.is_explained = observer.explain;
  bool is_first = true;
  for (const models::WireType wire : job.wires) {
    simulator::PredictionRequest request = job.request(network, ranks, wire);
    request.haste = simulator::Haste::none;
    simulator::Predictor predictor(request);
    simulator::TuningRequest search;
    search.all_reduces = all_reduces;
    search.stop = observer.stop;
    search.progress = observer.search;
    search.explain = observer.explain;
    search.stop_explaining = observer.stop_explaining;
    for (const simulator::StrategyPrediction& row : tuning.table.rows)
      if (row.plan.wire == wire && may_run(row) && takes_only(row.plan, all_reduces))
        search.seeds.push_back(row.plan);
    simulator::TunedPlan found = predictor.tune(search);
    if (!is_first && found.period >= tuning.tuned.period) continue;
    is_first = false;
    const simulator::StrategyRun run = predictor.run(found.plan);
    tuning.travel = plan_travel(run.plan, run.dag, run.steady);
    tuning.tuned = std::move(found);
  }
  if (!tuning.tuned.is_complete)
    tuning.cut_short.emplace_back("the search was stopped: more time may find a better plan");
  const bool is_late = observer.stop_explaining && observer.stop_explaining();
  if (observer.explain && is_late) note_unexplained(tuning);
  if (is_late)
    tuning.cut_short.emplace_back(
        "what would help most was not tried: the time was over (--time-limit)");
  if (job.cluster.platform == nullptr && !is_late) {
    constexpr double twice[] = {2};
    const models::Plan& plan = tuning.tuned.plan;
    simulator::PredictionRequest request = job.request(network, ranks, plan.wire);
    request.haste = simulator::Haste::none;
    tuning.better =
        better_parts(request, models::strategy(plan.strategy), plan, /*is_fixed=*/true, twice);
  }
  for (std::size_t i = 0; i < tuning.table.rows.size(); ++i) {
    const simulator::StrategyPrediction& row = tuning.table.rows[i];
    if (!is_driven_by_thresholds(row) || !takes_only(row.plan, all_reduces)) continue;
    if (!tuning.by_thresholds ||
        row.iteration.value < tuning.table.rows[*tuning.by_thresholds].iteration.value)
      tuning.by_thresholds = i;
  }
  return tuning;
}

std::vector<RuntimeDefaults> runtime_defaults(const Tuning& tuning) {
  // DDP's process group is NCCL's where there are GPUs, and Gloo's elsewhere.
  constexpr std::pair<const char*, const char*> defaults[] = {
      {"Horovod", "horovod"}, {"PyTorch DDP", "ddp"}, {"PyTorch DDP", "ddp-ring"}};
  std::vector<RuntimeDefaults> found;
  for (const auto& [runtime, strategy] : defaults) {
    if (!found.empty() && found.back().runtime == runtime) continue;
    const auto& rows = tuning.table.rows;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& candidate) {
      return candidate.name == strategy && candidate.plan.wire == tuning.tuned.plan.wire;
    });
    if (row != rows.end()) found.push_back({runtime, static_cast<std::size_t>(row - rows.begin())});
  }
  return found;
}

std::string to_json(const Tuning& tuning, Json robust) {
  const Job& job = tuning.table.job;
  const simulator::TunedPlan& tuned = tuning.tuned;
  Json json = {{"schema", "paceline.tuning/1"},
               {"model", tuning.table.network.work.name},
               {"cluster", job.cluster.name},
               {"device", job.cluster.device.name},
               {"ranks_per_node", job.cluster.ranks_per_node},
               {"ranks", tuning.table.ranks},
               {"batch_per_rank", job.batch_per_rank},
               {"precision", name(job.precision)}};
  json.update(setting_json(job));
  json["strategy"] = tuned.plan.strategy;
  json["wire_type"] = name(tuned.plan.wire);
  json["iteration_s"] = tuned.period.value();
  json["least_iteration_s"] = tuned.least_period.value();
  json["gap"] = tuned.period / tuned.least_period - 1;
  json["optimal"] = tuned.is_optimal;
  json["why_not_optimal"] = tuned.why_not.empty() ? Json(nullptr) : Json(tuned.why_not);
  json["complete"] = tuned.is_complete;
  json["cut_short"] = tuning.cut_short;
  json["candidates"] = tuned.candidates;
  json["candidates_left_out"] = tuned.left_out;
  json["plans_evaluated"] = tuned.evaluated;
  json["buckets"] =
      buckets_json(tuned.plan, tuning.table.network.work, tuning.travel, tuned.alternatives);
  json["twice_as_good"] = Json::array();
  for (const simulator::BetterPart& better : tuning.better)
    json["twice_as_good"].push_back({{"part", key(better.part)},
                                     {"iteration_s", better.iteration.value()},
                                     {"gain", 1 - better.iteration / tuned.period}});
  json["by_thresholds"] = nullptr;
  if (tuning.by_thresholds) {
    const simulator::StrategyPrediction& row = tuning.table.rows[*tuning.by_thresholds];
    json["by_thresholds"] = {{"name", row.name},
                             {"wire_type", name(row.plan.wire)},
                             {"iteration_s", row.iteration.value.value()},
                             {"price", tuning.gain_over(row)}};
  }
  json["runtime_defaults"] = Json::array();
  for (const RuntimeDefaults& defaults : runtime_defaults(tuning)) {
    const simulator::StrategyPrediction& row = tuning.table.rows[defaults.row];
    json["runtime_defaults"].push_back({{"runtime", defaults.runtime},
                                        {"name", row.name},
                                        {"iteration_s", row.iteration.value.value()},
                                        {"gain", tuning.gain_over(row)}});
  }
  json["strategies"] = Json::array();
  for (const simulator::StrategyPrediction& row : tuning.table.rows)
    json["strategies"].push_back({{"name", row.name},
                                  {"wire_type", name(row.plan.wire)},
                                  {"iteration_s", row.iteration.value.value()},
                                  {"gain", tuning.gain_over(row)}});
  json["left_out"] = left_out_json(tuning.table);
  json["robust"] = std::move(robust);
  json["warnings"] = tuning.table.warnings;
  json["rests_on"] = basis_json(job);
  return json.indented();
}

}  // namespace paceline::job
