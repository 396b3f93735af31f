// Every operation of every network that trains: its graph is finalised by the toolkit's library and by
// the double, and the double has a plan for it. That the library has one, too, is in the tables of
// tests/golden/cudnn.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "models/network/zoo.h"
#include "runtime/network/cudnn/operation_graph.h"
#include "runtime/network/cudnn/planner.h"
#include "runtime/network/steps/layer_steps.h"
#include "tests/support/cuda_on_host/cudnn_control.h"

namespace {

using paceline::models::NumberType;
using paceline::runtime::cudnn::Plan;
using paceline::runtime::cudnn::Planner;
using paceline::runtime::cudnn::shipped_device;
using namespace paceline::runtime::steps;  // NOLINT: operations

class CudnnNetwork : public testing::TestWithParam<const char*> {};

TEST_P(CudnnNetwork, HasGraphsThatAreTaken) {
  std::map<std::string, Operation> distinct;
  const NumberType types[] = {NumberType::fp16, NumberType::bf16, NumberType::fp32};
  for (const int batch : {1, 64})
    for (const Step& step : layer_steps(paceline::models::zoo_network(GetParam()), batch))
      if (const auto* operation = std::get_if<Operation>(&step.work))
        distinct.emplace(key(*operation, NumberType::fp32), *operation);
  ASSERT_GT(distinct.size(), 10U);
  const bool on_double = cuda_on_host::cudnn::present();
  const Planner planner(shipped_device("h100"));
  for (const auto& [name, operation] : distinct)
    for (const NumberType type : types) {
      SCOPED_TRACE(key(operation, type));
      EXPECT_NO_THROW(
          static_cast<void>(paceline::runtime::cudnn::operation_graph(operation, type)));
      if (!on_double) continue;
      const Plan plan = planner.plan(operation, type);
      EXPECT_TRUE(planner.loads(plan.serialised));
    }
}

INSTANTIATE_TEST_SUITE_P(Zoo, CudnnNetwork,
                         testing::Values("alexnet", "alexnet-bn", "vgg16", "inception-v3",
                                         "inception-v4", "resnet50", "resnet152", "resnet-small",
                                         "cnn-small"),
                         [](const auto& network) {
                           std::string name = network.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
