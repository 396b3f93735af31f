// Plans without a device: how an engine is chosen, and what goes wrong.
#include "runtime/network/cudnn/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/base/error.h"
#include "runtime/network/cudnn/device_description.h"
#include "tests/support/error_of.h"

namespace paceline::runtime::cudnn {

using namespace steps;
namespace {

using models::NumberType;
using test::error_of;
using test::run_error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Product = Convolution::Product;

const Planner& h100() {
  static const Planner planner(shipped_device("h100"));
  return planner;
}

Convolution three_by_three(Product product) {
  return {.product = product,
          .x = {64, 64, 56, 56},
          .y = {64, 64, 56, 56},
          .kernel = models::square(3),
          .padding = models::square(1)};
}

// What the first layer of ResNet-50 has for its filter gradient.
Convolution first_filter_gradient() {
  return {.product = Product::filter_gradient,
          .x = {64, 4, 224, 224},
          .y = {64, 64, 112, 112},
          .kernel = models::square(7),
          .stride = models::square(2),
          .padding = models::square(3)};
}

// The text of a shipped description with one thing replaced.
std::string changed(const std::string& what, const std::string& by) {
  const DeviceDescription device = shipped_device("h100");
  std::string text = R"({"schema": "paceline.cudnn-device/1", "name": "mine", "sources": ["me"], )"
                     R"("properties": )" +
                     device.properties + "}";
  const std::size_t place = text.find(what);
  EXPECT_NE(place, std::string::npos) << what;
  return text.replace(place, what.size(), by);
}

TEST(DeviceDescriptions, HaveSourcesAndAreOfTheirArchitecture) {
  for (const std::string& name : shipped_devices()) {
    const DeviceDescription device = shipped_device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_GE(device.sources.size(), 3U);
    EXPECT_EQ(device.compute_capability, name == "a100-80g" ? 80 : 90);
    EXPECT_THAT(device.properties, HasSubstr(R"("deviceName":"NVIDIA)"));
    const Planner planner(device);
    EXPECT_GT(planner.plan(three_by_three(Product::forward), NumberType::fp16).configurations, 0);
  }
  EXPECT_THAT(error_of([] { return shipped_device("h1000"); }), HasSubstr("h100"));
}

TEST(DeviceDescriptions, AreRefusedWhereAPropertyIsMissingOrWrong) {
  const auto error = [](const std::string& what, const std::string& by) {
    return error_of([&] { return parse_device(changed(what, by), "mine.json"); });
  };
  EXPECT_EQ(error("mine", "yours"), "no error");
  EXPECT_THAT(error("\"warpSize\":32,", ""), AllOf(HasSubstr("mine.json"), HasSubstr("warpSize")));
  EXPECT_THAT(error("\"warpSize\":32", "\"warpSize\":\"32\""), HasSubstr("properties.warpSize"));
  EXPECT_THAT(error("\"warpSize\":32", "\"warpSize\":-32"), HasSubstr("properties.warpSize"));
  EXPECT_THAT(error("\"warpSize\"", "\"wrapSize\""), HasSubstr("wrapSize"));
  EXPECT_THAT(error("[1024,1024,64]", "[1024,1024]"), HasSubstr("three sizes"));
  EXPECT_THAT(error("device/1", "device/2"), HasSubstr("schema"));
}

TEST(Planner, SaysThatCudnnRefusesADescription) {
  DeviceDescription device = shipped_device("h100");
  device.properties = "{}";
  EXPECT_THAT(run_error_of([&] {
                const Planner planner(device);
                return 0;
              }),
              HasSubstr("cannot finalise the description of h100: CUDNN_STATUS"));
}

TEST(Planner, PlansConvolutionsWithoutADevice) {
  for (const Product product :
       {Product::forward, Product::data_gradient, Product::filter_gradient}) {
    for (const NumberType storage : {NumberType::fp16, NumberType::bf16, NumberType::fp32}) {
      const Plan plan = h100().plan(three_by_three(product), storage);
      EXPECT_GT(plan.configurations, plan.chosen);
      EXPECT_FALSE(plan.compiled);
      EXPECT_LE(plan.workspace, PlanRules{}.workspace);
      EXPECT_TRUE(h100().loads(plan.serialised));
    }
  }
}

TEST(Planner, KeepsToTheWorkspaceLimit) {
  const Operation operation = first_filter_gradient();
  const Plan free = h100().plan(operation, NumberType::fp16);
  ASSERT_GT(free.workspace, 0);
  const Plan limited = h100().plan(operation, NumberType::fp16, {.workspace = free.workspace - 1});
  EXPECT_LT(limited.workspace, free.workspace);
  EXPECT_GT(limited.chosen, free.chosen);
  EXPECT_EQ(limited.configurations, free.configurations);
  // The limit itself is allowed.
  EXPECT_EQ(h100().plan(operation, NumberType::fp16, {.workspace = free.workspace}), free);
}

TEST(Planner, TakesNoTf32WhereItMayNot) {
  const Operation operation = three_by_three(Product::forward);
  const Plan rounded = h100().plan(operation, NumberType::fp32);
  const Plan exact = h100().plan(operation, NumberType::fp32, {.tf32 = false});
  EXPECT_GT(exact.chosen, rounded.chosen);
  EXPECT_NE(exact.engine, rounded.engine);
}

TEST(Planner, NamesOperationDeviceAndReasonWhereNothingWillDo) {
  const Operation operation = first_filter_gradient();
  const std::string none =
      run_error_of([&] { return h100().plan(operation, NumberType::fp16, {.workspace = -1}); });
  EXPECT_THAT(none, AllOf(HasSubstr("cannot plan conv-filter-gradient 64x4x224x224 -> "
                                    "64x64x112x112 k7x7 s2x2 p3x3 fp16 for h100: none of "),
                          HasSubstr("bytes of workspace")));
  Convolution nonsense = three_by_three(Product::forward);
  nonsense.y.height = 55;
  EXPECT_THAT(run_error_of([&] { return h100().plan(nonsense, NumberType::fp16); }),
              AllOf(HasSubstr("of conv-forward 64x64x56x56 -> 64x64x55x56"),
                    HasSubstr("CUDNN_STATUS"), Not(HasSubstr("\n"))));
}

TEST(Planner, CompilesWithTheDoubleOfLibcuda) {
  const Plan plan =
      h100().plan(BatchNorm{Pass::forward, {8, 16, 7, 7}, true, true}, NumberType::fp16);
  EXPECT_TRUE(plan.compiled);
  EXPECT_TRUE(h100().loads(plan.serialised));
}

TEST(Planner, LoadsPlansOfItsArchitectureOnly) {
  const Planner a100(shipped_device("a100-80g"));
  const Planner h200(shipped_device("h200"));
  const Operation operation = three_by_three(Product::forward);
  const std::string plan = h100().plan(operation, NumberType::fp16).serialised;
  EXPECT_TRUE(h200.loads(plan));
  EXPECT_FALSE(a100.loads(plan));
  EXPECT_FALSE(h100().loads(plan.substr(0, plan.size() / 2)));
  EXPECT_FALSE(h100().loads("{}"));
  EXPECT_FALSE(h100().loads(""));
}

TEST(DeviceDescription, OfTheDeviceThatIsThereIsWhatCudnnSaysOfIt) {
  const std::string properties = shipped_device("h100").properties;
  const DeviceDescription device = device_of_properties(properties);
  EXPECT_EQ(device.compute_capability, 90);
  EXPECT_EQ(device.properties, properties);
  EXPECT_THAT(device.name, HasSubstr("sm_90, "));
  for (const char* damaged : {"", "{}", "[", R"({"deviceVer": "new", "deviceName": "x"})"})
    EXPECT_THAT(run_error_of([&] { return device_of_properties(damaged).name; }),
                HasSubstr("cannot describe the device to cuDNN"));
}

// The real library has no device to ask here, and takes the number as we give it.
TEST(DeviceDescription, OfADeviceThatIsNotThereIsRefused) {
  EXPECT_THAT(run_error_of([] { return description_of_device(63).name; }),
              AllOf(HasSubstr("cannot finalise the description of device 63"),
                    Not(HasSubstr("ATTRIBUTE_TYPE"))));
}

}  // namespace
}  // namespace paceline::runtime::cudnn
