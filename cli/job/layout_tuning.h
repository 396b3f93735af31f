// The answer of `paceline tune --layouts`: the best layouts for a given number of samples in an iteration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/job/job.h"
#include "models/base/document.h"
#include "simulator/prediction/layout_search.h"
#include "simulator/prediction/prediction.h"

namespace paceline::job {

struct LayoutRow {
  simulator::LayoutChoice choice;
  simulator::StrategyPrediction prediction;
  // Whether no layout that was timed is as fast and needs less memory.
  bool is_on_front = false;
};

struct LayoutTuning {
  Job job;
  int ranks = 1;
  std::int64_t global_batch = 1;
  simulator::FoundLayouts found;
  std::vector<LayoutRow> rows;   // the fastest, and those that need less memory
  std::vector<std::string> why;  // sentences: what another choice costs
};

// The layouts of several axes that people would try, with as many samples an iteration as the job has: tensor
// parallelism inside a node, or experts shared out to it, with FSDP, and with as few stages and ZeRO-1 as fit. Those that fit come first, the
// faster before the slower.
[[nodiscard]] std::vector<LayoutRow> common_layouts(const Job& job, const LoadedNetwork& network,
                                                    int ranks);

// Searches and predicts the `most` fastest, and as many again of the front of time and memory. The question says
// the global batch. Throws InputError where it does not, or nothing fits.
[[nodiscard]] LayoutTuning layout_tuning(const Job& job, int ranks, std::size_t most,
                                         const std::function<bool()>& stop);

[[nodiscard]] const Document<LayoutRow>& layout_row_document();
[[nodiscard]] const Document<LayoutTuning>& layouts_document();

}  // namespace paceline::job
