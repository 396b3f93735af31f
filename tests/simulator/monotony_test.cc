// Better links make no row of a table slower, except for what the row itself says: by more than 0.1 %, to
// which thresholds are chosen, or to 0.3 % where another engine times them than finds them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/cost/link_factors.h"
#include "simulator/iteration/better_links.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {
namespace {

constexpr double visible = 1e-3;

struct Job {
  const models::NetworkWork* network = nullptr;
  models::Cluster cluster;
  int ranks = 1;
  int batch = 1;
  bool is_mixed = true;
  int streams = 1;
  std::optional<models::Overlap> overlap = {};

  [[nodiscard]] PredictionRequest request() const {
    PredictionRequest request{{.batch_per_rank = 1, .precision = models::Precision::fp32},
                              *network,
                              cluster,
                              nullptr,
                              ranks};
    request.batch_per_rank = batch;
    request.precision = is_mixed ? models::Precision::mixed : models::Precision::fp32;
    request.wire = is_mixed ? models::WireType::fp16 : models::WireType::fp32;
    if (streams > 1) request.thresholds.streams = streams;
    request.overlap = overlap;
    request.time_budget = TimeBudget::bounded;
    return request;
  }
};

const models::NetworkWork& network_of(const std::string& name) {
  static std::map<std::string, models::NetworkWork> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  return known.emplace(name, models::work(models::zoo_network(name))).first->second;
}

Job drawn_job(std::mt19937& random) {
  const auto one_of = [&random](const auto& values) { return values[random() % values.size()]; };
  static const std::vector<models::CatalogEntry> clusters = models::catalog_clusters();
  Job job{&network_of(one_of(std::vector<std::string>{"resnet50", "alexnet", "bert-base"})),
          models::catalog_cluster(one_of(clusters).name)};
  const int g = job.cluster.ranks_per_node;
  job.ranks = one_of(std::vector{2, g, 2 * g, 3 * g, 4 * g, 8 * g, 16 * g, 32 * g});
  job.ranks = std::min(job.ranks, job.cluster.ranks());
  job.batch = one_of(std::vector{1, 8, 32, 128});
  job.is_mixed = random() % 2 == 0;
  job.streams = one_of(std::vector{1, 1, 1, 2});
  job.overlap = one_of(std::vector<std::optional<models::Overlap>>{
      {}, {}, {}, models::Overlap::double_buffered, models::Overlap::priority});
  return job;
}

LinkFactors drawn_links(std::mt19937& random) {
  const auto one_of = [&random](const auto& values) { return values[random() % values.size()]; };
  LinkFactors factors{one_of(std::vector{1.0, 1.1, 2.0, 4.0}), one_of(std::vector{1.0, 0.9, 0.5}),
                      one_of(std::vector{Links::all, Links::between_nodes, Links::in_nodes})};
  return factors;
}

// Whether a row says that better links may make it slower.
bool says_so(const StrategyRun& row) {
  const bool by_library_model = row.timed_by.find("own choice") != std::string::npos;
  return !why_better_links_may_slow(row.plan, row.method, by_library_model).empty();
}

std::optional<StrategyRun> run_of(Predictor& predictor, const models::Strategy& strategy) {
  try {
    return predictor.run(strategy);
  } catch (const InputError&) {
    return std::nullopt;  // not defined for this many ranks, or left out
  }
}

TEST(Monotony, BetterLinksMakeNoRowSlowerThatDoesNotSaySo) {
  std::mt19937 random(29);
  int compared = 0;
  for (int round = 0; round < 24; ++round) {
    const Job job = drawn_job(random);
    Predictor before(job.request());
    std::vector<std::pair<LinkFactors, Predictor>> better;
    std::vector<models::Cluster> clusters;
    clusters.reserve(3);
    for (int i = 0; i < 3; ++i) {
      const LinkFactors factors = drawn_links(random);
      clusters.push_back(with_links(job.cluster, factors));
      better.emplace_back(factors, Predictor(job.request().on(clusters.back(), nullptr)));
    }
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      const std::optional<StrategyRun> row = run_of(before, strategy);
      if (!row || says_so(*row)) continue;
      for (auto& [factors, predictor] : better) {
        const std::optional<StrategyRun> faster = run_of(predictor, strategy);
        if (!faster) continue;
        ++compared;
        const double allowed = faster->method.engine == EngineKind::step ? visible : 3 * visible;
        EXPECT_LE(faster->steady.period.value(), (1 + allowed) * row->steady.period.value())
            << strategy.name << " of " << job.network->name << " on " << job.cluster.name << ", "
            << job.ranks << " ranks, batch " << job.batch << ", streams " << job.streams
            << ", bandwidth x " << factors.bandwidth << ", latency x " << factors.latency
            << ", links " << static_cast<int>(factors.links);
      }
    }
  }
  EXPECT_GT(compared, 600);
}

}  // namespace
}  // namespace paceline::simulator
