// The functions of NCCL that make communicators, ask about them and give them back.
#include "tests/support/cuda_on_host/nccl/communicators.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/support/cuda_on_host/nccl/board.h"

namespace cuda_on_host::nccl {
namespace {

// The thread that each member was made by: ranks have turns where these are all different.
std::map<const ncclComm*, std::thread::id>& makers() {
  static std::map<const ncclComm*, std::thread::id> all;
  return all;
}
// Communicators of this thread for which it has its turn with others.
thread_local int turns = 0;

std::string duplicate(int rank, int other, int device) {
  char text[128];
  std::snprintf(text, sizeof text,
                "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x", rank, other,
                static_cast<unsigned>(device) << 12U);
  return text;
}

// The rank's handle on the clique.
ncclComm& join(const std::shared_ptr<Clique>& clique, int rank, int device, bool blocking) {
  Cliques& all = cliques();
  auto made = std::make_unique<ncclComm>();
  ncclComm& comm = *made;
  comm.clique = clique;
  comm.rank = rank;
  comm.device = device;
  comm.blocking = blocking;
  for (const ncclComm* other : clique->members) {
    if (other != nullptr && other->device == device && clique->refusal.empty())
      clique->refusal = duplicate(rank, other->rank, device);
  }
  clique->members[static_cast<std::size_t>(rank)] = &comm;
  ++clique->joined;
  makers()[&comm] = std::this_thread::get_id();
  all.live.push_back(&comm);
  all.all.push_back(std::move(made));
  notify();
  return comm;
}

std::shared_ptr<Clique> new_clique(const std::string& id, int ranks) {
  auto clique = std::make_shared<Clique>();
  clique->id = id;
  clique->ranks = ranks;
  clique->members.resize(static_cast<std::size_t>(ranks));
  return clique;
}

// Looks for ranks that are processes. When all have come, each has a member that stands for it.
void look_for_members(Clique& clique) {
  const std::vector<int> devices = clique.board->devices();
  if (clique.joined == clique.ranks || std::count(devices.begin(), devices.end(), -1) > 0) return;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other)
      if (devices[other] == devices[rank] && clique.refusal.empty())
        clique.refusal = duplicate(static_cast<int>(rank), static_cast<int>(other), devices[rank]);
    if (clique.members[rank] != nullptr) continue;
    auto made = std::make_unique<ncclComm>();
    made->rank = static_cast<int>(rank);
    made->device = devices[rank];
    clique.members[rank] = made.get();
    cliques().all.push_back(std::move(made));
  }
  clique.joined = clique.ranks;
}

// As wait_on_host(), also for what other processes do.
bool wait_for_ranks(const Clique& clique, const std::function<bool()>& condition, double seconds) {
  if (clique.board == nullptr) return wait_on_host(condition, seconds);
  constexpr double between_looks_s = 1e-3;
  for (double waited = 0; waited < seconds; waited += between_looks_s)
    if (wait_on_host(condition, between_looks_s)) return true;
  return false;
}

bool ranks_are_threads(const Clique& clique) {
  if (clique.board != nullptr) return false;
  std::vector<std::thread::id> threads;
  for (const ncclComm* member : clique.members) {
    const std::thread::id id = member == nullptr ? std::thread::id() : makers()[member];
    if (std::find(threads.begin(), threads.end(), id) != threads.end()) return false;
    threads.push_back(id);
  }
  return clique.ranks > 1;
}

ncclResult_t current_device(int& device) {
  return cudaGetDevice(&device) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t init(ncclComm_t* handle, int ranks, const ncclUniqueId& id, int rank, bool blocking) {
  *handle = nullptr;
  int device = 0;
  if (const ncclResult_t status = current_device(device); status != ncclSuccess) return status;
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  std::shared_ptr<Clique>& clique = cliques().by_id[name];
  if (clique == nullptr) clique = new_clique(name, ranks);
  if (clique->ranks != ranks)
    die("ncclCommInitRank: rank " + std::to_string(rank) + " says " + std::to_string(ranks) +
        " ranks, and others say " + std::to_string(clique->ranks));
  if (clique->members[static_cast<std::size_t>(rank)] != nullptr)
    die("ncclCommInitRank: two ranks say that they are rank " + std::to_string(rank));
  if (folder_of_boards()) {
    if (clique->board != nullptr)
      die("with CUDA_ON_HOST_RANKS each rank is a process, and this one would be two");
    clique->board = std::make_shared<Board>(name, rank, ranks, device);
  }
  ncclComm& comm = join(clique, rank, device, blocking);
  if (!blocking) {
    *handle = &comm;
    return ncclInProgress;
  }
  if (in_group()) {
    wait_at_end_of_group(comm, handle);
    return ncclSuccess;
  }
  const ncclResult_t status = await_members(comm, rendezvous_s);
  if (status == ncclInProgress)
    die("ncclCommInitRank: only " + std::to_string(clique->joined) + " of " +
        std::to_string(ranks) + " ranks came");
  if (status == ncclSuccess)
    *handle = &comm;
  else
    bury(comm);
  return status;
}

}  // namespace

Cliques& cliques() {
  static auto* const all = new Cliques;  // outlives threads and static objects
  return *all;
}

ncclComm& live(ncclComm_t comm) {
  const std::vector<ncclComm*>& all = cliques().live;
  if (std::find(all.begin(), all.end(), comm) == all.end())
    die("use of a communicator that was given back or never was");
  return *comm;
}

ncclResult_t ensure_ready(ncclComm& comm) {
  if (comm.error != ncclSuccess) return comm.error;
  if (comm.finalized) die("use of a communicator after ncclCommFinalize");
  if (comm.made && comm.to_launch.empty()) return ncclSuccess;
  comm.last_error =
      "Attempt to use communicator before the previous operation returned ncclSuccess";
  return ncclInvalidArgument;
}

bool is_idle(const ncclComm& comm) {
  return comm.to_launch.empty() &&
         std::all_of(comm.operations.begin(), comm.operations.end(), [](const auto& weak) {
           const OperationPointer operation = weak.lock();
           return operation == nullptr || operation->done;
         });
}

ncclResult_t await_members(ncclComm& comm, double seconds) {
  if (comm.made) return ncclSuccess;
  Clique& clique = *comm.clique;
  const auto came = [&] {
    if (clique.board != nullptr) look_for_members(clique);
    return clique.joined == clique.ranks || comm.error != ncclSuccess;
  };
  // A rank that has its turn with others asks again at its next turn.
  if (!came() && ((turns > 0 && !comm.blocking) || !wait_for_ranks(clique, came, seconds)))
    return ncclInProgress;
  if (comm.error != ncclSuccess) return comm.error;
  if (!clique.refusal.empty()) {
    comm.last_error = clique.refusal;
    comm.error = ncclInvalidUsage;
    return ncclInvalidUsage;
  }
  if (ranks_are_threads(clique)) {
    if (turns++ == 0) {
      enrol(&clique, comm.rank, clique.ranks);
      ++clique.enrolled;
      notify();
      const auto enrolled = [&] {
        return clique.enrolled == clique.ranks || comm.error != ncclSuccess;
      };
      // The last to come takes no part in the wait: it might be any.
      if (!enrolled() && !wait_on_host(enrolled, rendezvous_s))
        die("a rank came to a communicator and went");
    }
  }
  comm.made = true;
  if (clique.board != nullptr) keep_going();
  return ncclSuccess;
}

void bury(ncclComm& comm) {
  Cliques& all = cliques();
  Clique& clique = *comm.clique;
  if (comm.made && ranks_are_threads(clique) && makers()[&comm] == std::this_thread::get_id() &&
      --turns == 0)
    leave();
  comm.made = false;
  std::erase(all.live, &comm);
  const bool last = std::none_of(all.live.begin(), all.live.end(),
                                 [&](const ncclComm* c) { return c->clique.get() == &clique; });
  clique.board = nullptr;
  if (last) all.by_id.erase(clique.id);
}

}  // namespace cuda_on_host::nccl

using namespace cuda_on_host;        // NOLINT: what follows is NCCL's
using namespace cuda_on_host::nccl;  // NOLINT

namespace {

ncclResult_t fault(const ApiCall& call) {
  return static_cast<ncclResult_t>(call.injected());
}

bool is_valid(const ncclConfig_t* config) {
  return config == nullptr || (config->size == sizeof(ncclConfig_t) && config->magic == 0xcafebeef);
}

bool blocks(const ncclConfig_t* config, bool otherwise) {
  if (config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT) return otherwise;
  return config->blocking != 0;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const ApiCall call("ncclGetUniqueId");
  if (call.injected() != 0) return fault(call);
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "double-%d-%d", static_cast<int>(getpid()),
                ++cliques().ids);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const ApiCall call("ncclCommInitRank");
  if (call.injected() != 0) return fault(call);
  return init(comm, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const ApiCall call("ncclCommInitRankConfig");
  if (call.injected() != 0) return fault(call);
  if (!is_valid(config)) return ncclInvalidArgument;
  return init(comm, ranks, id, rank, blocks(config, true));
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices) {
  const ApiCall call("ncclCommInitAll");
  if (call.injected() != 0) return fault(call);
  if (ranks < 1) return ncclInvalidArgument;
  const auto clique = new_clique("all-" + std::to_string(++cliques().ids), ranks);
  std::vector<ncclComm*> made;
  for (int rank = 0; rank < ranks; ++rank)
    made.push_back(&join(clique, rank, devices == nullptr ? rank : devices[rank], true));
  for (int rank = 0; rank < ranks; ++rank) {
    ncclComm& comm = *made[static_cast<std::size_t>(rank)];
    comm.made = clique->refusal.empty();
    comms[rank] = comm.made ? &comm : nullptr;
    if (!comm.made) bury(comm);
  }
  return clique->refusal.empty() ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int colour, int key, ncclComm_t* handle,
                           ncclConfig_t* config) {
  const ApiCall call("ncclCommSplit");
  if (call.injected() != 0) return fault(call);
  ncclComm& comm = live(parent);
  if (const ncclResult_t status = ensure_ready(comm); status != ncclSuccess) return status;
  if (!is_valid(config) || colour < NCCL_SPLIT_NOCOLOR) return ncclInvalidArgument;
  if (in_group()) die("the double of libnccl splits no communicator within a group");
  if (!blocks(config, comm.blocking)) die("the double of libnccl splits only where it may block");
  *handle = nullptr;
  const std::shared_ptr<Board> board = comm.clique->board;
  const std::string name = "split-" + std::to_string(comm.splits);
  Clique::Split& split = comm.clique->splits[comm.splits++];
  split.colours[comm.rank] = {colour, key};
  if (board != nullptr) board->tell(name, comm.rank, colour, key);
  notify();
  const auto all_called = [&] {
    for (int rank = 0; board != nullptr && rank < comm.clique->ranks; ++rank)
      if (const auto of_rank = board->told(name, rank)) split.colours[rank] = *of_rank;
    return static_cast<int>(split.colours.size()) == comm.clique->ranks;
  };
  if (!wait_for_ranks(*comm.clique, all_called, rendezvous_s))
    die("ncclCommSplit: only " + std::to_string(split.colours.size()) + " of " +
        std::to_string(comm.clique->ranks) + " ranks came");
  if (colour == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::vector<std::pair<int, int>> members;  // key and rank
  for (const auto& [rank, chosen] : split.colours) {
    if (chosen.first == colour) members.emplace_back(chosen.second, rank);
  }
  std::sort(members.begin(), members.end());
  std::shared_ptr<Clique>& clique = split.made[colour];
  if (clique == nullptr)
    clique =
        new_clique("split-" + std::to_string(++cliques().ids), static_cast<int>(members.size()));
  const auto at = std::find(members.begin(), members.end(), std::pair(key, comm.rank));
  const int rank = static_cast<int>(at - members.begin());
  if (board != nullptr)
    clique->board =
        std::make_shared<Board>(comm.clique->id + "-" + name + "-" + std::to_string(colour), rank,
                                clique->ranks, comm.device);
  ncclComm& made = join(clique, rank, comm.device, true);
  if (await_members(made, rendezvous_s) == ncclInProgress)
    die("ncclCommSplit: a rank of the new communicator did not come");
  *handle = &made;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  const ApiCall call("ncclCommFinalize");
  ncclComm& comm = live(handle);
  if (const ncclResult_t status = ensure_ready(comm); status != ncclSuccess) return status;
  const auto own = [&] {
    std::vector<Operation*> wanted;
    for (const auto& weak : comm.operations) {
      if (const OperationPointer operation = weak.lock()) wanted.push_back(operation.get());
    }
    return wanted;
  };
  wait([&] { return is_idle(comm); }, own, "ncclCommFinalize");
  comm.finalized = true;
  return call.injected() != 0 ? fault(call) : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  const ApiCall call("ncclCommDestroy");
  if (handle == nullptr) return ncclSuccess;
  ncclComm& comm = live(handle);
  if (comm.error == ncclSuccess && !is_idle(comm))
    die("ncclCommDestroy of rank " + std::to_string(comm.rank) +
        " while its operations are under way");
  if (comm.error != ncclSuccess) drop(comm);
  bury(comm);
  return fault(call);
}

// Aborts of one group mark all communicators before any of them gives back what it has, as every
// abort does here: nothing that it does waits.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const ApiCall call("ncclCommAbort");
  if (handle == nullptr) return ncclSuccess;
  ncclComm& comm = live(handle);
  comm.aborted = true;
  comm.to_launch.clear();
  for (ncclComm* peer : comm.clique->members) {
    const std::vector<ncclComm*>& all = cliques().live;
    if (peer == &comm || std::find(all.begin(), all.end(), peer) == all.end()) continue;
    if (!cliques().hides_aborts && peer->error == ncclSuccess) {
      peer->error = ncclRemoteError;
      peer->last_error = "rank " + std::to_string(comm.rank) + " has left";
    }
  }
  drop(comm);
  if (comm.clique->board != nullptr) comm.clique->board->abort();
  bury(comm);
  notify();
  return fault(call);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  const ApiCall call("ncclCommGetAsyncError");
  if (call.injected() != 0) return fault(call);
  ncclComm& comm = live(handle);
  if (comm.clique->board != nullptr && comm.error == ncclSuccess) {
    const Board::Lost lost = comm.clique->board->lost();
    if (lost.rank >= 0 && (lost.died || !cliques().hides_aborts)) {
      comm.error = ncclRemoteError;
      comm.last_error =
          "rank " + std::to_string(lost.rank) + (lost.died ? " has died" : " has left");
    }
  }
  *error = comm.error;
  if (comm.error != ncclSuccess) return ncclSuccess;
  if (!comm.made) {
    *error = await_members(comm, 0.02);
    return ncclSuccess;
  }
  if (comm.to_launch.empty()) return ncclSuccess;
  if (--comm.polls_left > 0) {
    *error = ncclInProgress;
    return ncclSuccess;
  }
  const auto launches = std::move(comm.to_launch);
  comm.to_launch.clear();
  for (const auto& launch : launches) launch();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const ApiCall call("ncclCommCount");
  if (call.injected() != 0) return fault(call);
  *count = live(comm).clique->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  const ApiCall call("ncclCommCuDevice");
  if (call.injected() != 0) return fault(call);
  *device = live(comm).device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  const ApiCall call("ncclCommUserRank");
  if (call.injected() != 0) return fault(call);
  *rank = live(comm).rank;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

// The real library has one text for all communicators, and so has the double for a null handle.
const char* ncclGetLastError(ncclComm_t handle) {
  const ApiCall call("ncclGetLastError");
  static thread_local std::string text;
  text.clear();
  for (const auto& comm : cliques().all) {
    if ((handle == nullptr || comm.get() == handle) && !comm->last_error.empty())
      text = comm->last_error;
  }
  return text.c_str();
}

// For nccl_control.h.
void cuda_on_host_nccl_reset() {
  const ApiCall call("cuda_on_host_nccl_reset");
  Cliques& all = cliques();
  const int ids = all.ids;
  all = Cliques();
  all.ids = ids;
  makers().clear();
  buffered_bytes() = 0;
  turns = 0;
}
void cuda_on_host_nccl_buffer_sends(std::size_t bytes) {
  const ApiCall call("cuda_on_host_nccl_buffer_sends");
  buffered_bytes() = bytes;
}
void cuda_on_host_nccl_hide_aborts(int hides) {
  const ApiCall call("cuda_on_host_nccl_hide_aborts");
  cliques().hides_aborts = hides != 0;
}
void cuda_on_host_nccl_fail_rank(int rank, int error) {
  const ApiCall call("cuda_on_host_nccl_fail_rank");
  for (ncclComm* comm : cliques().live) {
    if (comm->rank != rank || comm->error != ncclSuccess) continue;
    comm->error = static_cast<ncclResult_t>(error);
    comm->last_error = "the test made rank " + std::to_string(rank) + " fail";
  }
}
int cuda_on_host_nccl_live() {
  const ApiCall call("cuda_on_host_nccl_live");
  return static_cast<int>(cliques().live.size());
}

}  // extern "C"
