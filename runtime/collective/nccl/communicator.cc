// Tests: tests/cuda/nccl/nccl_executor_test.cc.
#include "runtime/collective/nccl/communicator.h"

#include <fmt/format.h>

#include <chrono>

#include "models/base/error.h"
#include "runtime/channel/messages.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/device/polling.h"
#include "runtime/transport/lost_rank.h"

namespace paceline::runtime::nccl {
namespace {

using Clock = std::chrono::steady_clock;

// NCCL's words on a status, and on what came before it where it says so.
std::string words_on(ncclResult_t status, ncclComm_t comm) {
  const char* const last = ncclGetLastError(comm);
  const std::string detail =
      last == nullptr ? "" : std::string(last, 0, std::string(last).find('\n'));
  return detail.empty() ? ncclGetErrorString(status)
                        : fmt::format("{} ({})", ncclGetErrorString(status), detail);
}

}  // namespace

ncclUniqueId draw_unique_id(Channel& channel) {
  ncclUniqueId id{};
  if (channel.rank() == 0) {
    const ncclResult_t status = ncclGetUniqueId(&id);
    if (status != ncclSuccess)
      throw RunError("name an NCCL communicator", words_on(status, nullptr));
  }
  broadcast(channel, std::as_writable_bytes(std::span(id.internal)));
  return id;
}

Communicator::Communicator(const ncclUniqueId& id, int rank, int ranks, int device,
                           Seconds patience)
    : who_(fmt::format("as rank {} of {}", rank, ranks)), patience_(patience) {
  constexpr std::string_view operation = "make an NCCL communicator";
  const cuda::CurrentDevice current(device);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  try {
    check(ncclCommInitRankConfig(&comm_, ranks, id, rank, &config), operation);
    settle(operation);
  } catch (...) {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(comm_));
    throw;
  }
}

Communicator::~Communicator() {
  if (comm_ != nullptr) static_cast<void>(ncclCommDestroy(comm_));
}

void Communicator::check(ncclResult_t status, std::string_view operation) const {
  if (status == ncclSuccess || status == ncclInProgress) return;
  const std::string what = fmt::format("{} {}", operation, who_);
  const std::string words = words_on(status, comm_);
  if (status == ncclRemoteError) throw LostRank(what, words);
  throw RunError(what, words);
}

void Communicator::settle(std::string_view operation) const {
  const Clock::time_point start = Clock::now();
  for (;;) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_, &state), operation);
    if (state != ncclInProgress) return check(state, operation);
    const Clock::duration waited = Clock::now() - start;
    if (std::chrono::duration<double>(waited).count() > patience_.value())
      throw LostRank(fmt::format("{} {}", operation, who_),
                     fmt::format("the other ranks did not come in {:g} s", patience_.value()));
    pause_between_looks(waited);
  }
}

void Communicator::check_for_errors(std::string_view operation) const {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm_, &state), operation);
  check(state, operation);
}

void abort_all(std::span<const std::unique_ptr<Communicator>> communicators) noexcept {
  // Within a group an abort only marks its communicator; the group's end does the rest.
  const bool grouped = communicators.size() > 1 && ncclGroupStart() == ncclSuccess;
  for (const auto& communicator : communicators) {
    if (communicator == nullptr || communicator->comm_ == nullptr) continue;
    static_cast<void>(ncclCommAbort(communicator->comm_));
    communicator->comm_ = nullptr;
  }
  if (grouped) static_cast<void>(ncclGroupEnd());
}

Group::Group(const Communicator& communicator) : communicator_(communicator) {
  communicator.check(ncclGroupStart(), "begin a group of NCCL's calls");
}

Group::~Group() {
  if (open_) static_cast<void>(ncclGroupEnd());
}

void Group::end(std::string_view operation) {
  open_ = false;
  communicator_.check(ncclGroupEnd(), operation);
  communicator_.settle(operation);
}

}  // namespace paceline::runtime::nccl
