// Tests: tests/simulator/question_test.cc.
#include "simulator/question/question.h"

namespace paceline::simulator {

PredictionRequest request_for(const Question& question, const models::NetworkWork& network,
                              Bytes stored_sample, const models::Cluster& cluster,
                              const models::Profile* profile, int ranks, models::WireType wire) {
  return {.network = network,
          .cluster = cluster,
          .profile = profile,
          .ranks = ranks,
          .batch_per_rank = question.batch_per_rank,
          .optimizer_states = question.optimizer_states,
          .accumulate = question.accumulate,
          .precision = question.precision,
          .wire = wire,
          .thresholds = question.thresholds,
          .engine = question.engine,
          .nccl_version = question.nccl_version,
          .overlap = question.overlap,
          .stored_sample = stored_sample,
          .compute_is_exact = question.compute_is_exact,
          .baseline_ranks = question.baseline_ranks};
}

}  // namespace paceline::simulator
