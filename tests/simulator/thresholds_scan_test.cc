// What `predict` prints is as good as what a user finds who tries thresholds one by one.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {
namespace {

struct Case {
  const char* network;
  const char* cluster;
  int ranks;
  std::optional<models::Overlap> overlap = {};
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.network << " on " << c.ranks << " ranks of " << c.cluster
             << (c.overlap ? fmt::format(", overlap {}", name(*c.overlap)) : "");
}

class ThresholdsScan : public testing::TestWithParam<Case> {};

TEST_P(ThresholdsScan, FindsNothingBetterThanWhatIsPrinted) {
  const Case& c = GetParam();
  const models::NetworkWork network = models::work(models::zoo_network(c.network));
  const models::Cluster cluster = models::catalog_cluster(c.cluster);
  const auto request = [&](const ThresholdRequest& thresholds) {
    return PredictionRequest{{.batch_per_rank = 32, .thresholds = thresholds, .overlap = c.overlap},
                             network,
                             cluster,
                             nullptr,
                             c.ranks,
                             models::WireType::fp16};
  };
  Predictor predictor(request({}));
  for (const models::Strategy& strategy : models::strategy_catalogue()) {
    if (strategy.library() == models::Library::open_mpi || strategy.traits().all_at_once) continue;
    SCOPED_TRACE(strategy.name);
    if (c.overlap && strategy.overlap != models::Overlap::wait_free) continue;
    const double printed = predictor.iteration(strategy).value();
    std::vector<ThresholdRequest> others = {{}};
    const auto vary = [&others](auto field, auto values) {
      std::vector<ThresholdRequest> all;
      for (const ThresholdRequest& other : others)
        for (const auto& value : values) {
          all.push_back(other);
          all.back().*field = value;
        }
      others = std::move(all);
    };
    if (strategy.takes_group()) {
      std::vector<int> divisors;
      for (int k = 1; k <= c.ranks; ++k)
        if (c.ranks % k == 0) divisors.push_back(k);
      vary(&ThresholdRequest::group_size, divisors);
    }
    if (strategy.takes_segments())
      vary(&ThresholdRequest::segments, std::vector{1, 2, 4, 8, 16, 32, 64, 128, 256});
    if (strategy.fusion == models::Fusion::by_default) {
      std::vector<Bytes> theta;
      for (double size = 0; size < 2e8; size = size == 0 ? 3e4 : size * 1.4)
        theta.emplace_back(size);
      vary(&ThresholdRequest::fusion, theta);
    }
    for (const ThresholdRequest& other : others) {
      try {
        const double found = Predictor(request(other)).iteration(strategy).value();
        EXPECT_GE(found, printed / 1.001)
            << "k " << other.group_size.value_or(0) << ", segments " << other.segments.value_or(0)
            << ", theta " << other.fusion.value_or(Bytes{-1});
      } catch (const InputError&) {
        // There is no such schedule.
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, ThresholdsScan,
                         testing::Values(Case{"alexnet", "jizhi-p40", 64},
                                         Case{"alexnet", "h200-ndr", 32},
                                         Case{"alexnet-bn", "goyal-p100", 24},
                                         Case{"alexnet", "jizhi-p40", 16, models::Overlap::none}),
                         [](const auto& job) { return fmt::format("{}", job.index); });

}  // namespace
}  // namespace paceline::simulator
