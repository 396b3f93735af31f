// Tests: tests/cli/what_if_test.py (end to end).
#include "calibration/compare/what_if_json.h"

#include <cmath>

#include "models/base/json.h"

namespace paceline::calibration {

double WhatIfAnswers::residual() const {
  return run.iteration > Seconds{0} ? reproduced / run.iteration - 1 : 0;
}

std::string to_json(const WhatIfAnswers& answers) {
  const MeasuredRun& run = answers.run;
  Json json = {{"schema", "paceline.what_if/1"},
               {"run", {{"file", answers.file}, {"title", answers.title}}},
               {"model", run.job.network},
               {"strategy", run.job.strategy},
               {"ranks", run.job.ranks},
               {"iterations", run.iterations},
               {"measured_iteration_s", run.iteration.value()},
               {"dag_iteration_s", answers.reproduced.value()},
               {"residual", answers.residual()},
               {"is_doubtful", std::abs(answers.residual()) > doubtful_residual},
               {"slowest_rank", run.has_all_ranks ? Json(run.slowest()) : Json()},
               {"measured_ranks", Json::array()},
               {"answers", Json::array()}};
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank)
    json["measured_ranks"].push_back({{"rank", static_cast<int>(rank)},
                                      {"passes_s", run.ranks[rank].passes().value()},
                                      {"update_s", run.ranks[rank].update.value()},
                                      {"rest_s", run.ranks[rank].rest.value()}});
  for (const WhatIf& answer : answers.answers)
    json["answers"].push_back({{"name", answer.name},
                               {"iteration_s", answer.iteration.value()},
                               {"dag_iteration_s", answer.dag.value()},
                               {"gain", answer.gain},
                               {"provenance", "predicted"},
                               {"rests_on", answer.rests_on}});
  return json.indented();
}

}  // namespace paceline::calibration
