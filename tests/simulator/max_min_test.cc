#include "simulator/engine/max_min.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "tests/support/fluid_engine.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

void settle(FairSharing& sharing) {
  sharing.settle([](int) {});
}

TEST(FairSharing, GivesAFlowAloneItsBound) {
  FairSharing sharing;
  const int link = sharing.add_link(10);
  const int flow = sharing.add_flow(std::vector{link}, 4);
  sharing.start(flow);
  settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(flow), 4);
}

// Three links in a row, one long flow over all and a short one over each: the "parking lot". The
// long one gets the share of the narrowest, and the short ones what that leaves.
TEST(FairSharing, ParkingLot) {
  FairSharing sharing;
  const std::vector links = {sharing.add_link(10), sharing.add_link(4), sharing.add_link(8)};
  const int whole_way = sharing.add_flow(links, 4);
  const int first = sharing.add_flow(std::vector{links[0]}, 10);
  const int second = sharing.add_flow(std::vector{links[1]}, 4);
  const int third = sharing.add_flow(std::vector{links[2]}, 8);
  for (const int flow : {whole_way, first, second, third}) sharing.start(flow);
  settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(whole_way), 2);
  EXPECT_DOUBLE_EQ(sharing.rate(first), 8);
  EXPECT_DOUBLE_EQ(sharing.rate(second), 2);
  EXPECT_DOUBLE_EQ(sharing.rate(third), 6);

  sharing.stop(second);
  std::set<int> changed;
  sharing.settle([&](int flow) { changed.insert(flow); });
  EXPECT_DOUBLE_EQ(sharing.rate(whole_way), 4);
  EXPECT_DOUBLE_EQ(sharing.rate(first), 6);
  EXPECT_DOUBLE_EQ(sharing.rate(third), 4);
  EXPECT_EQ(changed, (std::set{whole_way, first, third}));
}

TEST(FairSharing, SaysNothingOfFlowsThatAChangeDoesNotReach) {
  FairSharing sharing;
  const int left = sharing.add_link(2);
  const int right = sharing.add_link(2);
  std::vector<int> flows;
  for (const int link : {left, left, right, right})
    flows.push_back(sharing.add_flow(std::vector{link}, 2));
  for (const int flow : flows) sharing.start(flow);
  settle(sharing);
  sharing.stop(flows[0]);
  std::set<int> changed;
  sharing.settle([&](int flow) { changed.insert(flow); });
  EXPECT_EQ(changed, std::set{flows[1]});
}

// Flows over random links start and stop in random order: rates are those of the definition.
RC_GTEST_PROP(FairSharing, IsMaxMinFairAfterAnyStartsAndStops, ()) {
  FairSharing sharing;
  std::map<int, double> capacities;
  const int links = test::drawn(1, 8);
  // Few values, so that ties are common.
  for (int i = 0; i < links; ++i) {
    const double capacity = test::drawn(1, 6);
    capacities[sharing.add_link(capacity)] = capacity;
  }
  struct Flow {
    std::vector<int> path;
    double bound;
    bool runs = false;
  };
  std::vector<Flow> flows;
  for (int i = test::drawn(1, 14); i > 0; --i) {
    Flow flow{.path = {}, .bound = test::drawn(1, 6) * *rc::gen::element(0.5, 1.0, 1.7)};
    for (int link = 0; link < links; ++link) {
      if (test::drawn(0, 2) == 0) flow.path.push_back(link);
    }
    for (const int link : flow.path) flow.bound = std::min(flow.bound, capacities[link]);
    RC_ASSERT(sharing.add_flow(flow.path, flow.bound) == static_cast<int>(flows.size()));
    flows.push_back(flow);
  }
  for (int change = 0; change < 30; ++change) {
    for (int together = test::drawn(1, 4); together > 0; --together) {
      const int id = test::drawn(0, static_cast<int>(flows.size()) - 1);
      Flow& flow = flows[static_cast<std::size_t>(id)];
      if (flow.runs) {
        sharing.stop(id);
      } else {
        sharing.start(id);
      }
      flow.runs = !flow.runs;
    }
    settle(sharing);
    std::vector<std::vector<int>> paths;
    std::vector<double> bounds;
    std::vector<int> ids;
    for (std::size_t id = 0; id < flows.size(); ++id) {
      if (!flows[id].runs) continue;
      paths.push_back(flows[id].path);
      bounds.push_back(flows[id].bound);
      ids.push_back(static_cast<int>(id));
    }
    const std::vector<double> expected = test::fair_rates(paths, bounds, capacities);
    for (std::size_t i = 0; i < ids.size(); ++i)
      RC_ASSERT(std::fabs(sharing.rate(ids[i]) - expected[i]) <= 1e-9 * expected[i]);
  }
}

// Alike flows as one, with weights, and one by one: `copies` links of a kind, each passed by as many
// flows of a kind as the kind's weight there.
RC_GTEST_PROP(FairSharing, OneFlowWithWeightsIsWorthSeveralWithout, ()) {
  const int kinds = test::drawn(1, 5);
  const int link_kinds = test::drawn(1, 5);
  const int copies = test::drawn(1, 3);
  FairSharing sharing;
  std::map<int, double> capacities;  // of the copies: link kind * copies + copy
  std::vector<double> capacity;
  for (int link = 0; link < link_kinds; ++link) {
    capacity.push_back(test::drawn(1, 6));
    sharing.add_link(capacity.back());
    for (int copy = 0; copy < copies; ++copy) capacities[link * copies + copy] = capacity.back();
  }
  std::vector<std::vector<int>> paths;  // of single flows
  std::vector<double> bounds;
  std::vector<int> kind_of;
  for (int kind = 0; kind < kinds; ++kind) {
    // Each of copies * count flows passes one copy of a link, in turn, and so `count` pass each; a
    // link of which there is one for all is passed by all of them.
    const int count = test::drawn(1, 3);
    std::vector<int> links;
    std::vector<double> weights;
    double bound = 10;
    for (int link = 0; link < link_kinds; ++link) {
      if (test::drawn(0, 1) == 0) continue;
      links.push_back(link);
      weights.push_back(count);
      bound = std::min(bound, capacity[static_cast<std::size_t>(link)] / count);
    }
    bound *= *rc::gen::element(0.5, 1.0);
    RC_ASSERT(sharing.add_flow(links, weights, bound) == kind);
    sharing.start(kind);
    for (int flow = 0; flow < copies * count; ++flow) {
      std::vector<int> path;
      for (const int link : links) path.push_back(link * copies + flow % copies);
      paths.push_back(path);
      bounds.push_back(bound);
      kind_of.push_back(kind);
    }
  }
  settle(sharing);
  const std::vector<double> expected = test::fair_rates(paths, bounds, capacities);
  for (std::size_t i = 0; i < kind_of.size(); ++i)
    RC_ASSERT(std::fabs(sharing.rate(kind_of[i]) - expected[i]) <= 1e-9 * expected[i]);
}

// A kind of flows may weigh more on one link than on another: three flows from three links into one.
TEST(FairSharing, AFlowMayWeighMoreOnOneLinkThanOnAnother) {
  FairSharing sharing;
  const int out = sharing.add_link(10);  // stands for three
  const int in = sharing.add_link(12);
  const int gathered = sharing.add_flow(std::vector{out, in}, std::vector<double>{1, 3}, 4);
  const int other = sharing.add_flow(std::vector{out}, 10);
  sharing.start(gathered);
  sharing.start(other);
  settle(sharing);
  EXPECT_DOUBLE_EQ(sharing.rate(gathered), 4);
  EXPECT_DOUBLE_EQ(sharing.rate(other), 6);
}

}  // namespace
}  // namespace paceline::simulator
