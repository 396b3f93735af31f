// Training on a CUDA device with its layers by cuDNN, against training on the CPU.
#include "runtime/network/cudnn/cudnn_steps.h"
#include "tests/cuda/network/training_rig.h"
#include "tests/support/thoroughness.h"

namespace paceline::test {
namespace {

// Each rank has cuDNN for itself. Plans are those of all tests.
runtime::TrainingOutcome on_cudnn(const runtime::TrainingRequest& request,
                                  const runtime::Endpoint& endpoint) {
  static const TemporaryFolder folder;
  CudaDevice device;
  runtime::Executor executor(endpoint.transport, device);
  const std::unique_ptr<runtime::cuda::StepLibraries> libraries = runtime::cudnn::open_cudnn(
      {.device = 0, .plans = folder.path() + "/plans.json", .tf32 = false});
  return train_on(device, libraries.get(), executor, request, endpoint);
}

class CudnnTraining : public ::testing::TestWithParam<Setting> {};

TEST_P(CudnnTraining, StaysByTheCpu) {
  expect_by_the_cpu(GetParam(), on_cudnn, cases(1, 4));
}

TEST_P(CudnnTraining, ResumesToTheBit) {
  expect_to_resume_to_the_bit(GetParam(), on_cudnn);
}

INSTANTIATE_TEST_SUITE_P(Settings, CudnnTraining, ::testing::ValuesIn(settings),
                         [](const auto& p) { return p.param.name; });

// The gradients of weights are rounded to BF16, too.
const ResnetTrial resnet_trials[] = {
    {NumberType::fp32, 1e-4}, {NumberType::fp16, 5e-2}, {NumberType::bf16, 1.5e-1}};

TEST(CudnnTraining, OfResnetSmallStaysByTheCpu) {
  for (const ResnetTrial& trial : resnet_trials)
    expect_resnet_by_the_cpu(models::zoo_network("resnet-small"), trial, on_cudnn, cases(1, 20));
}

}  // namespace
}  // namespace paceline::test
