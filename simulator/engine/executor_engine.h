// The executor engine: times what our executor does with a schedule
// (runtime/collective/executor.h), message by message, from the same program
// (models/collective/program.h).
//
// The other engines take a step's message as a whole (engine.h). The executor cuts it into segments
// and sends each on as soon as what it depends on has landed, so that latencies hide behind
// transfers. Semantics, in place of 1 to 3 and 5 there:
//  1. A rank lands what it receives in the order of its program, and issues sends as far as the
//     program lets it once each has landed. It does one thing at a time: a send costs it the
//     transport's message gap, and a reduction gamma for each byte.
//  2. What a rank sends leaves it by one queue: message after message, or in turns of a quantum for
//     each receiver, as the transport was calibrated (TransportCost::is_fair).
//  3. Links (routes.h) are queues too: each carries the quanta that come to it in the order in
//     which they left their ranks, one after the other, cut-through. Nothing is held back for a
//     busy link further on: queues there have no bounds. A message arrives alpha after its last
//     byte has passed the last link: between nodes that of a message alone or of one among many,
//     as many as are on their way then (TransportCost). There each has a header, too.
//  4. A rank is done when it has landed everything and issued everything.
//  5. Parts are of whole elements: of a bucket with fewer elements than parts, some are empty, and
//     an empty message is none.
//
// So links are FIFO, and not max-min fair as in the flow engine: a message that left earlier is not
// slowed by one that leaves later. Where the program lands in order, that matters: halving-doubling
// of 4 ranks takes 20 % longer when links are shared evenly.
//
// COST. Every rank is followed: O(bytes sent / quantum x links of a way), the quantum being 16 KiB
// or a 1,024th of the bucket, and O(messages x log(messages in flight)). For tens of ranks, not
// thousands.
//
// Not thread-safe: calls change the engine's state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/shared_links.h"

namespace paceline::simulator {

class ExecutorEngine final : public SharedLinkEngine {
 public:
  // For schedules over the same ranks, at least one, of buckets of elements of so many bytes. Needs
  // cost.transport. Keeps no reference.
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
  // When each rank is done with each, [collective][rank]. In the order in which ranks start them;
  // rank r lets each start `late[r]` after its time, if that is not empty.
  [[nodiscard]] std::vector<std::vector<Seconds>> in_order(std::span<const Queued> collectives,
                                                           std::span<const Seconds> late = {});

  // Messages that were followed, since the engine was made.
  [[nodiscard]] std::int64_t messages() const;

 private:
  class Simulation;
  std::unique_ptr<Simulation> simulation_;
};

// Whether the schedule is small enough for it: up to 4 million messages for a large bucket.
[[nodiscard]] bool suits_executor_engine(const models::Schedule& schedule);

}  // namespace paceline::simulator
