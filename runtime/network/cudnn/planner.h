// Plans of operations for a device that need not be there.
//
// How an engine is chosen: cuDNN's heuristics (mode A; the fallback list where that is empty) offer
// configurations in the order in which they expect them to be fast. The first is taken that
//  1. is deterministic, because the same weights and batch have to give the same bits,
//  2. computes in FP32: operands of 16 bits are not converted down, and sums not kept in fewer bits,
//  3. needs no more workspace than the limit, and
//  4. builds.
// Nothing is timed. The fastest of the first configurations of all engines made ResNet-50 0.1 % faster on
// an H200, and others that cuDNN 9.19 offers ended in an illegal instruction on an H100 (November 2026).
//
// Convolutions have engines that cuDNN brings compiled. Most other operations are compiled at run
// time by NVRTC, 0.2 to 3 s each, and cuDNN loads the result by libcuda.so.1: without a driver these
// have no plan. Build all plans before the first collective: NCCL and plan building beside it may
// hang each other (openxla/xla#12228).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/network/cudnn/device_description.h"
#include "runtime/network/steps/operation.h"

struct cudnnContext;  // what a cudnnHandle_t points to

namespace paceline::runtime::cudnn {

using steps::Operation;

class Descriptor;  // descriptor.h

// The version that is loaded, as CUDNN_VERSION counts: 91900.
[[nodiscard]] std::int64_t cudnn_version();

struct Plan {
  std::int64_t engine = 0;     // cuDNN's number of it for this kind of graph
  std::int64_t workspace = 0;  // bytes
  int configurations = 0;      // that the heuristics offered
  int chosen = 0;              // the place of the chosen one among them, from 0
  bool compiled = false;       // at run time, for this plan
  std::string serialised;      // JSON, from which cuDNN makes the plan again
  bool operator==(const Plan&) const = default;
};

struct PlanRules {
  std::int64_t workspace = std::int64_t{256} << 20;  // bytes
  bool deterministic = true;
  // Whether FP32 operands may be rounded to TF32 (10 bits of mantissa) for tensor cores, as PyTorch
  // lets convolutions by default. Without, cuDNN 9.19 copies NHWC to NCHW and back, in up to 400 MB
  // of workspace.
  bool tf32 = true;
};

// What cuDNN says of a device of this machine, by CUDA's number of it. Throws RunError.
[[nodiscard]] DeviceDescription description_of_device(int index);

class Planner {
 public:
  // Throws RunError if cuDNN does not take the description.
  explicit Planner(DeviceDescription device);
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  [[nodiscard]] const DeviceDescription& device() const { return device_; }

  // Throws RunError that names operation and device, with cuDNN's reason, if no configuration is
  // offered or none of them will do. 5 to 100 ms, and the compilation.
  [[nodiscard]] Plan plan(const Operation& operation, models::NumberType storage,
                          const PlanRules& rules = {}) const;

  // Whether cuDNN makes a plan for this device of what it once serialised. It refuses those of
  // another architecture, and text that is none.
  [[nodiscard]] bool loads(const std::string& serialised) const;
  // The plan that it makes, for execution on this device: with the handle that will execute it, as NVIDIA's
  // samples have it, or with the device's description where there is none or cuDNN refuses. Throws RunError.
  [[nodiscard]] Descriptor load(const std::string& serialised,
                                cudnnContext* handle = nullptr) const;

 private:
  struct Descriptors;
  DeviceDescription device_;
  std::unique_ptr<Descriptors> descriptors_;
};

}  // namespace paceline::runtime::cudnn
