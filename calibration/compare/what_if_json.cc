// Tests: tests/cli/what_if_test.py (end to end), tests/cli/schemas_test.py.
#include "calibration/compare/what_if_json.h"

#include <cmath>
#include <functional>
#include <optional>

namespace paceline::calibration {
namespace {

const Document<WhatIfAnswers>& run_document() {
  static const auto document = Document<WhatIfAnswers>()
                                   .add("file", &WhatIfAnswers::file)
                                   .add("title", &WhatIfAnswers::title, any_text());
  return document;
}

struct RankLine {
  int rank;
  const models::RankTimes& times;
};

const Document<RankLine>& rank_document() {
  using Line = RankLine;
  static const auto document =
      Document<Line>()
          .add("rank", &Line::rank)
          .add("passes_s", [](const Line& line) { return line.times.passes(); })
          .add("update_s", [](const Line& line) { return line.times.update; })
          .add("rest_s", [](const Line& line) { return line.times.rest; });
  return document;
}

const Document<WhatIf>& answer_document() {
  static const auto document = Document<WhatIf>()
                                   .add("name", &WhatIf::name)
                                   .add("iteration_s", &WhatIf::iteration)
                                   .add("dag_iteration_s", &WhatIf::dag)
                                   .add("gain", &WhatIf::gain)
                                   .add_constant("provenance", "predicted")
                                   .add("rests_on", &WhatIf::rests_on);
  return document;
}

}  // namespace

double WhatIfAnswers::residual() const {
  return run.iteration > Seconds{0} ? reproduced / run.iteration - 1 : 0;
}

const Document<WhatIfAnswers>& what_if_document() {
  using Of = WhatIfAnswers;
  static const auto job = [](auto member) {
    return [member](const Of& of) { return std::invoke(member, of.run.job); };
  };
  using models::TracedJob;
  static const auto document =
      Document<Of>("paceline.what_if/1",
                   "paceline compare --what-if --json: what an iteration of a run would take "
                   "otherwise.")
          .add("run", std::identity(), run_document())
          .add("model", job(&TracedJob::network))
          .add("strategy", job(&TracedJob::strategy))
          .add("ranks", job(&TracedJob::ranks), at_least(1))
          .add("iterations", through(&Of::run, &MeasuredRun::iterations))
          .add("measured_iteration_s", through(&Of::run, &MeasuredRun::iteration))
          .add("dag_iteration_s", &Of::reproduced)
          .add("residual", &Of::residual)
          .add("is_doubtful",
               [](const Of& of) { return std::abs(of.residual()) > doubtful_residual; })
          .add("slowest_rank",
               [](const Of& of) {
                 return of.run.has_all_ranks ? std::optional(of.run.slowest()) : std::nullopt;
               })
          .add(
              "measured_ranks",
              [](const Of& of) {
                std::vector<RankLine> lines;
                for (const models::RankTimes& times : of.run.ranks)
                  lines.push_back({static_cast<int>(lines.size()), times});
                return lines;
              },
              rank_document())
          .add("answers", &Of::answers, answer_document());
  return document;
}

}  // namespace paceline::calibration
