// The documents of docs/formats.md that hold predictions, and the parts that other documents share with them.
#pragma once

#include <span>

#include "cli/job/prediction_table.h"
#include "models/base/document.h"

namespace paceline::job {

using PredictionTables = std::span<const PredictionTable>;

// A scaling curve, whose tables are of one network, with what was measured of it.
struct ScalingCurve {
  PredictionTables tables;
  std::span<const MeasuredThroughput> measured = {};
};

[[nodiscard]] const Document<PredictionTable>& prediction_document();
// Several tables, one for each network.
[[nodiscard]] const Document<PredictionTables>& predictions_document();
[[nodiscard]] const Document<ScalingCurve>& scaling_document();

// The options that change what is predicted.
[[nodiscard]] const Document<Job>& setting_document();
// The job in a document with one number of ranks: model, cluster, ranks, batch, precision, and the
// options that change the prediction.
struct AskedJob {
  const Job& job;
  const models::NetworkWork& network;
  int ranks;
};
[[nodiscard]] const Document<AskedJob>& asked_document();
// A strategy that a table leaves out.
[[nodiscard]] const Document<simulator::LeftOut>& left_out_document();

}  // namespace paceline::job
