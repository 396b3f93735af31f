#include "experiments/jizhi/jizhi_profile.h"

#include <gtest/gtest.h>

#include "calibration/shipped_profiles.h"
#include "experiments/reproduction.h"

namespace paceline::experiments {
namespace {

// The profile that ships is what the rows give; regenerate it with
//   paceline reproduce jizhi --profile-out calibration/profiles/jizhi-p40.json
TEST(Jizhi, ShippedProfileIsReproduced) {
  const models::Profile computed = jizhi_profile(read_source(shipped_source_files("jizhi")));
  const models::Profile shipped = calibration::shipped_profile("jizhi-p40");
  EXPECT_NEAR(shipped.nic_latency->value.value(), computed.nic_latency->value.value(),
              1e-6 * computed.nic_latency->value.value());
  ASSERT_EQ(shipped.throughputs.size(), computed.throughputs.size());
  for (std::size_t i = 0; i < shipped.throughputs.size(); ++i)
    EXPECT_EQ(shipped.throughputs[i].samples, computed.throughputs[i].samples);
  EXPECT_EQ(shipped.device, computed.device);
  EXPECT_FALSE(fitted_profile("mlperf").has_value());
}

// Predictions of the paper rest on one GPU alone.
TEST(Jizhi, SpendsTheThroughputsOfOneGpu) {
  for (const Row& row : reproduce("jizhi", {.faults = Faults::are_errors}).rows)
    EXPECT_EQ(row.provenance == Provenance::calibrated, row.unit == "images/s") << row.id;
}

}  // namespace
}  // namespace paceline::experiments
