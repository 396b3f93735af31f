// Tests: tests/cli/plan_test.py, tests/cli/tune_test.py (end to end).
#include "cli/job/shown_plan.h"

#include <utility>

#include "cli/job/basis.h"
#include "cli/job/prediction_table.h"

namespace paceline::job {
namespace {

Json alternatives_json(const std::vector<simulator::Alternative>& alternatives, Seconds period) {
  Json json = Json::array();
  for (const simulator::Alternative& other : alternatives) {
    Json parts = Json::array();
    for (const simulator::PlanChange::Part& part : other.change.parts)
      parts.push_back(
          {{"gradients", part.gradients}, {"all_reduce", models::described(part.all_reduce)}});
    json.push_back({{"change", name(other.change.kind)},
                    {"buckets", std::move(parts)},
                    {"iteration_s", other.period.value()},
                    {"loss", other.period / period - 1},
                    {"alike", other.alike}});
  }
  return json;
}

}  // namespace

Json buckets_json(const models::Plan& plan, const models::NetworkWork& network,
                  const simulator::PlanTravel& travel,
                  std::span<const std::vector<simulator::Alternative>> others) {
  Json json = Json::array();
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    const models::Bucket& bucket = plan.buckets[i];
    const simulator::BucketTravel& times = travel.buckets[i];
    const auto gradient = [&](int index) {
      return network.gradients[static_cast<std::size_t>(index)].name;
    };
    json.push_back({{"first", gradient(bucket.first_gradient)},
                    {"last", gradient(bucket.first_gradient + bucket.gradient_count - 1)},
                    {"gradients", bucket.gradient_count},
                    {"bytes", plan.bytes(bucket).value()},
                    {"all_reduce",
                     models::described(plan.schedules[static_cast<std::size_t>(bucket.schedule)])},
                    {"ready_s", times.ready.value()},
                    {"start_s", times.start.value()},
                    {"end_s", times.end.value()},
                    {"exposed_s", times.exposed.value()},
                    {"alternatives", i < others.size() ? alternatives_json(others[i], travel.period)
                                                       : Json::array()}});
  }
  return json;
}

std::string to_json(const Job& job, const LoadedNetwork& network, int ranks,
                    std::span<const ShownPlan> plans) {
  Json json = {{"schema", "paceline.plan_travel/1"},
               {"model", network.work.name},
               {"cluster", job.cluster.name},
               {"device", job.cluster.device.name},
               {"ranks_per_node", job.cluster.ranks_per_node},
               {"ranks", ranks},
               {"batch_per_rank", job.question.batch_per_rank},
               {"precision", name(job.question.precision)}};
  json.update(setting_json(job));
  json["provenance"] = "predicted";
  json["plans"] = Json::array();
  for (const ShownPlan& shown : plans) {
    const std::vector<std::vector<simulator::Alternative>> none;
    json["plans"].push_back(
        {{"strategy", shown.name},
         {"wire_type", name(shown.plan.wire)},
         {"overlap", name(shown.plan.overlap)},
         {"iteration_s", shown.travel.period.value()},
         {"timed_by", shown.timed_by},
         {"alternatives_complete", shown.others ? Json(shown.others->is_complete) : Json(nullptr)},
         {"buckets", buckets_json(shown.plan, network.work, shown.travel,
                                  shown.others ? shown.others->of_buckets : none)}});
  }
  return json.indented();
}

}  // namespace paceline::job
