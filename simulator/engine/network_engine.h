// The contract of the engines that follow every message over the network: what is launched, who
// launches, and what all engines agree on. It states no rule for links that several messages use
// at once. Each engine states its own, in its own header: flow_engine.h, simgrid_engine.h,
// executor_engine.h. The step engine (step_engine.h) times one collective by itself, and shares
// Completion and the semantics below.
//
// SEMANTICS that all engines share:
//  1. A message leaves when its sender holds what it carries: when all that the steps before make
//     the sender receive and reduce there has been received and reduced.
//  2. Each message passes the links that routes.h names for its path. Links are full duplex: the
//     two directions do not share bandwidth.
//  3. alpha of the path is latency: a message pays it once, and it occupies no link.
//  4. A reduction takes the reducing rank gamma for each byte. A rank reduces one message after
//     another.
//  5. A rank is done when all that it receives has arrived and is reduced, and when its sends are
//     over as the engine defines that. A collective is done when its last rank is done.
// Times count from the start of the call.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "models/base/to_size.h"
#include "models/base/units.h"

namespace paceline::simulator {

// When each rank is done with a collective. Where ranks in equal positions (equivalence.h) are
// computed once, only the positions are stored.
struct Completion {
  std::vector<Seconds> finish;  // rank r finishes at finish[r % finish.size()]; never empty

  [[nodiscard]] Seconds of(int rank) const { return finish[to_size(rank) % finish.size()]; }
  [[nodiscard]] Seconds last() const { return *std::max_element(finish.begin(), finish.end()); }
};

// A collective that all ranks are ready for at the same time.
struct Launch {
  int schedule = 0;  // index among the schedules that the engine was made for
  Bytes bytes;       // of the bucket
  Seconds at;        // not before the time of the call that launches it
};

// Accepts collectives, under identifiers of the caller's choice.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void launch(int id, const Launch& collective) = 0;
};

// Called when the last rank is done with collective `id`. May launch more.
using Finished = std::function<void(int id, Seconds at, Launcher& launcher)>;

// An engine that follows every message of one collective, or of several that are in flight at the
// same time and contend for links.
class NetworkEngine {
 public:
  virtual ~NetworkEngine() = default;

  // Times one collective alone on the cluster, with all ranks ready at 0.
  [[nodiscard]] virtual Completion completion(int schedule, Bytes bucket) = 0;
  // The same with rank r ready at ready[r]. Needs one ready time for each rank.
  [[nodiscard]] virtual Completion completion(int schedule, Bytes bucket,
                                              std::span<const Seconds> ready) = 0;
  // Simulates until no collective is left. `begin` launches the first ones, at 0 or later.
  // `finished` is called for each collective, in order of time.
  virtual void run(const std::function<void(Launcher&)>& begin, const Finished& finished) = 0;
};

}  // namespace paceline::simulator
