// Links with other bandwidths and latencies, as predictions see them.
#include "simulator/cost/link_factors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cluster/catalog.h"
#include "simulator/cost/communication_cost.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using testing::HasSubstr;

models::Profile some_profile() {
  models::Profile profile;
  profile.nic_latency = Figure<Seconds>::exact(Seconds{2e-3}, Provenance::measured, "");
  profile.nic_bandwidth =
      Figure<BytesPerSecond>::exact(BytesPerSecond{1e8}, Provenance::measured, "");
  profile.transport = models::CalibratedTransport{};
  profile.transport->name = "open-mpi";
  profile.transport->smallest_message = Bytes{65536};
  profile.transport->largest_message = Bytes{65536};
  profile.transport->message_gap = Figure<Seconds>::exact(Seconds{1e-5}, Provenance::measured, "");
  models::CalibratedCurve curve;
  curve.kind = models::CurveKind::exchange;
  curve.pieces = {{Bytes{0}, Figure<Seconds>::exact(Seconds{1e-3}, Provenance::measured, ""),
                   Figure<SecondsPerByte>::exact(SecondsPerByte{2e-8}, Provenance::measured, "")}};
  profile.curves = {curve};
  return profile;
}

TEST(LinkFactors, OfOneChangeNothing) {
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  EXPECT_EQ(with_links(cluster, {}).nic.bandwidth, cluster.nic.bandwidth);
  const models::Profile profile = some_profile();
  EXPECT_EQ(models::to_json(with_links(profile, {})), models::to_json(profile));
}

// Of every cluster: latencies by one factor, times of bytes by the other, and nothing else.
TEST(LinkFactors, AreThoseOfWhatMessagesCost) {
  const models::Profile profile = some_profile();
  const LinkFactors factors{.bandwidth = 4, .latency = 0.25};
  const models::Profile faster = with_links(profile, factors);
  for (const char* name : {"jizhi-p40", "h200-ndr", "aws-p3-16xlarge"}) {
    const models::Cluster cluster = models::catalog_cluster(name);
    const models::Cluster other = with_links(cluster, factors);
    for (const bool is_calibrated : {false, true}) {
      const CommunicationCost was =
          communication_cost(cluster, is_calibrated ? &profile : nullptr, Bound::stated, 16);
      const CommunicationCost is =
          communication_cost(other, is_calibrated ? &faster : nullptr, Bound::stated, 16);
      EXPECT_NEAR(is.nic.alpha / was.nic.alpha, 0.25, 1e-12) << name;
      EXPECT_NEAR(is.nic.beta / was.nic.beta, 0.25, 1e-12) << name;
      EXPECT_NEAR(is.intra.alpha / was.intra.alpha, 0.25, 1e-12) << name;
      EXPECT_NEAR(is.intra.beta / was.intra.beta, 0.25, 1e-12) << name;
      EXPECT_EQ(is.gamma, was.gamma) << name;
      for (const double bytes : {1.0, 1e5, 1e8})
        EXPECT_NEAR(is.nic_alpha(Bytes{bytes}) / was.nic_alpha(Bytes{bytes}), 0.25, 1e-9) << name;
      if (is_calibrated)
        EXPECT_NEAR(is.transport->message_gap / was.transport->message_gap, 0.25, 1e-12);
    }
  }
}

TEST(LinkFactors, AreNotForPlatforms) {
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  cluster.platform = std::make_shared<models::Platform>();
  EXPECT_THAT(test::error_of([&] { return with_links(cluster, {.bandwidth = 2}); }),
              HasSubstr("a platform has links of its own"));
}

}  // namespace
}  // namespace paceline::simulator
