// The flow engine: every message is a flow, and flows share links max-min fairly. It has the
// semantics of network_engine.h and the synchronous steps of step_engine.h.
//
//   SHARING. The rates of all flows are max-min fair at every moment: no flow can have more without
//   taking from one that has no more than it (Bertsekas & Gallager 1992, 6.5.2). A link that is not
//   shared (Routes::is_shared) bounds every flow by itself.
//
// It is the engine for shared links: ranks behind one NIC, an oversubscribed fabric, buckets that
// are in flight together, ranks that are not ready at the same time. Where no link is ever
// shared it equals the step engine.
//
// COST. Ranks in equal positions are collapsed, and alike messages of a position are one flow, as in
// the step engine; what is left of positions that do the same is one, too (alike_positions.h). Each such flow has two events of O(log messages in flight), and each change of
// rates costs what max_min.h says. On a cluster whose links are shared that is 0.1 to 1.3 us for a
// message (November 2026, a 2-core EPYC VM); effort.h tells beforehand how many there are.
// A run of alike steps is cut short as soon as the state after a step is that after the step
// before, moved by the time between them, while nothing else is in flight: later steps then
// take as long. Ring all-reduces over any number of ranks cost O(g^2).
//
// An engine is not thread-safe: calls change its state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/network_engine.h"

namespace paceline::simulator {

struct FlowPrograms;  // flow_program.h

class FlowEngine final : public NetworkEngine {
 public:
  // Follows these schedules, at least one, all over the same ranks. Keeps no reference to anything.
  // Throws TooManyMessages where it would have to follow more than 1 million messages.
  FlowEngine(std::span<const models::Schedule> schedules, const CommunicationCost& cost,
             Collapse collapse = Collapse::equal_positions);
  // Schedules that were prepared on a cluster with the same links, with the figures of `routes`; each
  // byte takes gamma_s to reduce.
  FlowEngine(std::shared_ptr<const FlowPrograms> programs, const Routes& routes, double gamma_s);
  ~FlowEngine() override;

  Completion completion(int schedule, Bytes bucket) override;
  // Needs Collapse::none.
  Completion completion(int schedule, Bytes bucket, std::span<const Seconds> ready) override;
  void run(const std::function<void(Launcher&)>& begin, const Finished& finished) override;

  // The number of positions that are followed in place of all ranks.
  [[nodiscard]] int positions() const;
  // The number of flows that were followed since the engine was made.
  [[nodiscard]] std::int64_t flows() const;

 private:
  class Simulation;
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace paceline::simulator
