#include "simulator/planner/threshold_fields.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/prediction/prediction.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using test::error_of;

// Two values of each field that make a difference where the field is taken.
const std::map<std::string, std::pair<std::string, std::string>> two_values = {
    {"theta", {"64 KiB", "64 MiB"}},
    {"eta", {"1 KiB", "16 MiB"}},
    {"group", {"2", "8"}},
    {"reshard-after-forward", {"yes", "no"}},
    {"segments", {"1", "16"}},
    {"rings", {"1", "2"}},
    {"servers", {"1", "2"}},
    {"server-placement", {"round-robin", "balanced"}},
    {"streams", {"1", "4"}},
    {"horovod", {"0.16", "0.21"}},
    {"cycle", {"1 ms", "40 ms"}},
    {"partition", {"1 MB", "8 MB"}},
    {"credit", {"1 MB", "64 MB"}},
    {"server-machines", {"1", "4"}},
    {"server-transport", {"grpc", "rdma"}},
    {"factors-every", {"1", "10"}},
    {"host-copies", {"", ""}}};

std::vector<const models::Strategy*> all_strategies() {
  std::vector<const models::Strategy*> all;
  for (const auto& catalogue : models::strategy_catalogues())
    for (const models::Strategy& strategy : catalogue) all.push_back(&strategy);
  return all;
}

TEST(ThresholdFields, HaveNamesAndKeysOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  for (const ThresholdField& field : threshold_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_EQ(find_field(threshold_fields(), field.name), &field);
  }
  EXPECT_EQ(find_field(threshold_fields(), "thetas"), nullptr);
}

// A strategy whose prediction changes with a field takes it, and no other says so.
TEST(ThresholdFields, AreTakenWhereTheyMakeADifference) {
  const models::NetworkWork network = models::work(models::zoo_network("alexnet"));
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const auto run = [&](const models::Strategy& strategy, const ThresholdRequest& thresholds) {
    return Predictor({{.batch_per_rank = 32, .thresholds = thresholds},
                      network,
                      cluster,
                      nullptr,
                      16,
                      models::WireType::fp16})
        .run(strategy);
  };
  for (const models::Strategy* strategy : all_strategies()) {
    if (strategy->library() == models::Library::open_mpi) continue;  // no profile has its curve
    for (const ThresholdField& field : threshold_fields()) {
      SCOPED_TRACE(std::string(strategy->name) + " " + std::string(field.name));
      ThresholdRequest one;
      ThresholdRequest other;
      const auto& [first, second] = two_values.at(std::string(field.name));
      if (!field.is_flag()) read_field(field, first, one);
      read_field(field, second, other);
      const StrategyRun a = run(*strategy, one);
      const StrategyRun b = run(*strategy, other);
      EXPECT_EQ(field.is_taken(*strategy),
                !(a.plan == b.plan) || a.steady.period != b.steady.period);
    }
  }
}

TEST(ThresholdFields, AreReadWithinTheirLimits) {
  const auto error = [](const char* name, const char* text) {
    return error_of([&] {
      ThresholdRequest request;
      read_field(*find_field(threshold_fields(), name), text, request);
      return 0;
    });
  };
  EXPECT_EQ(error("cycle", "1 ns"),
            "--cycle: a cycle of 1 ns; choose 0 for none, or at least 1 us");
  EXPECT_EQ(error("cycle", "60 s"), "no error");
  EXPECT_EQ(error("cycle", "61 s"), "--cycle: a cycle of 61 s; choose at most 60 s");
  EXPECT_EQ(error("streams", "1025"), "--streams: '1025' is not a whole number from 1 to 1024");
  EXPECT_EQ(error("streams", "1024"), "no error");
  EXPECT_EQ(error("group", "0"), "--group: '0' is not a whole number from 1 to 1048576");
  EXPECT_EQ(error("theta", "much").substr(0, 8), "--theta:");
}

TEST(ThresholdFields, ExcludeEachOtherInOnePlace) {
  ThresholdRequest request;
  request.servers = 4;
  check_together(request);
  request.server_machines = 2;
  EXPECT_EQ(
      error_of([&] {
        check_together(request);
        return 0;
      }),
      "--server-machines: servers are on machines of their own or of workers; leave --servers "
      "or --server-machines out");
}

TEST(ThresholdFields, AreRefusedWhereNoStrategyTakesThem) {
  ThresholdRequest request;
  request.credit = Bytes{1e6};
  const auto error = [&](const std::vector<const models::Strategy*>& strategies) {
    return error_of([&] {
      check_taken(request, strategies);
      return 0;
    });
  };
  const models::Strategy& ring = models::strategy("ring");
  const models::Strategy& fused = models::strategy("fused-ring");
  const models::Strategy& scheduler = models::strategy("byte-scheduler");
  EXPECT_EQ(error({&ring}),
            "--credit: ring does not take it; leave it out, or choose a strategy such as "
            "byte-scheduler");
  EXPECT_EQ(error({&ring, &fused}),
            "--credit: none of the 2 strategies takes it; leave it out, or choose a strategy such "
            "as byte-scheduler");
  EXPECT_EQ(error({&ring, &scheduler}), "no error");
  const std::vector<PartlyTaken> partly = partly_taken(request, {&ring, &scheduler, &fused});
  ASSERT_EQ(partly.size(), 1u);
  EXPECT_EQ(partly[0].taken_by, std::vector<std::string_view>{"byte-scheduler"});
  EXPECT_EQ(partly[0].left_aside_by, (std::vector<std::string_view>{"ring", "fused-ring"}));
  EXPECT_TRUE(partly_taken(request, {&scheduler}).empty());
}

}  // namespace
}  // namespace paceline::simulator
