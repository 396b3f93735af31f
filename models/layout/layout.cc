// Tests: tests/models/layout_test.cc.
#include "models/layout/layout.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::models {

std::string described(const Layout& layout, int ranks) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (layout.tensor > 1)
    add(fmt::format("tensor {}{}{}", layout.tensor,
                    layout.sequence_parallel ? " with sequence parallelism" : "",
                    layout.tensor_overlap ? ", exchanged beside products" : ""));
  if (layout.context > 1) add(fmt::format("context {}", layout.context));
  if (layout.expert > 1)
    add(fmt::format("expert {}{}", layout.expert, layout.tokens_once ? ", tokens sent once" : ""));
  if (layout.pipeline > 1)
    add(fmt::format("pipeline {} ({}{})", layout.pipeline,
                    name_in(pipeline_schedules, layout.schedule),
                    layout.chunks > 1 ? fmt::format(", {} chunks a stage", layout.chunks) : ""));
  add(fmt::format("data {}", ranks / layout.ranks_of_sample()));
  return text;
}

void check_layout(const Layout& layout, int ranks, int batches) {
  const int together = layout.ranks_of_sample();
  if (ranks % together != 0)
    throw InputError(
        {layout.tensor > 1    ? "--tensor"
         : layout.context > 1 ? "--context"
                              : "--pipeline"},
        fmt::format("{} ranks of a sample (tensor {} x context {} x pipeline {}) do not divide {} "
                    "ranks",
                    together, layout.tensor, layout.context, layout.pipeline, ranks),
        "choose axes whose product divides the ranks");
  const int of_stage = ranks / layout.pipeline;
  if (layout.expert_ranks() % layout.tensor != 0 || of_stage % layout.expert_ranks() != 0)
    throw InputError({"--expert"},
                     fmt::format("{} ranks with different experts are no multiple of tensor {}, or "
                                 "do not divide the {} ranks of a stage",
                                 layout.expert, layout.tensor, of_stage),
                     "choose a divisor of a stage's ranks that --tensor divides");
  if (!layout.sequence_parallel && layout.tensor == 1)
    throw InputError({"--no-sequence-parallel"}, "there is no tensor parallelism",
                     "add --tensor, or leave it out");
  if (layout.tensor_overlap && layout.tensor == 1)
    throw InputError({"--tensor-overlap"}, "there is no tensor parallelism",
                     "add --tensor, or leave it out");
  if (layout.tokens_once && layout.expert_ranks() == 1)
    throw InputError({"--tokens-once"}, "no tokens travel to experts on other ranks",
                     "add --expert, or leave it out");
  if (layout.schedule != PipelineSchedule::one_f_one_b && layout.pipeline == 1)
    throw InputError({"--pipeline-schedule"}, "there is one stage",
                     "add --pipeline, or leave it out");
  if (layout.chunks == 1) return;
  if (layout.pipeline == 1)
    throw InputError({"--chunks"}, "there is one stage", "add --pipeline, or leave it out");
  if (layout.schedule == PipelineSchedule::gpipe)
    throw InputError({"--chunks"}, "gpipe has one chunk a stage", "choose 1f1b, or leave it out");
  if (batches % layout.pipeline != 0)
    throw InputError({"--chunks"},
                     fmt::format("{} batches of an iteration are no multiple of {} stages, as "
                                 "interleaved stages need",
                                 batches, layout.pipeline),
                     fmt::format("choose --accumulate as a multiple of {}", layout.pipeline));
}

}  // namespace paceline::models
