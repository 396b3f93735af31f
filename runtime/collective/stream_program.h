// A rank's part of a schedule for a library whose transfers are operations of a stream, such as
// NCCL: all of it is given to two streams of a device at once, and no host is needed in between.
//
// One stream, the lane of transfers, runs exchanges: what the rank sends and receives at one time,
// as one group. The other, the lane of sums, adds what was received to the bucket. Events order the
// two. A program is the list of what the host issues, in its order: exchanges, sums, records of
// events and waits for them. It is a value without CUDA: tests read it, and take waits out.
//
// Exchanges. A transfer is cut into messages, as in rank_program.h. An exchange has all messages of
// one turn (a step of the schedule, and the number of the message within its transfer) that the rank
// sends or receives. Sums of one turn run while the messages of the next travel: what is added lands
// in rooms of scratch, of which there are twice as many as one turn needs, so that a turn waits for
// sums of the turn before the last.
//
// No deadlock, however late a send completes: take of all ranks' exchanges that are not done one of
// the least turn. Every earlier exchange is done, on this rank and on its peers, so each of its peers
// has its own exchange of this turn at the head of the lane, or waits there for sums. Sums wait only
// for exchanges of earlier turns, which are done, and for sums before them. So the exchanges of this
// turn all come to run, and a group moves its messages at the same time: a message's sender and its
// receiver have it in the same turn. Nothing of this needs a send that completes before its receive
// begins, so it holds for any limit of eager sends, and where sends complete early all the more. Two
// messages between the same ranks in one turn are issued in the same order by both.
//
// Order of accesses: a rank's memory is touched by its own two lanes only, so no order between ranks
// is used. Waits are those that follow from three rules, and none that others imply (tests take out
// each one and find two accesses in no order):
//   - a sum runs after the exchange that brought what it adds, and after those of its step that send
//     what stood there before;
//   - an exchange runs after the sums whose result it sends or replaces;
//   - an exchange that receives into a room runs after the sum that read the room before.
//
// Arithmetic is that of executor.h, piece by piece: the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "models/collective/rank_program.h"
#include "models/collective/schedule.h"
#include "runtime/device/device.h"

namespace paceline::runtime {

struct StreamProgram {
  enum class Array { bucket, scratch, wide };  // wide: sums in FP32
  enum class Lane { transfers, sums };

  // Elements of one of the arrays.
  struct Place {
    Array array = Array::bucket;
    models::Elements span;
  };
  struct Message {
    int peer = 0;
    Place place;
  };
  // What is sent and received at one time.
  struct Exchange {
    std::vector<Message> sends;
    std::vector<Message> receives;
  };
  // target = source (Cast) or target = target + source (Add), on the lane of sums.
  struct Sum {
    bool casts = false;
    Place source;
    Place target;
  };
  // Events are numbered from 0; a number is used again when nobody waits for it any more. Event 0 is
  // at first that of the bucket's readiness.
  struct Record {
    Lane lane = Lane::transfers;
    int event = 0;
  };
  struct Wait {
    Lane lane = Lane::transfers;
    int event = 0;
  };
  using Instruction = std::variant<Exchange, Sum, Record, Wait>;

  // The first is the wait of the transfers for event 0. At the end the transfers have waited for all
  // sums: what is behind them on their lane sees the result.
  std::vector<Instruction> instructions;
  int events = 1;
  std::int64_t scratch_elements = 0;  // of the wire type
  std::int64_t wide_elements = 0;     // in FP32
};

// Compiles the part of `rank`, 0 <= rank < schedule.ranks(), for a bucket of `elements` >= 0, cut
// into messages of at most `message_elements` >= 1. All ranks cut alike. O(m log m) time for m
// messages.
[[nodiscard]] StreamProgram compile_for_streams(const models::Schedule& schedule, int rank,
                                                std::int64_t elements, models::WireType wire,
                                                std::int64_t message_elements);

// The ranks that the program sends to or receives from, in ascending order.
[[nodiscard]] std::vector<int> peers(const StreamProgram& program);

// What a program runs on.
struct StreamArrays {
  ArrayView bucket;
  ArrayView scratch;  // of the wire type
  ArrayView wide;     // in FP32

  [[nodiscard]] ArrayView at(const StreamProgram::Place& place) const;
};

struct StreamLanes {
  Stream& transfers;
  Stream& sums;
};

// Issues the program behind what was started on the lanes before. `exchange` puts a group of
// messages on the lane of transfers. `events` has room for program.events tokens, and event 0 is
// set: the bucket's readiness. Returns when all is issued, and waits for nothing but a readiness
// that the device does not know (Stream::wait_for).
void issue(const StreamProgram& program, const StreamArrays& arrays, const StreamLanes& lanes,
           std::span<Token> events,
           const std::function<void(const StreamProgram::Exchange&)>& exchange);

}  // namespace paceline::runtime
