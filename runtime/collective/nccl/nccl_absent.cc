// NcclExecutor where Paceline is built without NCCL.
#include "models/base/error.h"
#include "runtime/collective/nccl/nccl_executor.h"

namespace paceline::runtime {

struct NcclExecutor::State {
  ExecutorTraits traits{.takes = {}};
};

NcclExecutor::NcclExecutor(Channel& /*channel*/, CudaDevice& /*device*/, NcclOptions /*options*/) {
  throw UnavailableError(
      "built without NCCL: install it beside the CUDA toolkit, and configure again");
}

NcclExecutor::~NcclExecutor() = default;

const ExecutorTraits& NcclExecutor::traits() const {
  return state_->traits;
}

Collective NcclExecutor::prepare(const models::PlannedSchedule& /*schedule*/,
                                 std::int64_t /*elements*/, models::WireType /*wire*/,
                                 int /*stream*/) {
  return {};
}

Collective NcclExecutor::prepare(const models::Schedule& /*schedule*/, std::int64_t /*elements*/,
                                 models::WireType /*wire*/, int /*stream*/) {
  return {};
}

Token NcclExecutor::start(Collective /*collective*/, const ArrayView& /*bucket*/,
                          const Token& /*ready*/) {
  return {};
}

bool NcclExecutor::progress() {
  return false;
}

void NcclExecutor::abort() noexcept {}

}  // namespace paceline::runtime
