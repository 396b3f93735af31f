// Tests: tests/cuda/device/cuda_device_test.cc.
#include "runtime/device/cuda/cuda_stream.h"

#include <fmt/format.h>

#include <exception>

#include "models/base/error.h"
#include "runtime/device/cuda/device_tables.h"
#include "runtime/device/cuda/start.h"

namespace paceline::runtime::cuda {
namespace {

float* floats(const ArrayView& array) {
  return reinterpret_cast<float*>(array.data);
}
const float* floats(const ConstArrayView& array) {
  return reinterpret_cast<const float*>(array.data);
}

// Starts a kernel on a stream of the current device.
struct Starter {
  cudaStream_t stream;
  DeviceTables& tables;

  void operator()(const Cast& k) const {
    if (k.source.elements == 0) return;
    if (k.source.type == k.target.type)
      return check(cudaMemcpyAsync(k.target.data, k.source.data, k.source.bytes(),
                                   cudaMemcpyDefault, stream),
                   "start a copy");
    check(start_cast(stream, k.source.data, k.source.type, k.target.data, k.target.type,
                     k.source.elements),
          "start a cast");
  }
  void operator()(const CastMany& k) const {
    check(start_cast_many(stream, tables.of(*k.table), *k.table), "start many casts");
  }
  void operator()(const Unscale& k) const {
    check(start_unscale(stream, k.source.data, k.source.type, floats(k.target), k.factor,
                        k.target.elements, k.found),
          "start to unscale");
  }
  void operator()(const Add& k) const {
    check(start_add(stream, k.source.data, k.source.type, k.target.data, k.target.type,
                    k.source.elements),
          "start an addition");
  }
  void operator()(const FindNotFinite& k) const {
    check(start_find_not_finite(stream, floats(k.values), k.values.elements, k.found),
          "start to look for what is not finite");
  }
  void operator()(const Fill& k) const {
    check(start_fill(stream, floats(k.target), k.value, k.target.elements), "start to fill");
  }
  void operator()(const UpdateParameters& k) const {
    UpdatedCopies copies{.table = k.copies};
    if (k.copies != nullptr) {
      PACELINE_ASSERT(k.copies->are_of(*k.table), "each tensor has a copy");
      copies.on_device = tables.of(*k.copies);
    }
    check(start_update(stream, tables.of(*k.table), k.rule,
                       {.weights = floats(k.weights),
                        .gradients = floats(k.gradients),
                        .momentum = floats(k.momentum),
                        .mean_square = floats(k.mean_square)},
                       copies),
          "start an update of the parameters");
  }
};

}  // namespace

CudaStream::CudaStream(int device_index, DeviceTables& tables)
    : device_index_(device_index),
      tables_(tables),
      stream_([device_index] {
        const CurrentDevice current(device_index);
        return make_stream_handle();
      }()),
      points_(device_index, fmt::format("run kernels on CUDA device {}", device_index)) {}

CudaStream::~CudaStream() {
  try {
    static_cast<void>(points_.wait(record().point(), device_patience));
  } catch (const std::exception&) {
    // A device that failed has told it, or will, to whoever waits for a token.
  }
}

void CudaStream::start(const Kernel& kernel) {
  const CurrentDevice current(device_index_);
  has_started_since_ = true;
  std::visit(Starter{stream_.get(), tables_}, kernel);
}

void CudaStream::wait_for(const Token& token) {
  if (token.source() == nullptr) return;
  auto* const source = dynamic_cast<CudaTokenSource*>(token.source());
  if (source == nullptr || source->device_index() != device_index_)
    return runtime::wait_for(token, device_patience,
                             fmt::format("go on with CUDA device {}", device_index_));
  has_started_since_ = true;
  source->make_wait(stream_.get(), token.point());
}

// What was recorded last stands for what is recorded now, if nothing came in between.
Token CudaStream::record() {
  if (has_started_since_) {
    const CurrentDevice current(device_index_);
    recorded_ = points_.record(stream_.get());
    has_started_since_ = false;
  }
  return recorded_ == 0 ? Token() : Token(*this, recorded_);
}

}  // namespace paceline::runtime::cuda
