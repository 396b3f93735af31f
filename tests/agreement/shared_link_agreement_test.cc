// The flow engine against SimGrid where links are shared, rank by rank: every all-reduce of the
// catalogue on every kind of topology, from equal and unequal ready times, and with several in
// flight.
//
// The engines owe each other 0.5 %, and mostly come within 1e-7. Where ranks chase each other
// around links that they share, who comes first decides who waits, and a difference in the last
// digits grows: then the flow engine differs from itself as much, from links and ready times that
// are changed by the 1e-9 to which SimGrid shares a link.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "experiments/agreement/topologies.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/simgrid_engine.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/engine_comparison.h"
#include "tests/support/thoroughness.h"

namespace paceline::simulator {
namespace {

double log_uniform(std::mt19937& random, double low, double high) {
  return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random));
}

// The same links at other speeds, and slow nodes now and then.
CommunicationCost at_random_speeds(CommunicationCost cost, std::mt19937& random) {
  for (LinkCost* link : {&cost.intra, &cost.nic}) {
    link->alpha = link->alpha * log_uniform(random, 0.2, 5);
    link->beta = link->beta * log_uniform(random, 0.2, 5);
  }
  cost.gamma = cost.gamma * log_uniform(random, 0.1, 10);
  cost.fabric.hop_latency = cost.fabric.hop_latency * log_uniform(random, 0.2, 5);
  cost.fabric.oversubscription =
      std::max(1.0, cost.fabric.oversubscription * log_uniform(random, 0.5, 2));
  for (models::FatTreeLevel& level : cost.fabric.levels)
    level.oversubscription = std::max(1.0, level.oversubscription * log_uniform(random, 0.5, 2));
  return cost;
}

std::vector<models::Schedule> all_reduces(int ranks) {
  std::vector<models::Schedule> schedules;
  for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue())
    schedules.push_back(algorithm.build({.ranks = ranks}));
  return schedules;
}

class SharedLinkAgreement : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!SimgridEngine::is_built_in()) GTEST_SKIP() << "built without SimGrid";
  }

  // `own` is what an engine differs from itself where nothing but rounding does.
  void hold(double difference, const std::string& where, double own = 0) {
    EXPECT_LE(difference, std::min(5e-3, std::max(1e-6, 10 * own))) << where;
    if (own > 0) std::printf("%.1e, and %.1e from itself: %s\n", difference, own, where.c_str());
    if (difference > worst_) {
      worst_ = difference;
      worst_where_ = where;
    }
    ++held_;
  }
  void TearDown() override {
    if (held_ == 0) return;
    RecordProperty("worst_difference", std::to_string(worst_));
    std::printf("worst of %d: %.1e, %s\n", held_, worst_, worst_where_.c_str());
  }

 private:
  double worst_ = 0;
  std::string worst_where_;
  int held_ = 0;
};

std::string where(std::size_t algorithm, int ranks, Bytes bytes, const char* how) {
  return std::string(models::all_reduce_catalogue()[algorithm].name) +
         " p=" + std::to_string(ranks) + ", " + std::to_string(bytes.value()) + " bytes" + how;
}

// The most by which the flow engine differs from itself when the nodes' NICs are up to 1e-9 slower
// and ready times are moved by as much.
double own_difference(const models::Schedule& schedule, const CommunicationCost& cost, Bytes bytes,
                      const std::vector<Seconds>& ready, std::mt19937& random) {
  const auto up_to = [&random](double most) {
    return std::uniform_real_distribution(0.0, most)(random);
  };
  const auto completion = [&](double most) {
    CommunicationCost slower = cost;
    for (int node = 0; node < schedule.ranks() / cost.ranks_per_node; ++node)
      slower.slow_nodes[node] = 1 - up_to(most);
    std::vector<Seconds> moved = ready;
    for (Seconds& time : moved) time *= 1 + up_to(most);
    return FlowEngine({&schedule, 1}, slower, Collapse::none).completion(0, bytes, moved);
  };
  const Completion expected = completion(0);
  double worst = 0;
  for (int trial = 0; trial < 8; ++trial)
    worst = std::max(worst, test::worst_difference(completion(1e-9), expected, schedule.ranks()));
  return worst;
}

TEST_P(SharedLinkAgreement, FlowEqualsSimgridForEveryAllReduce) {
  std::mt19937 random(1);
  for (const int ranks : test::cases<std::vector<int>>({3, 8, 12}, {2, 3, 6, 8, 12, 16, 24, 64})) {
    const std::vector<models::Schedule> schedules = all_reduces(ranks);
    for (int seed = 0; seed < (ranks <= 16 ? test::cases(2, 3) : 1); ++seed) {
      const CommunicationCost stated = experiments::topology(GetParam()).cost(ranks);
      const CommunicationCost cost = seed == 0 ? stated : at_random_speeds(stated, random);
      SimgridEngine simgrid(schedules, cost);
      FlowEngine every_rank(schedules, cost, Collapse::none);
      for (std::size_t i = 0; i < schedules.size(); ++i) {
        const int schedule = static_cast<int>(i);
        const Bytes bytes{log_uniform(random, 1e3, 1e8)};
        const Completion expected = simgrid.completion(schedule, bytes);
        hold(test::worst_difference(every_rank.completion(schedule, bytes), expected, ranks),
             where(i, ranks, bytes, ""));
        FlowEngine collapsed({&schedules[i], 1}, cost);
        hold(test::worst_difference(collapsed.completion(0, bytes), expected, ranks),
             where(i, ranks, bytes, ", collapsed"));
        // Ready times differ by much less than a step takes, up to about as much as all steps.
        const double latest = expected.last().value() * log_uniform(random, 1e-4, 1);
        std::vector<Seconds> ready;
        for (int rank = 0; rank < ranks; ++rank)
          ready.emplace_back(std::uniform_real_distribution(0.0, latest)(random));
        const double difference =
            test::worst_difference(every_rank.completion(schedule, bytes, ready),
                                   simgrid.completion(schedule, bytes, ready), ranks);
        hold(difference, where(i, ranks, bytes, ", unequal ready times"),
             difference > 1e-6 ? own_difference(schedules[i], cost, bytes, ready, random) : 0);
      }
    }
  }
}

// Three to five all-reduces that start one after the other while the first is in flight.
TEST_P(SharedLinkAgreement, FlowEqualsSimgridWithSeveralInFlight) {
  std::mt19937 random(2);
  for (const int ranks : {4, 8, 16, 32}) {
    const std::vector<models::Schedule> schedules = all_reduces(ranks);
    for (int seed = 0; seed < 4; ++seed) {
      const CommunicationCost cost =
          at_random_speeds(experiments::topology(GetParam()).cost(ranks), random);
      std::vector<Launch> launches;
      for (int i = 3 + static_cast<int>(random() % 3); i > 0; --i) {
        launches.push_back({.schedule = static_cast<int>(random() % schedules.size()),
                            .bytes = Bytes{log_uniform(random, 1e4, 1e7)},
                            .at = Seconds{log_uniform(random, 1e-6, 1e-3)}});
      }
      SimgridEngine simgrid(schedules, cost);
      FlowEngine flow(schedules, cost);
      const std::vector<double> expected = test::finish_times(simgrid, launches);
      const std::vector<double> found = test::finish_times(flow, launches);
      for (std::size_t i = 0; i < launches.size(); ++i) {
        hold(std::fabs(found[i] / expected[i] - 1),
             where(static_cast<std::size_t>(launches[i].schedule), ranks, launches[i].bytes,
                   ", with others"));
      }
    }
  }
}

std::vector<std::string> topology_names() {
  std::vector<std::string> names;
  for (const experiments::Topology& topology : experiments::topologies())
    names.emplace_back(topology.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Topologies, SharedLinkAgreement, testing::ValuesIn(topology_names()),
                         [](const auto& topology) {
                           std::string name = topology.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace paceline::simulator
