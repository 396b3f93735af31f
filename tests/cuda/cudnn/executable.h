// A plan with what it is executed with, for tests of executions.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/cuda/cudnn/draw.h"

namespace cuda_contract {

using paceline::runtime::cudnn::Plan;
using paceline::runtime::cudnn::Planner;
using paceline::runtime::steps::BatchNorm;
using paceline::runtime::steps::Convolution;
using paceline::runtime::steps::Operation;

inline constexpr Images shape{2, 8, 4, 4};
inline constexpr std::size_t count = 256;
inline constexpr std::size_t bytes = count * sizeof(float);

inline Operation scaling() {  // y = w x, pixel by pixel
  return Convolution{.x = shape, .y = shape, .kernel = {1, 1}};
}

inline Plan plan_of(const Operation& operation) {
  return Planner(this_device()).plan(operation, NumberType::fp32);
}

// The plan of an operation and what it is executed with.
class Executable {
 public:
  explicit Executable(const Operation& operation)
      : plan_(plan_of(operation)),
        handle_(stream_),
        loaded_(load_plan(handle_, plan_.serialised)),
        workspace_(static_cast<std::size_t>(std::max<std::int64_t>(plan_.workspace, 1))) {}

  cudnnStatus_t run(const std::map<Role, void*>& memory) {
    return run_with(memory, plan_.workspace > 0 ? static_cast<void*>(workspace_) : nullptr);
  }
  cudnnStatus_t run_with(const std::map<Role, void*>& memory, void* workspace) {
    std::map<std::int64_t, void*> by_uid;
    for (const auto& [role, pointer] : memory) by_uid[static_cast<std::int64_t>(role)] = pointer;
    const std::unique_ptr<Raw> pack = make_pack(by_uid, workspace);
    return cudnnBackendExecute(handle_, *loaded_, *pack);
  }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] cudnnHandle_t handle() const { return handle_; }
  [[nodiscard]] const Raw& loaded() const { return *loaded_; }

 private:
  Plan plan_;
  Stream stream_;
  Handle handle_;
  std::unique_ptr<Raw> loaded_;
  Bytes workspace_;
};

// x and y of a plan that scales by the identity, and its weights.
struct Scaled {
  Floats x{count};
  Floats y{count};
  Floats w{64};
  [[nodiscard]] std::map<Role, void*> memory() const {
    return {{Role::x, x}, {Role::y, y}, {Role::w, w}};
  }
};

inline void put(float* device, const Numbers& numbers, cudaStream_t stream) {
  EXPECT_OK(cudaMemcpyAsync(device, numbers.data(), numbers.size() * sizeof(float),
                            cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
}
inline Numbers identity() {
  Numbers w(64);
  for (std::size_t i = 0; i < 8; ++i) w[9 * i] = 1;
  return w;
}
inline Numbers counted(float first) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<float>(i);
  return numbers;
}

// What the double says as it ends a test; empty if it does not.
inline std::string misuse(const std::function<void()>& action) {
  cuda_on_host::throw_on_misuse(true);
  std::string what;
  try {
    action();
  } catch (const std::logic_error& error) {
    what = error.what();
  }
  cuda_on_host::throw_on_misuse(false);
  return what;
}

}  // namespace cuda_contract
