#include "calibration/one_point.h"

#include <gtest/gtest.h>

#include "calibration/shipped_profiles.h"
#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"

namespace paceline::calibration {
namespace {

struct Job {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  models::Profile profile = shipped_profile("jizhi-p40");

  [[nodiscard]] simulator::PredictionRequest request() const {
    return {{}, network, cluster, &profile, 256, models::WireType::fp32};
  }
};

// A planted latency is found again from the efficiency that it gives, where it matters: below the
// latency of a PCIe hop, 5.7 us, a ring does not feel the NIC's.
TEST(OnePoint, RecoversAPlantedLatency) {
  for (const double planted : {7e-6, 9e-6, 40e-6}) {
    Job job;
    job.profile.nic_latency =
        Figure<Seconds>::exact(Seconds{planted}, Provenance::calibrated, "planted");
    const double efficiency =
        simulator::Predictor(job.request()).predict(models::strategy("ring")).efficiency;
    job.profile.nic_latency.reset();
    const Figure<Seconds> found = calibrate_nic_latency(job.request(), models::strategy("ring"),
                                                        {efficiency, 0.001, "planted"});
    EXPECT_NEAR(found.value.value(), planted, 1e-6 * planted);
    // The ends are those of the middle 90 % of what rounds to the point.
    const auto efficiency_at = [&](Seconds latency) {
      job.profile.nic_latency = Figure<Seconds>::exact(latency, Provenance::calibrated, "end");
      return simulator::Predictor(job.request()).predict(models::strategy("ring")).efficiency;
    };
    EXPECT_NEAR(efficiency_at(found.low), efficiency + 0.0009, 1e-6);
    EXPECT_NEAR(efficiency_at(found.high), efficiency - 0.0009, 1e-6);
    EXPECT_EQ(found.provenance, Provenance::calibrated);
  }
}

TEST(OnePoint, AnImpossiblePointIsSaid) {
  const Job job;
  EXPECT_THROW((void)calibrate_nic_latency(job.request(), models::strategy("ring"),
                                           {1.5, 0.001, "impossible"}),
               RunError);
}

TEST(ShippedProfiles, AllParseAndAreNamedAsTheirFile) {
  for (const std::string& name : shipped_profile_names())
    EXPECT_EQ(shipped_profile(name).name, name);
}

}  // namespace
}  // namespace paceline::calibration
