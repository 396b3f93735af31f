// The SimGrid engine: the independent reference of the flow engine. It has the semantics of
// network_engine.h and the synchronous steps of step_engine.h.
//
//   SHARING. Max-min fair, as in flow_engine.h, solved by SimGrid 3.32 (Casanova, Giersch, Legrand,
//   Quinson, Suter 2014) instead of us.
//
// It reads schedules for itself, every rank and every message, and collapses nothing. SimGrid
// allows one engine in a process and writes to stderr. Each prediction therefore runs in a forked
// child (child_process.h), and predictions know nothing of each other.
//
// COST. A few milliseconds to start, and then one to a few microseconds for each message; more
// where many flows share links and end at different times. Practical up to a few hundred ranks.
// Settings, and why: docs/models.md, "Engines".
//
// Not thread-safe. Where Paceline was built without SimGrid, the constructor throws
// UnavailableError.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/network_engine.h"

namespace paceline::simulator {

class SimgridEngine : public NetworkEngine {
 public:
  // The most messages of all schedules together: SimGrid takes minutes for as many.
  static constexpr std::size_t most_messages = 4'000'000;
  // The largest bucket. SimGrid counts whole units, which are chosen as 2^-20 bytes.
  static constexpr Bytes most_bytes{1e13};

  [[nodiscard]] static bool is_built_in();
  // The version of the library that runs, as "3.32.0", or "none".
  [[nodiscard]] static const char* version();

  // All schedules are over the same ranks. Keeps no reference to what it is made from. Throws
  // InputError beyond most_messages, and what Routes throws.
  SimgridEngine(std::span<const models::Schedule> schedules, const CommunicationCost& cost);
  ~SimgridEngine() override;
  SimgridEngine(const SimgridEngine&) = delete;
  SimgridEngine& operator=(const SimgridEngine&) = delete;

  // Throw RunError if SimGrid fails, and InputError beyond most_bytes.
  [[nodiscard]] Completion completion(int schedule, Bytes bucket) override;
  [[nodiscard]] Completion completion(int schedule, Bytes bucket,
                                      std::span<const Seconds> ready) override;
  // `begin` and `finished` are called in the calling process.
  void run(const std::function<void(Launcher&)>& begin, const Finished& finished) override;

  // CPU time, in seconds, of SimGrid's Engine::run() in the last call: without starting the child,
  // reading schedules, or building the platform.
  [[nodiscard]] double run_cpu_s() const { return run_cpu_s_; }

 private:
  struct Model;  // schedules and links as the child reads them
  std::unique_ptr<const Model> model_;
  double run_cpu_s_ = 0;
};

}  // namespace paceline::simulator
