// A library that computes steps of a network (runtime/network/steps) on a CUDA device in place of our
// own kernels: cuDNN (runtime/network/cudnn), or whatever a test puts here.
//
// A network first says all operations that it will ask for, by plan(); then it binds each to the
// memory of its operands, and starts what it has bound, again and again. All work that is started
// for one network goes to one stream, so that one block of workspace serves all of it.
// Thread safety: one thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "runtime/network/steps/operation.h"

namespace paceline::runtime::cuda {

class StepLibrary {
 public:
  // An operand: memory of the device, or a number, which the library keeps.
  struct Bound {
    int role = 0;  // steps::Role, or steps::Role::term and the number of the term
    void* memory = nullptr;
    float number = 0;
  };

  StepLibrary() = default;
  StepLibrary(const StepLibrary&) = delete;
  StepLibrary& operator=(const StepLibrary&) = delete;
  virtual ~StepLibrary() = default;

  // Whether the library has this operation at all; if not, our own kernels compute it. It says the
  // same of the forward and the backward pass of a pool.
  [[nodiscard]] virtual bool computes(const steps::Operation& operation,
                                      models::NumberType storage) const = 0;
  // Prepares to compute these operations, with activations and weights of this type. Takes seconds
  // to minutes the first time on a machine. Operations that it does not have are left out. Throws
  // RunError that names an operation for which there is no plan.
  virtual void plan(std::span<const steps::Operation> operations, models::NumberType storage) = 0;
  // The bytes of workspace that any of the planned operations needs.
  [[nodiscard]] virtual std::size_t workspace() const = 0;
  // One of the planned operations with its operands, all of them, and the workspace. Returns the
  // number under which start() knows it. Memory is aligned to 16 bytes. Throws RunError.
  virtual int bind(const steps::Operation& operation, models::NumberType storage,
                   std::span<const Bound> operands, void* workspace) = 0;
  // Throws RunError if the library or the device refuses it.
  virtual void start(int bound, cudaStream_t stream) = 0;
};

// A library on one device: what the networks of a rank share.
class StepLibraries {
 public:
  StepLibraries() = default;
  StepLibraries(const StepLibraries&) = delete;
  StepLibraries& operator=(const StepLibraries&) = delete;
  virtual ~StepLibraries() = default;

  // For reports: "cuDNN 9.19.0".
  [[nodiscard]] virtual std::string description() const = 0;
  // What the user should know, a line each.
  [[nodiscard]] virtual std::vector<std::string> notes() const = 0;
  // For one network, which this outlives.
  [[nodiscard]] virtual std::unique_ptr<StepLibrary> make() = 0;
};

}  // namespace paceline::runtime::cuda
