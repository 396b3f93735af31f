// Tests: tests/simulator/question_test.cc.
#include "simulator/question/question.h"

namespace paceline::simulator {

PredictionRequest request_for(const Question& question, const models::NetworkWork& network,
                              Bytes stored_sample, const models::Cluster& cluster,
                              const models::Profile* profile, int ranks, models::WireType wire) {
  return {question, network, cluster, profile, ranks, wire, stored_sample};
}

}  // namespace paceline::simulator
