// Tests: tests/cli/export_plan_test.py (end to end).
#include "cli/job/planned_job.h"

#include "models/cluster/cluster_json.h"

namespace paceline::job {

models::PlanDocument plan_document(const models::Plan& plan, const Job& job,
                                   const models::NetworkWork& network) {
  return models::plan_document(
      plan, network,
      models::MadeFor{.cluster = job.cluster.name,
                      .cluster_digest = models::digest(job.cluster),
                      .batch_per_rank = job.question.batch_per_rank,
                      .accumulate = job.question.accumulate,
                      .precision = job.question.precision,
                      .sequence = network.sequence,
                      .recompute = job.question.recompute,
                      .optimizer_on_host = job.question.optimizer.on_host});
}

}  // namespace paceline::job
