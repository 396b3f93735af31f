// Plans of a whole network, stored and taken back.
#include "runtime/network/cudnn/network_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::runtime::cudnn {

using namespace steps;
namespace {

using models::NumberType;
using test::error_of;
using testing::HasSubstr;

const Planner& h100() {
  static const Planner planner(shipped_device("h100"));
  return planner;
}

// Convolutions alone, so that nothing is compiled; two of them alike.
models::Network convolutions() {
  models::NetworkBuilder net("convolutions", models::Shape::image(3, 32, 32));
  const models::Convolution wide{
      .channels = 16, .kernel = models::square(3), .padding = models::square(1), .bias = false};
  for (const char* name : {"first", "second", "third"}) net.add(name, wide);
  net.add("flatten", models::Flatten{});
  net.add("full", models::FullyConnected{.outputs = 16, .bias = false});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

TEST(NetworkPlans, PlanEachOperationOnce) {
  PlanStore store(h100());
  const NetworkPlans planned = plan_network(convolutions(), 8, NumberType::fp16, store);
  ASSERT_EQ(planned.plan_of_step.size(), planned.steps.size());
  std::set<std::string> keys;
  for (const auto& keyed : planned.plans)
    EXPECT_TRUE(keys.insert(keyed.operation).second) << keyed.operation;
  // Three products of the second convolution and two of the first (the third's are the second's),
  // three of the full layer.
  EXPECT_EQ(keys.size(), 8U);
  EXPECT_EQ(store.made(), 8U);
  for (std::size_t i = 0; i < planned.steps.size(); ++i) {
    const auto* operation = std::get_if<Operation>(&planned.steps[i].work);
    const int plan = planned.plan_of_step[i];
    ASSERT_EQ(operation == nullptr, plan == -1);
    if (operation != nullptr)
      EXPECT_EQ(planned.plans.at(static_cast<std::size_t>(plan)).operation,
                key(*operation, NumberType::fp16));
  }
}

TEST(NetworkPlans, HaveTheWorkspaceOfTheLargestWhereverItStands) {
  models::NetworkBuilder net("workspace", models::Shape::image(8, 14, 14));
  for (const std::int64_t channels : {256, 1024, 8})
    net.add("to" + std::to_string(channels),
            models::Convolution{.channels = channels, .kernel = models::square(1), .bias = false});
  net.add("full", models::FullyConnected{.outputs = 16, .bias = false});
  net.add("loss", models::SoftmaxCrossEntropy{});
  PlanStore store(h100());
  const NetworkPlans planned = plan_network(net.build(), 64, NumberType::fp16, store);
  ASSERT_LT(planned.plans.front().plan.workspace, planned.workspace);
  ASSERT_LT(planned.plans.back().plan.workspace, planned.workspace);
  std::int64_t largest = 0;
  for (const auto& keyed : planned.plans) largest = std::max(largest, keyed.plan.workspace);
  EXPECT_EQ(planned.workspace, largest);
}

TEST(NetworkPlans, AreTheSameByAnyNumberOfThreads) {
  PlanStore alone(h100());
  PlanStore together(h100());
  const models::Network network = models::zoo_network("vgg16");
  std::vector<Operation> operations;
  for (const Step& step : layer_steps(network, 4)) {
    const auto* operation = std::get_if<Operation>(&step.work);
    if (operation != nullptr && std::holds_alternative<Convolution>(*operation))
      operations.push_back(*operation);
  }
  alone.plan_all(operations, NumberType::fp16, 1);
  together.plan_all(operations, NumberType::fp16, 4);
  EXPECT_GT(alone.size(), 20U);
  EXPECT_EQ(alone.text(), together.text());
}

TEST(PlanStore, StoresWhatHasAPlanAndNamesWhatHasNone) {
  PlanStore store(h100());
  const Convolution sound{.x = {1, 8, 8, 8}, .y = {1, 8, 8, 8}, .kernel = models::square(1)};
  Convolution nonsense = sound;
  nonsense.y.height = 7;
  for (const int threads : {1, 2}) {
    try {
      store.plan_all(std::vector<Operation>{nonsense, sound}, NumberType::fp16, threads);
      ADD_FAILURE() << "no error";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr("1x8x8x8 -> 1x8x7x8"));
    }
    EXPECT_EQ(store.size(), 1U);
  }
  EXPECT_EQ(store.made(), 1U);
}

// Two GPUs of a machine differ in place and clocks, and use the same plans.
TEST(PlanStore, IsOfAKindOfDevice) {
  DeviceDescription second = shipped_device("h100");
  const std::string before = R"("cudaDeviceId":0)";
  const std::size_t place = second.properties.find(before);
  ASSERT_NE(place, std::string::npos);
  second.properties.replace(place, before.size(), R"("cudaDeviceId":1)");
  EXPECT_EQ(PlanStore(Planner(second)).made_for(), PlanStore(h100()).made_for());
  EXPECT_NE(PlanStore(Planner(shipped_device("h200"))).made_for(), PlanStore(h100()).made_for());
}

TEST(PlanStore, TakesBackWhatItWroteAndMakesNothing) {
  PlanStore written(h100());
  const NetworkPlans planned = plan_network(convolutions(), 8, NumberType::fp16, written);
  PlanStore store(h100());
  EXPECT_TRUE(store.take(written.text(), "plans.json"));
  const NetworkPlans again = plan_network(convolutions(), 8, NumberType::fp16, store);
  EXPECT_EQ(store.made(), 0U);
  ASSERT_EQ(again.plans.size(), planned.plans.size());
  for (std::size_t i = 0; i < planned.plans.size(); ++i)
    EXPECT_EQ(again.plans[i].plan, planned.plans[i].plan) << planned.plans[i].operation;
  EXPECT_EQ(store.text(), written.text());
}

TEST(PlanStore, LeavesPlansOfAnotherDeviceOrOtherRules) {
  PlanStore written(h100());
  static_cast<void>(plan_network(convolutions(), 8, NumberType::fp16, written));
  const Planner h200(shipped_device("h200"));
  PlanStore of_h200(h200);
  EXPECT_FALSE(of_h200.take(written.text(), "plans.json"));
  PlanStore limited(h100(), {.workspace = 1});
  EXPECT_FALSE(limited.take(written.text(), "plans.json"));
  EXPECT_EQ(of_h200.size() + limited.size(), 0U);
}

TEST(PlanStore, MakesAnewWhatCudnnDoesNotLoad) {
  PlanStore written(h100());
  const NetworkPlans planned = plan_network(convolutions(), 8, NumberType::fp16, written);
  std::string text = written.text();
  const std::string sound = R"("serialised": "{\"cudnnVersion\")";
  const std::size_t place = text.find(sound);
  ASSERT_NE(place, std::string::npos) << text.substr(0, 800);
  text.replace(place, sound.size(), R"("serialised": "{\"cudnnvErsion\")");
  PlanStore store(h100());
  EXPECT_TRUE(store.take(text, "plans.json"));
  const NetworkPlans again = plan_network(convolutions(), 8, NumberType::fp16, store);
  EXPECT_EQ(store.made(), 1U);
  EXPECT_EQ(again.plans.front().plan, planned.plans.front().plan);
}

TEST(PlanStore, RefusesDamagedDocuments) {
  PlanStore store(h100());
  store.plan(Convolution{.x = {1, 8, 8, 8}, .y = {1, 8, 8, 8}, .kernel = models::square(1)},
             NumberType::fp16);
  const std::string text = store.text();
  const auto error = [&](const std::string& what, const std::string& by) {
    std::string damaged = text;
    const std::size_t place = damaged.find(what);
    EXPECT_NE(place, std::string::npos) << what;
    damaged.replace(place, what.size(), by);
    PlanStore taking(h100());
    const std::string message = error_of([&] { return taking.take(damaged, "plans.json"); });
    EXPECT_EQ(taking.size(), 0U);
    return message;
  };
  EXPECT_THAT(error("\"engine\": ", "\"engine\": -"), HasSubstr("plans.json"));
  EXPECT_THAT(error("\"engine\"", "\"motor\""), HasSubstr("motor"));
  EXPECT_THAT(error("plans/1", "plans/2"), HasSubstr("schema"));
  EXPECT_THAT(error("]\n}", ""), HasSubstr("plans.json"));
}

}  // namespace
}  // namespace paceline::runtime::cudnn
