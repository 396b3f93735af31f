// The step engine: the time of one collective by max-plus arithmetic over the steps of its
// schedule. It adds to the semantics of network_engine.h:
//
//   SYNCHRONOUS STEPS (the flow engine, SimGrid and the GOAL export have them too).
//   1. A rank runs the steps of the schedule in order. It is done with a step when all messages
//      that it sends in the step have arrived, all that it receives have arrived, and what is to be
//      reduced is reduced. A rank without a message in a step is done with it at once.
//   2. A message of step s starts when its sender and its receiver are both done with step s - 1,
//      or, for the first step, ready. Nothing else is synchronised.
//   3. A message is not cut: it takes alpha of its path once, and then its bytes over the bandwidth
//      that it gets.
//   4. The reductions of a rank in one step start when the last message that it receives in the
//      step has arrived.
//   5. Chunks are fractions of the bucket, n/p bytes each, not rounded to elements.
//
// The engine is exact where no link carries two messages at the same time. Where messages of one
// step share a link it applies this rule:
//
//   SHARING. In a step, every link direction carries the sum of the bytes that the step's
//   messages send over it, and a message takes
//       alpha + max over the links of its path of (bytes on the link in this step / bandwidth).
//   Links are those of routes.h.
//
// For messages of equal size that start together this is max-min fair sharing. For unequal ones
// it is the time at which the last of them is through (work-conserving). The rule is for one step:
// messages of different steps, or of different buckets, do not slow each other. The flow engine
// (flow_engine.h) models that.
//
// COST. Ranks in equal positions are collapsed (equivalence.h), and a run of alike steps is cut
// short as soon as one of them adds the same time to every rank that takes part, for in a
// max-plus system all later ones then do. A ring over any number of ranks costs O(g^2), a
// hierarchical all-reduce O(k^2 + g^2), halving-doubling over 2^b ranks O(b g). Where ranks
// cannot be collapsed (a prime number of ranks, unequal ready times) the cost is O(transfers).
//
// Thread safety: const member functions may be called concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/network_engine.h"
#include "simulator/engine/path_classes.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/step_program.h"

namespace paceline::simulator {

class StepEngine {
 public:
  // Prepares a schedule on a cluster for any bucket size. Keeps no reference to either.
  // Throws TooManyMessages where that takes more than 8 million messages (100 MB): a schedule over
  // hundreds of thousands of ranks that cannot be collapsed.
  StepEngine(const models::Schedule& schedule, const CommunicationCost& cost,
             Collapse collapse = Collapse::equal_positions,
             std::int64_t most_messages = most_prepared_messages);
  // A schedule that was prepared on a cluster with the same links, with the figures of `routes`; each
  // byte takes gamma_s to reduce.
  StepEngine(std::shared_ptr<const StepProgram> program, const Routes& routes, double gamma_s);

  // All ranks ready at 0. O(prepared transfers); allocates three times.
  [[nodiscard]] Completion completion(Bytes bucket) const;
  [[nodiscard]] Seconds time(Bytes bucket) const { return completion(bucket).last(); }
  // Rank r ready at ready[r]. Needs Collapse::none and one ready time for each rank.
  [[nodiscard]] Completion completion(Bytes bucket, std::span<const Seconds> ready) const;

  // How many ranks stand for all.
  [[nodiscard]] int positions() const { return program_->parts->positions.count(); }
  // Messages that one evaluation looks at if no run is cut short.
  [[nodiscard]] std::size_t prepared_messages() const;

 private:
  StepEngine(const models::Schedule& schedule, const Routes& routes, double gamma_s,
             Collapse collapse, std::int64_t most_messages);

  // The times at which a position is done with the steps so far, and in the current step with what
  // it sends, with what it receives, and with all of it.
  struct Times {
    double finish_s = 0;
    double sent_s = 0;
    double received_s = 0;
    double done_s = 0;
  };
  // The state of a run of the program for one size of the bucket.
  struct Evaluation {
    std::vector<PathTime> ways;  // per_byte_s times the bytes that shares are of
    double reduction_s = 0;      // of as many bytes
    std::vector<Times> times;    // of each position
  };

  void evaluate(const StepProgram::Run& run, Evaluation& evaluation) const;
  void run_step(const StepProgram::Run& run, Evaluation& evaluation) const;
  [[nodiscard]] Completion run_all(Bytes bucket, std::span<const Seconds> ready) const;

  std::shared_ptr<const StepProgram> program_;
  std::vector<PathTime> ways_;  // of each kind of messages
  double gamma_s_;
};

}  // namespace paceline::simulator
