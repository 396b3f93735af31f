// Tests: tests/simulator/question_test.cc.
#include "simulator/question/question.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

int accumulated(std::int64_t global_batch, const PredictionOptions& options, int ranks) {
  if (options.accumulate > 1)
    throw InputError({"--global-batch"}, "there is --accumulate, too", "leave one of the two out");
  const std::int64_t groups = std::max(1, ranks / options.layout.ranks_of_sample());
  const std::int64_t at_once = groups * options.batch_per_rank;
  if (global_batch % at_once != 0 || global_batch / at_once > most_accumulated)
    throw InputError(
        {"--global-batch"},
        fmt::format("{} samples are no multiple of {} ({} ranks of samples x batch {})",
                    global_batch, at_once, groups, options.batch_per_rank),
        "choose a multiple, of at most 65536 batches");
  return static_cast<int>(global_batch / at_once);
}

}  // namespace

Question with_batches(Question question, int ranks) {
  if (question.global_batch)
    question.accumulate = accumulated(*question.global_batch, question, ranks);
  question.global_batch.reset();
  return question;
}

PredictionRequest request_for(const Question& question, const models::NetworkWork& network,
                              Bytes stored_sample, const models::Cluster& cluster,
                              const models::Profile* profile, int ranks, models::WireType wire) {
  return {with_batches(question, ranks), network, cluster, profile, ranks, wire, stored_sample};
}

}  // namespace paceline::simulator
