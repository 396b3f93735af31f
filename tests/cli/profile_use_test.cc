// What is said of the parts of a profile that a job has no use for.
#include "cli/job/profile_use.h"

#include <gmock/gmock.h>

#include "cli/job/named_things.h"

namespace paceline::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

models::CalibratedThroughput throughput(const std::string& network) {
  return {
      .network = network,
      .precision = models::Precision::mixed,
      .batch_per_rank = 64,
      .samples = {
          .value = PerSecond{200}, .low = PerSecond{200}, .high = PerSecond{200}, .source = ""}};
}

models::CalibratedLayer layer(const std::string& network, const std::string& name, int batch = 64) {
  return {.network = network,
          .precision = models::Precision::mixed,
          .batch_per_rank = batch,
          .layer = name,
          .forward = {.value = Seconds{1e-3},
                      .low = Seconds{1e-3},
                      .high = Seconds{1e-3},
                      .source = ""},
          .backward = {
              .value = Seconds{1e-3}, .low = Seconds{1e-3}, .high = Seconds{1e-3}, .source = ""}};
}

// alexnet at batch 64 in mixed precision on jizhi-p40, with a profile of that cluster that a test
// fills.
struct Setting {
  Job job;

  Setting() {
    job.networks.push_back(load_network("alexnet"));
    job.cluster = load_cluster("jizhi-p40");
    job.question.batch_per_rank = 64;
    job.question.precision = models::Precision::mixed;
    job.profile = models::Profile{
        .name = "mine", .cluster = "jizhi-p40", .device = job.cluster.device.name, .origin = ""};
  }
  models::Profile& profile() { return *job.profile; }
  [[nodiscard]] std::vector<std::string> warnings() const {
    return profile_warnings(job, job.networks.front().work);
  }
  [[nodiscard]] const std::string& layer_name() const {
    return job.networks.front().work.layers.front().name;
  }
};

TEST(ProfileUse, SaysNothingOfWhatIsUsed) {
  Setting setting;
  setting.profile().throughputs = {throughput("alexnet")};
  setting.profile().layers = {layer("alexnet", setting.layer_name())};
  EXPECT_THAT(setting.warnings(), IsEmpty());
  setting.job.profile.reset();
  EXPECT_THAT(setting.warnings(), IsEmpty());
}

TEST(ProfileUse, NamesAnotherClusterAndDevice) {
  Setting setting;
  setting.profile().cluster = "elsewhere";
  setting.profile().device = "k80";
  EXPECT_THAT(
      setting.warnings(),
      ElementsAre("profile mine: it was calibrated on cluster 'elsewhere', and is used for "
                  "'jizhi-p40'",
                  "profile mine: it was calibrated on device 'k80', and is used for 'p40'"));
}

TEST(ProfileUse, NamesAMisspeltNetwork) {
  Setting setting;
  setting.profile().throughputs = {throughput("alexnte")};
  EXPECT_THAT(
      setting.warnings(),
      ElementsAre("profile mine: its throughputs of network 'alexnte' are not used for 'alexnet'"));
  // Also beside one that is used.
  setting.profile().throughputs.push_back(throughput("alexnet"));
  EXPECT_THAT(setting.warnings(), ElementsAre(HasSubstr("'alexnte'")));
}

TEST(ProfileUse, AnotherNetworkOfTheZooScalesTheRoofline) {
  Setting setting;
  setting.profile().throughputs = {throughput("resnet50")};
  EXPECT_THAT(setting.warnings(), IsEmpty());
  setting.profile().device = "k80";  // but not on another device
  EXPECT_THAT(setting.warnings(),
              ElementsAre(HasSubstr("device 'k80'"), HasSubstr("of network 'resnet50'")));
}

TEST(ProfileUse, NamesAnotherBatchAndPrecision) {
  Setting setting;
  setting.profile().layers = {layer("alexnet", setting.layer_name(), 32)};
  EXPECT_THAT(setting.warnings(),
              ElementsAre("profile mine: its layer times of alexnet at batch 32, mixed precision "
                          "are not used for batch 64, mixed precision"));
  setting.profile().layers = {};
  setting.profile().throughputs = {throughput("alexnet")};
  setting.job.question.precision = models::Precision::fp32;
  EXPECT_THAT(setting.warnings(), ElementsAre(HasSubstr("throughputs of alexnet at batch 64, mixed "
                                                        "precision are not used for batch 64, "
                                                        "fp32 precision")));
}

TEST(ProfileUse, NamesLayersThatTheNetworkDoesNotHave) {
  Setting setting;
  setting.profile().layers = {layer("alexnet", setting.layer_name()), layer("alexnet", "conv9")};
  EXPECT_THAT(
      setting.warnings(),
      ElementsAre("profile mine: 1 of its layers, 'conv9' among them, is not in 'alexnet'"));
}

TEST(ProfileUse, NamesCurvesAndLinksWithoutAUse) {
  Setting setting;
  setting.profile().curves = {{.kind = models::CurveKind::exchange, .source = ""}};
  setting.profile().uplink_oversubscription =
      Figure<double>{.value = 3, .low = 3, .high = 3, .source = ""};
  setting.job.cluster.fabric = {};
  EXPECT_THAT(setting.warnings(), ElementsAre(HasSubstr("the cluster is no fat tree"),
                                              HasSubstr("the profile has no transport")));
}

}  // namespace
}  // namespace paceline::job
