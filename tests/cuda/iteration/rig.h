// What tests of whole iterations on CUDA devices share: a short training of a few ranks, each a thread
// with a device of its own, in every way in which the product trains on CUDA.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "runtime/collective/executor.h"
#include "runtime/network/cudnn/cudnn_steps.h"
#include "tests/cuda/nccl/nccl_job.h"
#include "tests/cuda/network/training_rig.h"

namespace paceline::test {

enum class Travel { nccl, staged };  // by NCCL, or through pinned memory and threads

struct Way {
  Setting setting = {};
  Travel travel = Travel::nccl;
  bool by_cudnn = false;
  bool replay = true;
};

inline std::string described(const Way& way) {
  return way.setting.strategy + " " + std::string(name(way.setting.overlap)) + ", " +
         std::to_string(way.setting.ranks) + " ranks, " + std::to_string(way.setting.streams) +
         " streams" + (way.travel == Travel::nccl ? ", NCCL" : ", staged") +
         (way.by_cudnn ? ", cuDNN" : "") + (way.replay ? ", graphs" : "");
}
// GoogleTest finds it: names of tests say the way.
inline void PrintTo(const Way& way, std::ostream* out) {
  *out << described(way);
}

// The job of a way. It has three iterations: a pass is started kernel by kernel, captured, and replayed.
class Iterations {
 public:
  explicit Iterations(Way way, Seconds patience = Seconds{60})
      : way_(std::move(way)), patience_(patience), job_(way_.setting) {
    job_.recipe().batch_per_rank = 2;
  }

  // Returns the outcome of rank 0.
  [[nodiscard]] runtime::TrainingOutcome run() const {
    return job_.run(
        [this](const auto& request, const auto& endpoint) { return train_rank(request, endpoint); },
        {}, {}, 3);
  }

 private:
  [[nodiscard]] runtime::TrainingOutcome train_rank(const runtime::TrainingRequest& request,
                                                    const runtime::Endpoint& endpoint) const {
    const int index = endpoint.channel.rank();
    runtime::CudaDevice device(index);
    std::unique_ptr<runtime::cuda::StepLibraries> libraries;
    if (way_.by_cudnn)
      libraries = runtime::cudnn::open_cudnn(
          {.device = index,
           .plans = plans_.path() + "/" + std::to_string(index) + ".json",
           .tf32 = false});
    std::unique_ptr<runtime::CollectiveExecutor> executor;
    if (way_.travel == Travel::nccl)
      executor = std::make_unique<runtime::NcclExecutor>(
          endpoint.channel, device,
          runtime::NcclOptions{.streams = request.plan.streams, .patience = patience_});
    else
      executor = std::make_unique<runtime::Executor>(endpoint.transport, device);
    runtime::TrainingRequest changed = request;
    changed.replay = way_.replay;
    return train_on(device, libraries.get(), *executor, changed, endpoint);
  }

  Way way_;
  Seconds patience_;
  Job job_;
  TemporaryFolder plans_;  // of cuDNN: they are made once
};

}  // namespace paceline::test
