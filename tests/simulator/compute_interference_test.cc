#include "simulator/iteration/compute_interference.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/prediction/prediction.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

// Three layers of 1 s forward and 2 s backward, twice as long beside traffic. Each is a bucket.
struct Chain {
  models::NetworkWork network = test::chain_network({1000, 1000, 1000});
  ComputeTimes compute;
  models::Plan plan =
      models::make_plan(models::strategy("ring"), network.gradients, 2, models::WireType::fp32, {});

  Chain() {
    compute.layers.assign(3, {Seconds{1}, Seconds{2}});
    compute.beside_traffic.assign(3, {Seconds{2}, Seconds{4}});
  }
  // `travelling` seconds for each bucket; the layers as `layers` says.
  [[nodiscard]] IterationDag dag(double travelling, const std::vector<LayerTime>& layers) const {
    ComputeTimes times = compute;
    times.layers = layers;
    const BucketTimes bucket{{}, {}, Seconds{travelling}, {}};
    return {network, plan, times, std::vector<BucketTimes>(plan.buckets.size(), bucket), {}};
  }
  [[nodiscard]] std::vector<LayerTime> round(double travelling,
                                             const std::vector<LayerTime>& layers) const {
    const IterationDag timed = dag(travelling, layers);
    return layers_beside_traffic(timed, steady_state(timed), compute);
  }
};

// Backward runs from 3 to 9: layer 2 until 5, then its bucket travels for 1 s.
// Layer 1 (5 on): 1 s beside traffic does half a second of work, 1.5 s are left: 2.5 s.
TEST(ComputeInterference, APassIsStretchedByTheTrafficThatItHas) {
  const Chain chain;
  const auto layers = chain.round(1, chain.compute.layers);
  for (const LayerTime& layer : layers) EXPECT_DOUBLE_EQ(layer.forward.value(), 1);
  EXPECT_DOUBLE_EQ(layers[2].backward.value(), 2);
  EXPECT_DOUBLE_EQ(layers[1].backward.value(), 2.5);
  EXPECT_DOUBLE_EQ(layers[0].backward.value(), 2.5);
  // Again: layer 0 begins later, as its traffic does.
  const auto again = chain.round(1, layers);
  EXPECT_DOUBLE_EQ(again[1].backward.value(), 2.5);
  EXPECT_DOUBLE_EQ(again[0].backward.value(), 2.5);
}

TEST(ComputeInterference, AllOfAPassBesideTrafficTakesItsTimeBesideTraffic) {
  const Chain chain;
  const auto layers = chain.round(10, chain.compute.layers);
  EXPECT_DOUBLE_EQ(layers[2].backward.value(), 2);
  EXPECT_DOUBLE_EQ(layers[1].backward.value(), 4);
  EXPECT_DOUBLE_EQ(layers[0].backward.value(), 4);
}

// Layers that start what slows the next ones are all followed at once: a second round changes
// nothing. Where computation stands still beside traffic, an iteration takes as long as computation
// and traffic one after the other.
TEST(ComputeInterference, OneRoundFollowsAChainOfLayers) {
  Chain chain;
  chain.network = test::chain_network(std::vector<std::int64_t>(40, 1000));
  chain.plan = models::make_plan(models::strategy("ring"), chain.network.gradients, 2,
                                 models::WireType::fp32, {});
  chain.compute.layers.assign(40, {Seconds{1}, Seconds{2}});
  for (const double times : {1.5, 4.0, 1e9}) {
    chain.compute.beside_traffic.assign(40, {Seconds{times}, Seconds{2 * times}});
    for (const double travelling : {0.5, 1.9, 3.0}) {
      const auto once = chain.round(travelling, chain.compute.layers);
      const auto again = chain.round(travelling, once);
      for (std::size_t i = 0; i < once.size(); ++i)
        EXPECT_NEAR(once[i].backward.value(), again[i].backward.value(), 1e-9) << i;
      if (times < 1e9) continue;
      const Seconds period = steady_state(chain.dag(travelling, once)).period;
      EXPECT_NEAR(period.value(), 40 * (3 + travelling), 1e-3);
    }
  }
}

// Messages that hosts move slow nothing down where only kernels do.
TEST(ComputeInterference, MessagesOfHostsAreNoKernels) {
  Chain chain;
  chain.compute.beside_kernels_only = true;
  EXPECT_GT(chain.round(1, chain.compute.layers)[0].backward, Seconds{2});
  for (const char* moved_by_hosts : {"parameter-server", "mpi-host"}) {
    chain.plan.strategy = moved_by_hosts;
    chain.plan.dispatch.through_host = chain.plan.strategy == "mpi-host";
    EXPECT_EQ(chain.round(1, chain.compute.layers)[0].backward, Seconds{2}) << moved_by_hosts;
  }
  chain.compute.beside_kernels_only = false;
  EXPECT_GT(chain.round(1, chain.compute.layers)[0].backward, Seconds{2});
}

TEST(ComputeInterference, WithoutTrafficNothingIsStretched) {
  const Chain chain;
  for (const LayerTime& layer : chain.round(0, chain.compute.layers)) {
    EXPECT_DOUBLE_EQ(layer.forward.value(), 1);
    EXPECT_DOUBLE_EQ(layer.backward.value(), 2);
  }
}

// With double buffering, the buckets of layers 1 and 0 travel until 5 s of the next iteration: forward
// passes take 2 s, 2 s, and 1.5 s of which the last half second is quiet. Layer 1's backward pass
// has layer 2's bucket beside it for 3 s, in which it does 1.5 s of work.
TEST(ComputeInterference, TrafficOfTheIterationBeforeCounts) {
  Chain chain;
  chain.plan.overlap = models::Overlap::double_buffered;
  const auto layers = chain.round(3, chain.compute.layers);
  EXPECT_DOUBLE_EQ(layers[0].forward.value(), 2);
  EXPECT_DOUBLE_EQ(layers[1].forward.value(), 2);
  EXPECT_DOUBLE_EQ(layers[2].forward.value(), 1.5);
  EXPECT_DOUBLE_EQ(layers[2].backward.value(), 2);
  EXPECT_DOUBLE_EQ(layers[1].backward.value(), 3.5);
}

models::Profile profile_of(const models::NetworkWork& network, bool beside) {
  models::Profile profile;
  for (const models::LayerWork& layer : network.layers) {
    const auto figure = [](double s) {
      return Figure<Seconds>::exact(Seconds{s}, Provenance::measured, "a test");
    };
    profile.layers.push_back({network.name, models::Precision::fp32, 16, layer.name, figure(1e-4),
                              figure(2e-4), std::nullopt, std::nullopt});
    if (!beside) continue;
    profile.layers.back().forward_beside_traffic = figure(1e-4);
    profile.layers.back().backward_beside_traffic = figure(4e-4);
  }
  return profile;
}

struct Job {
  models::NetworkWork network = models::work(models::zoo_network("resnet-small"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  models::Profile alone = profile_of(network, false);
  models::Profile beside = profile_of(network, true);

  [[nodiscard]] PredictionRequest request(const models::Profile& profile, int ranks = 8) const {
    PredictionRequest request{{.batch_per_rank = 16, .precision = models::Precision::fp32},
                              network,
                              cluster,
                              &profile,
                              ranks};
    request.thresholds.fusion = Bytes{64e3};
    return request;
  }
};

Seconds iteration(const PredictionRequest& request) {
  return Predictor(request).predict(models::strategy("fused-ring")).iteration.value;
}

TEST(ComputeInterference, APredictionTakesItFromTheProfile) {
  const Job job;
  const Seconds alone = iteration(job.request(job.alone));
  const Seconds beside = iteration(job.request(job.beside));
  EXPECT_GT(beside, alone);
  // Backward is at most twice as long, and nothing else is longer.
  EXPECT_LT(beside, alone + static_cast<double>(job.network.layers.size()) * Seconds{2e-4});
  const std::string source =
      Predictor(job.request(job.beside)).predict(models::strategy("fused-ring")).compute_source;
  EXPECT_NE(source.find("alone and beside traffic"), std::string::npos) << source;
}

TEST(ComputeInterference, SleepingLayersAndASingleRankAreNotSlowedDown) {
  const Job job;
  PredictionRequest replay = job.request(job.beside);
  replay.compute_is_exact = true;
  PredictionRequest without = job.request(job.alone);
  without.compute_is_exact = true;
  EXPECT_EQ(iteration(replay), iteration(without));
  EXPECT_EQ(iteration(job.request(job.beside, 1)), iteration(job.request(job.alone, 1)));
  PredictionRequest apart = job.request(job.beside);
  apart.overlap = models::Overlap::none;
  PredictionRequest apart_alone = job.request(job.alone);
  apart_alone.overlap = models::Overlap::none;
  EXPECT_EQ(iteration(apart), iteration(apart_alone));
}

}  // namespace
}  // namespace paceline::simulator
