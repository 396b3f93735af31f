// Tests: tests/experiments/jizhi_test.cc.
#include "experiments/jizhi/jizhi_profile.h"

#include <fmt/core.h>

#include <string_view>

#include "calibration/one_point.h"
#include "experiments/published/row_job.h"
#include "models/base/error.h"

namespace paceline::experiments {
namespace {

const TrainingRow& row_of(const Source& source, std::string_view id) {
  const TrainingRow* row = source.row(id);
  PACELINE_ASSERT(row != nullptr, "expected.csv has the rows that the profile is fitted to");
  return *row;
}

models::CalibratedThroughput throughput_of(const TrainingRow& row) {
  return {row.model,
          row.precision,
          row.batch,
          {PerSecond{row.published}, PerSecond{row.published - row.rounding},
           PerSecond{row.published + row.rounding}, Provenance::calibrated,
           fmt::format("Jia et al. 2018, {} (batch {} per GPU)", row.where, row.batch)}};
}

}  // namespace

models::Profile jizhi_profile(const Source& source) {
  SourceParts parts(source);
  const TrainingRow& baseline = row_of(source, "resnet-baseline");
  const RowJob job = parts.job(baseline);
  models::Profile profile;
  profile.name = "jizhi-p40";
  profile.cluster = job.cluster->name;
  profile.device = job.cluster->device.name;
  profile.origin =
      "paceline reproduce jizhi --profile-out FILE: fitted to Table 9 and to one efficiency of "
      "section 5.4 of Jia et al. 2018";
  profile.throughputs = {throughput_of(row_of(source, "throughput-fp32")),
                         throughput_of(row_of(source, "throughput-mixed"))};
  constexpr double percent = 0.01;
  const calibration::EfficiencyPoint point{
      percent * baseline.published, percent * baseline.rounding,
      "fitted to 9.0 % efficiency of a ring all-reduce for each tensor of ResNet-50, batch 64, on "
      "1024 GPUs (Jia et al. 2018, 5.4)"};
  simulator::PredictionRequest request = job.request(&profile);
  request.baseline_ranks = row_of(source, baseline.against).ranks;
  profile.nic_latency = calibration::calibrate_nic_latency(request, *job.options.strategy, point);
  return profile;
}

}  // namespace paceline::experiments
