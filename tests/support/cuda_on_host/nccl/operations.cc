// The functions of NCCL that move and reduce data, and groups of them.
#include <algorithm>
#include <utility>

#include "tests/support/cuda_on_host/nccl/communicators.h"

namespace cuda_on_host::nccl {
namespace {

struct Pending {
  cudaStream_t stream = nullptr;
  Part part;
};

// What a thread has put into the group that it has begun.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Pending> parts;
  std::vector<std::pair<ncclComm*, ncclComm_t*>> inits;
};
thread_local Group group;

ncclResult_t fault(const ApiCall& call) {
  return static_cast<ncclResult_t>(call.injected());
}

// Within a group, an error is that of the group's end, too.
ncclResult_t refuse(ncclResult_t error) {
  if (group.depth > 0 && error != ncclSuccess && group.error == ncclSuccess) group.error = error;
  return error;
}

// Parts of one communicator become one operation.
ncclResult_t launch(std::vector<Pending> pending) {
  ncclResult_t result = ncclSuccess;
  while (!pending.empty()) {
    ncclComm& comm = *pending.front().part.comm;
    const cudaStream_t stream = pending.front().stream;
    std::vector<Part> parts;
    for (const Pending& p : pending) {
      if (p.part.comm != &comm) continue;
      if (p.stream != stream)
        die("the double of libnccl has no group of one communicator on two streams");
      parts.push_back(p.part);
    }
    std::erase_if(pending, [&](const Pending& p) { return p.part.comm == &comm; });
    if (comm.blocking) {
      enqueue_parts(stream, parts);
      continue;
    }
    comm.to_launch.emplace_back([stream, parts] { enqueue_parts(stream, parts); });
    comm.polls_left = 1 + cliques().launches++ % 3;
    result = ncclInProgress;
  }
  return result;
}

ncclResult_t add(const char* name, ncclComm_t handle, cudaStream_t stream, Part part) {
  const ApiCall call(name);
  if (call.injected() != 0) return refuse(fault(call));
  if (handle == nullptr) return refuse(ncclInvalidArgument);
  ncclComm& comm = live(handle);
  if (const ncclResult_t status = ensure_ready(comm); status != ncclSuccess) return refuse(status);
  const bool has_peer = part.kind == Kind::send || part.kind == Kind::receive ||
                        part.kind == Kind::reduce || part.kind == Kind::broadcast;
  if (has_peer && (part.peer < 0 || part.peer >= comm.clique->ranks)) {
    comm.last_error = "invalid root or peer " + std::to_string(part.peer);
    return refuse(ncclInvalidArgument);
  }
  if (part.type < 0 || part.type >= ncclNumTypes || part.op < 0 || part.op >= ncclNumOps)
    return refuse(ncclInvalidArgument);
  part.comm = &comm;
  group.parts.push_back({stream, part});
  if (group.depth > 0) return ncclSuccess;
  return launch(std::exchange(group.parts, {}));
}

}  // namespace

bool in_group() {
  return group.depth > 0;
}

void wait_at_end_of_group(ncclComm& comm, ncclComm_t* handle) {
  group.inits.emplace_back(&comm, handle);
}

}  // namespace cuda_on_host::nccl

using namespace cuda_on_host;        // NOLINT: what follows is NCCL's
using namespace cuda_on_host::nccl;  // NOLINT

namespace {

const std::byte* bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}
std::byte* bytes(void* memory) {
  return static_cast<std::byte*>(memory);
}

Part collective(Kind kind, const void* in, void* out, std::size_t count, ncclDataType_t type,
                ncclRedOp_t op = ncclSum, int root = -1) {
  Part part;
  part.kind = kind;
  part.in = bytes(in);
  part.out = bytes(out);
  part.count = count;
  part.type = type;
  part.op = op;
  part.peer = root;
  return part;
}

}  // namespace

extern "C" {

ncclResult_t ncclGroupStart() {
  const ApiCall call("ncclGroupStart");
  if (call.injected() != 0) return fault(call);
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const ApiCall call("ncclGroupEnd");
  if (group.depth < 1) return ncclInvalidUsage;
  if (call.injected() != 0) refuse(fault(call));
  if (--group.depth > 0) return group.error;
  const ncclResult_t error = std::exchange(group.error, ncclSuccess);
  std::vector<Pending> parts = std::exchange(group.parts, {});
  const auto inits = std::exchange(group.inits, {});
  if (error != ncclSuccess) return error;
  for (const auto& [comm, handle] : inits) {
    const ncclResult_t status = await_members(*comm, rendezvous_s);
    if (status == ncclInProgress) die("ncclGroupEnd: a rank of a new communicator did not come");
    if (status != ncclSuccess) return status;
    *handle = comm;
  }
  return launch(std::move(parts));
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclSend", comm, stream,
             collective(Kind::send, in, nullptr, count, type, ncclSum, peer));
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add("ncclRecv", comm, stream,
             collective(Kind::receive, nullptr, out, count, type, ncclSum, peer));
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add("ncclAllReduce", comm, stream, collective(Kind::all_reduce, in, out, count, type, op));
}

ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return add("ncclReduce", comm, stream, collective(Kind::reduce, in, out, count, type, op, root));
}

ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add("ncclBroadcast", comm, stream,
             collective(Kind::broadcast, in, out, count, type, ncclSum, root));
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add("ncclReduceScatter", comm, stream,
             collective(Kind::reduce_scatter, in, out, count, type, op));
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return add("ncclAllGather", comm, stream, collective(Kind::all_gather, in, out, count, type));
}

}  // extern "C"
