// The executor engine: times what our executor does with a schedule
// (runtime/collective/executor.h), message by message, from the same program that the executor runs
// (models/collective/rank_program.h).
//
// It has the semantics of network_engine.h, but not the synchronous steps of step_engine.h: the
// executor cuts what a rank sends in a step into segments, and sends each on as soon as what it
// depends on has landed, so that latencies hide behind transfers. It adds:
//  1. A rank lands what it receives in the order of its program. Once a receive has landed, the
//     rank issues the sends that the program allows then. It does one thing at a time: issuing a
//     send takes it the transport's message gap, and a reduction takes gamma for each byte.
//  2. A rank is done when it has landed everything and issued everything.
//  3. Parts are of whole elements. Of a bucket with fewer elements than parts some parts are empty,
//     and an empty part is not sent.
//  4. A message arrives alpha after its last byte has passed the last link of its path. Between
//     nodes, alpha depends on how many messages are on their way (TransportCost), and each message
//     has a header of TransportCost::message_header bytes.
//
//   SHARING. Links are first-in-first-out queues. What a rank sends leaves it through one queue:
//   message after message, or in turns of one quantum for each receiver, as the transport was
//   calibrated (TransportCost::is_fair). Each link carries the quanta that reach it in the order in
//   which they left their ranks, one after the other, cut-through. Queues have no bounds: no link
//   waits for a busy one further on.
//
// Sharing is therefore not max-min fair, as it is in the flow engine: a message that left earlier
// is not slowed by one that leaves later. This matters where a program lands in order:
// halving-doubling over 4 ranks takes 20 % longer where links are shared evenly.
//
// COST. Every rank is followed, in O(bytes sent / quantum x links of a path) time, the quantum
// being the larger of 16 KiB and a 1,024th of the bucket, and O(messages x log(messages in flight))
// time. It is for tens of ranks, not for thousands.
//
// Not thread-safe: calls change the engine's state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/network_engine.h"

namespace paceline::simulator {

// Something that a rank does with a collective: it issues a send, or lands what it has received.
struct ExecutorAction {
  enum class Kind : char { send, landing };
  Kind kind = Kind::send;
  int peer = 0;  // the receiver of a send, or the sender of what lands
  Bytes bytes;   // of the message, without its header
  Seconds at;    // when the rank is through with it
};

class ExecutorEngine final : public NetworkEngine {
 public:
  // An engine for at least one schedule, all over the same ranks, and for buckets with elements of
  // `element_bytes`. Needs cost.transport. Keeps no reference to anything.
  ExecutorEngine(std::span<const models::Schedule> schedules, const CommunicationCost& cost,
                 std::int64_t element_bytes = 1);
  ~ExecutorEngine() override;

  Completion completion(int schedule, Bytes bucket) override;
  Completion completion(int schedule, Bytes bucket, std::span<const Seconds> ready) override;
  void run(const std::function<void(Launcher&)>& begin, const Finished& finished) override;

  // Collectives that wait for each other on their streams, as the executor runs them: each rank
  // starts one when its own part of the one before it on its stream is done, and not before `at`.
  struct Queued {
    Launch collective;
    int stream = 0;
  };
  // Times collectives, in the order in which ranks start them. Returns when each rank is done with
  // each, as [collective][rank]. If `late` is not empty, rank r starts each of them late[r] later.
  [[nodiscard]] std::vector<std::vector<Seconds>> in_order(std::span<const Queued> collectives,
                                                           std::span<const Seconds> late = {});

  // The sends and landings of each rank, in order, for one collective that is alone on the cluster
  // with all ranks ready at 0.
  [[nodiscard]] std::vector<std::vector<ExecutorAction>> actions(int schedule, Bytes bucket);

  // How many messages were followed since the engine was made.
  [[nodiscard]] std::int64_t messages() const;

 private:
  class Simulation;
  std::unique_ptr<Simulation> simulation_;
};

// Whether the schedule is small enough for it: up to 4 million messages for a large bucket.
[[nodiscard]] bool suits_executor_engine(const models::Schedule& schedule);

}  // namespace paceline::simulator
