// What communicators of the double of libnccl are, and how their operations meet.
//
// A clique is what the ranks of one communicator share. A call of ncclSend, ncclRecv or of a
// collective is a part; the parts of one group on one stream are one operation of that stream. Parts
// match by their order of issue: the k-th send from a to b and the k-th receive of b from a, or the
// k-th collectives of all ranks. A part is active while its operation is at the head of its stream.
// An operation runs once all its parts can be completed:
//   - a send, when its receive is active (rendezvous), or at once where it is no larger than what is
//     buffered (nccl_control.h);
//   - a receive, when its send is active or was buffered;
//   - a collective, when those of all ranks are active. The first to run computes for all.
// Two parts that match and differ in count, type, kind, operator or root end the test, with both in
// words. The real library would hang or corrupt memory.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::nccl {

enum class Kind { send, receive, all_reduce, reduce, broadcast, reduce_scatter, all_gather };

class Board;
struct Part;
using PartPointer = std::shared_ptr<Part>;

// Parts by their number.
using Parts = std::map<std::uint64_t, PartPointer>;

struct Clique {
  std::string id;
  int ranks = 0;
  std::vector<ncclComm*> members;  // by rank; null before they come and after they are gone
  int joined = 0;
  int enrolled = 0;     // ranks that have taken their place among those that have turns
  std::string refusal;  // why it cannot be made; empty if it can
  // Where ranks are processes (board.h). Members of other processes then stand for their ranks alone.
  std::shared_ptr<Board> board;

  std::map<std::pair<int, int>, Parts> sends;     // from, to
  std::map<std::pair<int, int>, Parts> receives;  // from, to
  std::map<int, Parts> collectives;               // by rank
  std::map<std::pair<int, int>, std::uint64_t> sends_issued;
  std::map<std::pair<int, int>, std::uint64_t> receives_issued;
  std::map<int, std::uint64_t> collectives_issued;

  // Calls of ncclCommSplit that not all ranks have made yet, by their number.
  struct Split {
    std::map<int, std::pair<int, int>> colours;   // of rank: colour and key
    std::map<int, std::shared_ptr<Clique>> made;  // by colour
  };
  std::map<std::uint64_t, Split> splits;
};

struct Part {
  Kind kind = Kind::send;
  ncclComm* comm = nullptr;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int peer = -1;  // or the root

  // Set when it is issued.
  std::uint64_t number = 0;
  std::weak_ptr<Operation> owner = {};
  bool active = false;
  bool done = false;
  bool is_remote = false;  // of another process, found on the board
  bool refused = false;    // a mismatch was reported
  bool buffered = false;   // a send whose bytes are in `mail`
  std::vector<std::byte> mail = {};
};

[[nodiscard]] std::size_t bytes_of(ncclDataType_t type);
// "rank 0 send #5 of 100 float32 to rank 1"
[[nodiscard]] std::string text_of(const Part& part);
// One operation of the stream for parts of one communicator.
void enqueue_parts(cudaStream_t stream, const std::vector<Part>& parts);
// Lets the operations of the communicator end without running.
void drop(ncclComm& comm);

// Sends of at most this many bytes complete at once.
[[nodiscard]] std::size_t& buffered_bytes();

// out[i] = the reduction of in[0][i], in[1][i] and so on, in that order. Sums of all types but
// integers are in FP32 (FP64 in FP64) and rounded to the type after each addition, as on the hops of
// a ring. ncclAvg multiplies each number by 1 / n first, and rounds.
void reduce(const std::vector<const std::byte*>& in, std::byte* out, std::size_t count,
            ncclDataType_t type, ncclRedOp_t op);

}  // namespace cuda_on_host::nccl

// A rank's handle on a clique.
struct ncclComm {
  std::shared_ptr<cuda_on_host::nccl::Clique> clique;
  int rank = 0;
  int device = 0;
  bool blocking = true;
  bool made = false;  // all ranks have come
  bool finalized = false;
  bool aborted = false;
  ncclResult_t error = ncclSuccess;  // asynchronous; stays
  std::string last_error;

  // Not blocking: what a group has left to do until it is polled so often.
  std::vector<std::function<void()>> to_launch;
  int polls_left = 0;
  std::uint64_t splits = 0;
  std::vector<std::weak_ptr<cuda_on_host::Operation>> operations;
};
