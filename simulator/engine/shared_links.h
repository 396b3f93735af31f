// The engines that follow every message through the links that it shares: the flow engine, and
// SimGrid as the independent reference. Semantics in engine.h; here several collectives may be
// in flight at the same time, and share links with each other.
#pragma once

#include <functional>
#include <span>

#include "models/base/units.h"
#include "simulator/engine/engine.h"

namespace paceline::simulator {

// A collective that all ranks are ready for at the same time.
struct Launch {
  int schedule = 0;  // of those that the engine was made for
  Bytes bytes;
  Seconds at;  // not before the time of the call that launches it
};

// Takes collectives under numbers of the caller's choice.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void launch(int id, const Launch& collective) = 0;
};

// `id` is done at its last rank. May launch more.
using Finished = std::function<void(int id, Seconds at, Launcher& launcher)>;

// Links are shared max-min fairly: rates are such that no flow can have more without taking from
// one that has no more than it (Bertsekas & Gallager 1992, 6.5.2). A link that is not shared
// (routes.h) bounds every flow by itself.
class SharedLinkEngine {
 public:
  virtual ~SharedLinkEngine() = default;

  // One collective, all ranks ready at 0, alone on the cluster.
  [[nodiscard]] virtual Completion completion(int schedule, Bytes bucket) = 0;
  // Rank r ready at ready[r]; one ready time for each rank.
  [[nodiscard]] virtual Completion completion(int schedule, Bytes bucket,
                                              std::span<const Seconds> ready) = 0;
  // `begin` launches the first collectives, at 0 or later; `finished` is called for each, in order
  // of time, until none is left.
  virtual void run(const std::function<void(Launcher&)>& begin, const Finished& finished) = 0;
};

}  // namespace paceline::simulator
