// What contract tests of cuDNN share: plans for the device at hand, executed on numbers of the host.
// The same tests run on the double and on a GPU.
#pragma once

#include <cudnn_graph.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "runtime/network/cudnn/planner.h"
#include "runtime/network/steps/operation.h"
#include "tests/cuda/contract/rig.h"
#include "tests/cuda/cudnn/raw.h"
#include "tests/support/cuda_on_host/cudnn_control.h"

namespace cuda_contract {

class Handle {
 public:
  explicit Handle(cudaStream_t stream) {
    EXPECT_CUDNN(cudnnCreate(&handle_));
    EXPECT_CUDNN(cudnnSetStream(handle_, stream));
  }
  ~Handle() { EXPECT_CUDNN(cudnnDestroy(handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator cudnnHandle_t() const { return handle_; }  // NOLINT: is used as the handle

 private:
  cudnnHandle_t handle_ = nullptr;
};

// Bytes on the device.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes) { EXPECT_OK(cudaMalloc(&data_, bytes)); }
  ~Bytes() { EXPECT_OK(cudaFree(data_)); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  operator void*() const { return data_; }  // NOLINT: is used as the pointer

 private:
  void* data_ = nullptr;
};

// As cuDNN describes the current device.
[[nodiscard]] paceline::runtime::cudnn::DeviceDescription this_device();

// A plan that cuDNN made again of its text, as a stored one is.
[[nodiscard]] std::unique_ptr<Raw> load_plan(cudnnHandle_t handle, const std::string& serialised);

// A variant pack, finalised. A null workspace is left out.
[[nodiscard]] std::unique_ptr<Raw> make_pack(const std::map<std::int64_t, void*>& memory,
                                             void* workspace);

// Numbers of an operand, in the order in which they stand in memory.
struct Operand {
  std::vector<float> numbers;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};
using Operands = std::map<paceline::runtime::steps::Role, Operand>;

[[nodiscard]] cudnnDataType_t data_type(paceline::models::NumberType type);
[[nodiscard]] std::vector<std::byte> packed(const Operand& operand);
[[nodiscard]] std::vector<float> unpacked(cudnnDataType_t type,
                                          const std::vector<std::byte>& bytes);
// The nearest number of the type.
[[nodiscard]] float rounded(cudnnDataType_t type, double value);

// Executes the operation on the device at hand: reads `in` (epsilon and momentum are numbers of the
// host), writes tensors of the sizes of `out`, and returns `out` with what was written.
[[nodiscard]] Operands execute(const paceline::runtime::steps::Operation& operation,
                               paceline::models::NumberType storage, const Operands& in,
                               Operands out, const paceline::runtime::cudnn::PlanRules& rules = {});

}  // namespace cuda_contract
