// The training loop: one rank's part of data-parallel training, the same on all.
//
// An iteration: forward and backward on this rank's batch, with the loss scaled by scale / ranks;
// the gradients summed over ranks by the plan; the update of the FP32 master weights unless a
// gradient overflowed; the working copies set from the masters, by the update itself where the
// network has it so. With double buffering the update uses the gradients of the iteration before. All
// ranks hold the same weights, bit by bit, at all times. With a plan of zero1 each rank keeps the
// optimizer's state of its own parts, updates these, and gathers the others' in FP32; checkpoints hold the
// whole state. With tensor parallelism (models/layout/tensor_part.h) neighbours train a part of the network each, on the
// same samples, and sum what their layers make; checkpoints hold the whole network. Batch-norm statistics are each rank's own, and evaluation uses their mean over ranks.
//
// A run is a function of the request and the number of ranks: interrupted anywhere and resumed from
// its checkpoint, it ends with the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/network/network.h"
#include "models/plan/plan.h"
#include "runtime/channel/endpoint.h"
#include "runtime/collective/collective_executor.h"
#include "runtime/device/device.h"
#include "runtime/exchange/recorder.h"
#include "runtime/network/trainable_network.h"
#include "runtime/training/data/dataset.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime {

// Who asks a job to stop before its end, by which signal. Where ranks are asked for different
// reasons, the last of the list counts.
enum class StopReason {
  none,
  interrupted,  // a user at a terminal (SIGINT)
  quit,         // likewise (SIGQUIT)
  hung_up,      // the terminal or the connection is gone (SIGHUP)
  warned,       // a scheduler will need the machine soon (SIGUSR1: Slurm's --signal=USR1@60)
  warned_2,     // likewise (SIGUSR2)
  terminated,   // a system needs the machine (SIGTERM)
};
inline constexpr std::size_t stop_reasons = 7;

struct TrainingRequest {
  const models::Network& network;
  const Dataset& dataset;
  const models::Plan& plan;
  const Recipe& recipe;
  int threads = 1;     // that compute, on this rank
  int workers = 1;     // that decode, on this rank
  bool replay = true;  // TrainableNetworkOptions::replay
  // Where rank 0 writes a checkpoint at the end of each epoch and, where it is not 0, after every
  // this many iterations. Empty: nowhere. A file that is there already must be a checkpoint of this
  // very job, or the one that `resume` names. The path is locked for as long as the training lasts
  // (checkpoint_lock.h).
  std::string checkpoint = {};
  std::int64_t checkpoint_every = 0;
  // Rank 0 reads it, and training goes on from there. Empty: from the start.
  std::string resume = {};
  // Ends after this many iterations of this run, as an interruption would: a checkpoint is written,
  // where there is a path. 0: at the end of the recipe.
  std::int64_t most_iterations = 0;
  // Asked after an iteration whether to stop; null on all ranks or on none. Where one rank is asked
  // to, all stop after the same iteration, with a checkpoint where there is a path. One rank asks
  // after each iteration; several agree about four times a second, or after each iteration that
  // takes longer (with double buffering after every 20th).
  std::function<StopReason()> stop = {};
  Recorder* recorder = nullptr;
};

struct IterationReport {
  std::int64_t epoch = 0;  // from 0
  std::int64_t batch = 0;  // within the epoch, from 0
  std::int64_t batches = 0;
  std::int64_t iteration = 0;  // from 0, through all epochs
  std::int64_t iterations = 0;
  int batch_per_rank = 0;
  double loss = 0;      // of this rank's batch
  double accuracy = 0;  // share, of this rank's batch
  double learning_rate = 0;
  double loss_scale = 1;
  std::int64_t skipped = 0;  // updates so far, for an overflow
  bool overflow = false;     // of the gradients whose update this iteration was due to make
  Seconds time;
  Seconds exposed;   // communication that this rank waited for
  Seconds input;     // waited for data
  PerSecond images;  // of all ranks, in this iteration
};

struct EpochReport {
  std::int64_t epoch = 0;
  // Figures cover the whole epoch, also where a part of it was before a resume.
  double training_loss = 0;      // mean over all ranks' samples
  double training_accuracy = 0;  // share
  double test_loss = 0;
  double test_accuracy = 0;
  double test_accuracy_5 = 0;
  std::int64_t skipped = 0;
  Seconds training_time;  // without evaluation
  Seconds exposed;        // of rank 0, in it
  Seconds input;
  PerSecond images;
};

// Told of what happens, on the rank that it is given to. May be null.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // Before the first iteration, once the job is checked and a checkpoint is read. The layers of
  // this rank compute in `arithmetic` (trainable_network.h).
  virtual void start(models::NumberType /*arithmetic*/) {}
  virtual void iteration(const IterationReport&) {}
  // One line for the user (TrainableNetwork::take_remark).
  virtual void remark(const std::string& /*line*/) {}
  virtual void epoch(const EpochReport&) {}
  virtual void checkpoint(const std::string& /*path*/, std::int64_t /*iteration*/) {}
};

struct TrainingOutcome {
  std::int64_t iterations = 0;            // of this run
  bool complete = true;                   // the recipe came to its end
  StopReason stopped = StopReason::none;  // why it did not, where it was asked to stop
  std::vector<EpochReport> epochs;
  std::vector<float> weights;  // FP32 masters, in backward order, of the whole network; with tensor
                               // parallelism only rank 0 has them
  std::vector<float> statistics;  // of this rank
};

// Throws InputError if ranks were started with different jobs, the data does not fit, the
// checkpoint to resume from is damaged or of another job, a file that is no checkpoint of this job
// stands where one is to be written, or another job writes its checkpoints there; RunError that names a rank that is gone, or a file that
// cannot be written.
TrainingOutcome train(const TrainingRequest& request, const Endpoint& endpoint,
                      TrainingObserver* observer = nullptr);

// What a rank trains with, where that is not the CPU and a transport. All outlive the training.
struct TrainingParts {
  Channel& channel;
  CollectiveExecutor& executor;
  Device& device;
  // Makes a network that computes on the device.
  std::function<std::unique_ptr<TrainableNetwork>(const models::Network&,
                                                  const TrainableNetworkOptions&)>
      make_network;
  // Prepares to make it; may be empty. All networks of the training are prepared before the first is
  // made and gradients travel.
  std::function<void(const models::Network&, const TrainableNetworkOptions&)> prepare = {};
};

// The same on another device.
TrainingOutcome train(const TrainingRequest& request, const TrainingParts& parts,
                      TrainingObserver* observer = nullptr);

}  // namespace paceline::runtime
