#include "experiments/jizhi/jizhi.h"

#include <gtest/gtest.h>

#include <set>

#include "calibration/shipped_profiles.h"
#include "experiments/reproduction.h"
#include "models/base/error.h"

namespace paceline::experiments {
namespace {

TEST(Jizhi, SpendsOnlyTheThreeRowsThatTheIssueAllows) {
  std::set<std::string> calibrated;
  for (const Row& row : reproduce_jizhi().rows) {
    if (row.provenance == Provenance::calibrated) calibrated.insert(row.id);
  }
  EXPECT_EQ(calibrated,
            (std::set<std::string>{"throughput-fp32", "throughput-mixed", "resnet-baseline"}));
}

TEST(Jizhi, CalibratedRowsAreMetAndAllOthersAreComputed) {
  for (const Row& row : reproduce_jizhi().rows) {
    if (row.provenance == Provenance::calibrated)
      EXPECT_NEAR(row.relative_error(), 0, 1e-6) << row.id;
    EXPECT_GT(row.ours, 0) << row.id;
    EXPECT_FALSE(row.configuration.empty()) << row.id;
  }
}

// The profile that ships is what the experiment computes; regenerate it with
//   paceline reproduce jizhi --profile-out calibration/profiles/jizhi-p40.json
TEST(Jizhi, ShippedProfileIsReproduced) {
  const models::Profile computed = *reproduce_jizhi().profile;
  const models::Profile shipped = calibration::shipped_profile("jizhi-p40");
  EXPECT_NEAR(shipped.nic_latency->value.value(), computed.nic_latency->value.value(),
              1e-6 * computed.nic_latency->value.value());
  EXPECT_EQ(shipped.throughputs.size(), computed.throughputs.size());
  EXPECT_EQ(shipped.device, computed.device);
}

TEST(ExpectedRows, AFaultNamesItsLine) {
  try {
    (void)parse_expected("id,source,what,role,unit,published\na,b,c,guessed,%,3\n", "expected.csv");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "expected.csv:2: unknown provenance 'guessed'; known: measured, calibrated, "
                 "predicted, datasheet, published, assumed");
  }
}

}  // namespace
}  // namespace paceline::experiments
