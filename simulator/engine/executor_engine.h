// The executor engine: times what our executor does with a schedule
// (runtime/collective/executor.h), message by message, from the same program
// (models/collective/program.h).
//
// The other engines take a step's message as a whole (engine.h). The executor cuts it into segments
// and sends each on as soon as what it depends on has landed, so that latencies hide behind
// transfers. Semantics, in place of 1 to 3 there; 4 and 5 hold, but for whole bytes:
//  1. A rank lands what it receives in the order of its program, and issues sends as far as the
//     program lets it once each has landed. It does one thing at a time: a send costs it the
//     transport's message gap, and a reduction gamma for each byte.
//  2. Messages from one rank to another share one connection: they leave it one after the other.
//     A message arrives alpha after its last byte has left.
//  3. Connections share links max-min fairly, also those of several collectives in flight.
//  4. A rank is done when it has landed everything and issued everything.
//
// COST. Every rank is followed: O(messages x log(messages in flight)), and for each change of rates
// what max_min.h says. For tens of ranks, not thousands.
//
// Not thread-safe: calls change the engine's state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/shared_links.h"

namespace paceline::simulator {

class ExecutorEngine final : public SharedLinkEngine {
 public:
  // For schedules over the same ranks, at least one. Needs cost.transport. Keeps no reference.
  ExecutorEngine(std::span<const models::Schedule> schedules, const CommunicationCost& cost);
  ~ExecutorEngine() override;

  Completion completion(int schedule, Bytes bucket) override;
  Completion completion(int schedule, Bytes bucket, std::span<const Seconds> ready) override;
  void run(const std::function<void(Launcher&)>& begin, const Finished& finished) override;

  // Messages that were followed, since the engine was made.
  [[nodiscard]] std::int64_t messages() const;

 private:
  class Simulation;
  std::unique_ptr<Simulation> simulation_;
};

// Whether the schedule is small enough for it: up to 4 million messages for a large bucket.
[[nodiscard]] bool suits_executor_engine(const models::Schedule& schedule);

}  // namespace paceline::simulator
