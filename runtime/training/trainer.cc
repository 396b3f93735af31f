// Tests: tests/runtime/loop/trainer_test.cc.
#include "runtime/training/trainer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/collective/algorithms.h"
#include "models/layout/tensor_part.h"
#include "runtime/channel/messages.h"
#include "runtime/collective/executor.h"
#include "runtime/device/copies.h"
#include "runtime/device/cpu_device.h"
#include "runtime/device/host_pages.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/exchange/tensor_sums.h"
#include "runtime/exchange/unit_weights.h"
#include "runtime/network/cpu_network.h"
#include "runtime/network/dropout.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/data/batch_memory.h"
#include "runtime/training/data/loader.h"
#include "runtime/training/data/order.h"
#include "runtime/training/epoch_sums.h"
#include "runtime/training/job_description.h"
#include "runtime/training/learning_rate.h"
#include "runtime/training/loss_scale.h"
#include "runtime/training/optimizer.h"
#include "runtime/training/shared_checkpoint.h"

namespace paceline::runtime {
namespace {

using Clock = Recorder::Clock;

// After this many iterations in a row whose loss is no number, the run is given up. A dynamic loss
// scale, which may take longer to come down, does not change the loss.
constexpr std::int64_t hopeless = 20;

Seconds since(Clock::time_point start) {
  return Seconds{std::chrono::duration<double>(Clock::now() - start).count()};
}

// How long ranks may run on before they agree on whether to stop: short beside the seconds that a
// system leaves between SIGTERM and SIGKILL, and long beside the messages of an agreement.
constexpr Seconds between_agreements{0.25};
// With double buffering an agreement waits for gradients that would have travelled beside the next
// iteration, so that it costs more.
constexpr double least_stride_double_buffered = 20;

constexpr std::int64_t not_recorded = -1;  // an iteration

std::vector<float> mean(const std::vector<std::vector<float>>& arrays) {
  std::vector<double> sums(arrays.front().size());
  for (const std::vector<float>& array : arrays)
    std::ranges::transform(array, sums, sums.begin(), std::plus<>());
  std::vector<float> means(sums.size());
  std::ranges::transform(sums, means.begin(), [&](double sum) {
    return static_cast<float>(sum / static_cast<double>(arrays.size()));
  });
  return means;
}

// Throws InputError where the weights alone are more than the memory of the machine; with those that layers read, the
// gradients and a moment of the optimizer, where ranks share nothing out.
void check_memory(const TrainingRequest& request, std::span<const ParameterPlace> places) {
  const double elements =
      places.empty() ? 0 : static_cast<double>(places.back().offset + places.back().elements);
  const int arrays = request.plan.uses<models::ShardUse>() != nullptr ? 1 : 4;
  const Bytes least{elements * sizeof(float) * arrays};
  const Bytes memory{static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(::sysconf(_SC_PAGESIZE))};
  if (least <= memory) return;
  throw InputError(fmt::format("training {} takes at least {} on each rank, and the machine has {}",
                               request.network.name(), to_text(least), to_text(memory)),
                   "choose a smaller network");
}

using Floats = std::vector<float>;

// Returns this rank's part of a network that ranks share out; nothing where each rank has all of it. Throws InputError
// where the part cannot be trained.
std::optional<models::TensorPart> part_of_rank(const TrainingRequest& request, const Device& device,
                                               int rank) {
  const int neighbours = request.plan.layout.tensor;
  if (neighbours == 1) return std::nullopt;
  if (device.fastest() != MemoryKind::host)
    throw InputError("tensor parallelism runs on CPUs only yet",
                     "leave --device out, or choose a plan without --tensor");
  if (request.recipe.optimizer.lars.enabled)
    throw InputError("LARS takes the norms of whole parameters, which ranks share out",
                     "choose a recipe without LARS");
  return models::tensor_part(request.network, neighbours, rank % neighbours);
}

class Training {
 public:
  Training(const TrainingRequest& request, const TrainingParts& parts, TrainingObserver* observer);
  TrainingOutcome run();

 private:
  // Batches of a whole epoch, and those of this one.
  [[nodiscard]] std::int64_t whole(const Phase& phase) const;
  [[nodiscard]] std::int64_t batches_in(std::int64_t epoch, const Phase& phase) const;
  [[nodiscard]] std::int64_t all_iterations() const;
  [[nodiscard]] TrainableNetworkOptions network_options(int batch) const;
  // The network that this rank computes.
  [[nodiscard]] const models::Network& network() const {
    return part_ ? part_->network : request_.network;
  }
  // The whole network's flat array, on rank 0, of what ranks have of it. All ranks call it.
  [[nodiscard]] std::vector<float> assembled(std::vector<float> own);
  // Picks this rank's elements from the whole network's flat array.
  [[nodiscard]] std::vector<float> own_part(std::vector<float> whole) const;
  [[nodiscard]] std::size_t whole_elements() const;
  // The sum over the ranks that have different parts of the gradients. Neighbours add it as they add what layers make, in
  // FP32, beside gradients that travel.
  [[nodiscard]] double sum_over_parts(double value);
  // The sum of the squares of the gradients of all ranks, each counted once.
  [[nodiscard]] double square_sum(const ConstArrayView& gradients);
  void prepare_networks();
  void make_network(int batch);
  void run_epoch(const Phase& phase);
  void iterate(Loader& loader, const Phase& phase);
  // Takes the next batch of the loader, and starts to bring it to the network.
  const Batch* bring_batch(Loader& loader);
  [[nodiscard]] LoaderOptions loader_options(int batch, const Augmentation& augmentation);
  // Waits for the oldest gradients and applies them.
  GradientExchange::Outcome update(double rate, double epoch);
  // The factor of the gradients, or a smaller one, with which their norm is within the recipe's clip_norm.
  [[nodiscard]] double clipped(double factor, const ConstArrayView& gradients);
  // Lets what travels arrive, without its update. The channel may be used after that.
  void settle();
  void report_epoch();
  // Asks all ranks whether one of them is to stop, if it is time for that.
  void agree_on_stop();
  // Seconds of training in this epoch, over all runs.
  [[nodiscard]] Seconds epoch_time() const { return sums_.time + since(epoch_start_); }
  // Sums over ranks of loss, correct, correct_5, labels on the test set.
  std::array<double, 4> evaluate();
  // The mean over the ranks.
  [[nodiscard]] std::vector<float> averaged(std::vector<float> values);
  void make_units();
  // Whether layers ask for their weights. On a GPU they run as graphs, and all weights are there before.
  [[nodiscard]] bool ask_for_weights() const {
    return units_ && parts_.device.fastest() == MemoryKind::host;
  }
  // Lets layers be recorded, and ask for their weights.
  void observe(LayerObserver* recorder);
  // The own parts of the weights have changed.
  void refresh_units();
  // Makes the whole array of weights valid on this rank, if it holds parts of it.
  void gather_weights();
  [[nodiscard]] Memory allocated(std::size_t floats) const;
  [[nodiscard]] std::vector<float> to_host(const ConstArrayView& array);
  void set_statistics(std::span<const float> values);
  // Gives the network the weights as they are when what was started is done.
  void give_weights();
  [[nodiscard]] bool is_finite(const ConstArrayView& values);
  void save();
  void restore();
  // A state of the optimizer for all elements of the flat arrays, whoever keeps it. All ranks call it.
  [[nodiscard]] std::vector<float> whole_state(const Optimizer::State& state);
  void set_whole_state(const Optimizer::State& state, const SharedCheckpoint& checkpoint);
  // Neighbours with tensor parallelism compute the same samples, which the first of them counts.
  [[nodiscard]] bool counts_samples() const { return !part_ || part_->rank == 0; }
  [[nodiscard]] bool double_buffered() const {
    return request_.plan.overlap == models::Overlap::double_buffered;
  }
  [[nodiscard]] bool enough() const {
    return stopped_ != StopReason::none ||
           (request_.most_iterations > 0 && done_ >= request_.most_iterations);
  }

  const TrainingRequest& request_;
  const Recipe& recipe_;
  const TrainingParts& parts_;
  Channel& channel_;  // used while no iteration is under way
  TrainingObserver* observer_;
  int rank_;
  int ranks_;
  // With tensor parallelism `neighbours_` ranks compute one sample together, each its part, and replicas are groups of
  // them. Else each rank is a replica.
  int neighbours_;
  int replica_;
  int replicas_;
  std::optional<models::TensorPart> part_;
  std::string description_;
  std::unique_ptr<CheckpointLock> checkpoint_lock_;  // of rank 0, while it may write checkpoints
  std::vector<Phase> phases_;
  std::vector<ParameterPlace> places_;
  Memory weights_memory_;
  ArrayView weights_;  // FP32 masters
  // The gradients of the iterations under way, in turn. A pending one is summed over ranks already.
  std::array<Memory, 2> gradients_memory_;
  std::array<ArrayView, 2> gradients_;
  std::array<double, 2> scales_ = {1, 1};  // that the gradients were computed with
  std::optional<std::size_t> pending_;     // arrived, and its update is due in the next iteration
  std::int64_t begun_ = 0;                 // iterations of this run whose gradients were begun
  // Pinned where the device has a use for that, so that it takes batches from there beside passes.
  BatchMemory batch_memory_{
      [this](std::size_t bytes) { return parts_.device.allocate(bytes, MemoryKind::pinned); }};
  std::optional<TensorSums> sums_of_layers_;
  std::optional<TensorShare> share_;
  std::unique_ptr<TrainableNetwork> network_;
  Token brought_;                // the batch that was brought last
  std::size_t next_labels_ = 0;  // of the batch that was brought for the next iteration, if one was
  std::optional<Optimizer> optimizer_;
  LossScaleState loss_scale_;
  std::optional<LayerRecorder> layers_;
  std::optional<UnitWeights>
      units_;  // of a sharded plan. What travels by the exchange outlives it.
  std::optional<GradientExchange> exchange_;
  // Updates run on it, and copies. It is the first to go, because it waits for what it runs.
  std::unique_ptr<Stream> stream_ = parts_.device.make_stream();
  Position position_;
  EpochSums sums_;  // of the epoch under way
  Clock::time_point epoch_start_;
  StopReason stopped_ = StopReason::none;  // the same on all ranks
  std::int64_t next_agreement_ = 0;        // in iterations of this run
  std::int64_t last_agreement_ = 0;
  Clock::time_point last_agreement_time_;
  std::int64_t iterations_ = 0;  // of the whole recipe
  std::int64_t done_ = 0;        // iterations of this run
  std::int64_t no_loss_ = 0;     // of them, the last ones whose loss is no number
  TrainingOutcome outcome_;
};

Training::Training(const TrainingRequest& request, const TrainingParts& parts,
                   TrainingObserver* observer)
    : request_(request),
      recipe_(request.recipe),
      parts_(parts),
      channel_(parts.channel),
      observer_(observer),
      rank_(channel_.rank()),
      ranks_(channel_.ranks()),
      neighbours_(request.plan.layout.tensor),
      replica_(rank_ / neighbours_),
      replicas_(ranks_ / neighbours_),
      part_(part_of_rank(request, parts.device, rank_)),
      description_(job_description(request, ranks_)),
      phases_(phases(request.recipe)),
      places_(parameter_places(network())) {
  check_memory(request, places_);
  check_same_job(channel_, description_ + run_description(request));
  exchange_.emplace(parts.executor, parts.device, request.plan, places_, request.recorder);
  const std::vector<float> weights = own_part(initial_weights(
      request.network, {.seed = recipe_.seed, .zero_last_gamma = recipe_.zero_last_gamma}));
  if (part_) {
    sums_of_layers_.emplace(*exchange_);
    share_.emplace(TensorShare{*part_, *sums_of_layers_});
  }
  weights_memory_ = allocated(weights.size());
  weights_ = weights_memory_.array(NumberType::fp32);
  copy_from_host(parts.device, *stream_, weights, weights_);
  for (std::size_t i = 0; i < (double_buffered() ? 2 : 1); ++i) {
    gradients_memory_[i] = allocated(weights.size());
    gradients_[i] = gradients_memory_[i].array(NumberType::fp32);
  }
  optimizer_.emplace(parts.device, recipe_.optimizer, places_, exchange_->own(), request.threads);
  loss_scale_ = initial_loss_scale(recipe_.loss_scale, recipe_.working_type(), request.plan.wire);
  if (request.recorder != nullptr) layers_.emplace(*request.recorder);
  if (exchange_->is_sharded() && replicas_ > 1) make_units();
}

void Training::make_units() {
  const std::vector<models::Layer>& layers = network().layers();
  units_.emplace(places_, request_.plan, *exchange_, weights_, layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (std::holds_alternative<models::TiedLinear>(layers[i].kind))
      units_->tie(static_cast<int>(i), layers[i].inputs.back());
  if (ask_for_weights()) {
    use_small_pages(weights_);
    use_small_pages(gradients_[0]);
  }
  units_->keep_own();
}

std::int64_t Training::whole(const Phase& phase) const {
  return batches_per_epoch(request_.dataset.size(Part::training), replicas_, phase.batch_per_rank);
}

std::int64_t Training::batches_in(std::int64_t epoch, const Phase& phase) const {
  if (whole(phase) == 0) {
    throw InputError(fmt::format("{} has {} training samples, and a step takes {} ({} ranks x {})",
                                 request_.dataset.name(), request_.dataset.size(Part::training),
                                 std::int64_t{replicas_} * phase.batch_per_rank, replicas_,
                                 phase.batch_per_rank),
                     "choose a smaller --batch");
  }
  const double share = std::min(1.0, recipe_.epochs - static_cast<double>(epoch));
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(whole(phase))), 1,
                                  whole(phase));
}

std::int64_t Training::all_iterations() const {
  std::int64_t sum = 0;
  for (const Phase& phase : phases_) {
    for (std::int64_t e = phase.first_epoch; e < phase.first_epoch + phase.epochs; ++e)
      sum += batches_in(e, phase);
  }
  return sum;
}

TrainableNetworkOptions Training::network_options(int batch) const {
  return {.batch = batch,
          .storage = recipe_.working_type(),
          .threads = request_.threads,
          .replay = request_.replay,
          .tensor = share_ ? &*share_ : nullptr};
}

// All ranks have prepared theirs before any goes on.
void Training::prepare_networks() {
  if (!parts_.prepare) return;
  for (const Phase& phase : phases_)
    parts_.prepare(network(), network_options(phase.batch_per_rank));
  barrier(channel_);
}

// Takes over the batch-norm statistics of the network before, if there was one.
void Training::make_network(int batch) {
  if (network_ && network_->batch() == batch) return;
  wait_for(std::exchange(brought_, {}), device_patience, "bring a batch to the device");
  std::vector<float> statistics;
  if (network_) statistics = to_host(network_->running_statistics());
  network_ = parts_.make_network(network(), network_options(batch));
  network_->announce_at(exchange_->acts_on());
  if (!statistics.empty()) set_statistics(statistics);
  give_weights();
}

Memory Training::allocated(std::size_t floats) const {
  return parts_.device.allocate(floats * sizeof(float), parts_.device.fastest());
}

std::vector<float> Training::to_host(const ConstArrayView& array) {
  return runtime::to_host(parts_.device, *stream_, array);
}

void Training::set_statistics(std::span<const float> values) {
  copy_from_host(parts_.device, *stream_, values, network_->running_statistics());
}

void Training::observe(LayerObserver* recorder) {
  if (units_) units_->at(recorder == nullptr ? not_recorded : done_, recorder);
  network_->observe(ask_for_weights() ? &*units_ : recorder);
}

void Training::refresh_units() {
  units_->refresh(stream_->record());
  if (!ask_for_weights()) units_->fill();
}

void Training::gather_weights() {
  if (!units_) return;
  units_->at(not_recorded, nullptr);
  units_->fill();
}

void Training::give_weights() {
  if (units_) {
    units_->serve({[this](const ArrayView& values, int first, int count) {
                     stream_->wait_for(network_->take_weights(values, first, count, Token()));
                   },
                   [this](int first, int count) { network_->drop_weights(first, count); },
                   [this](int first, int count, const ArrayView& memory) {
                     network_->put_gradients(first, count, memory);
                   }});
    if (!ask_for_weights()) units_->fill();
    return;
  }
  // The next update waits until the network has read them.
  stream_->wait_for(network_->take_weights(
      weights_, 0, static_cast<int>(network_->parameters().size()), stream_->record()));
}

bool Training::is_finite(const ConstArrayView& values) {
  const Memory flag = parts_.device.allocate(sizeof(std::uint32_t), MemoryKind::pinned);
  auto* const found = reinterpret_cast<std::uint32_t*>(flag.data());
  *found = 0;
  stream_->start(FindNotFinite{values, found});
  wait_for(stream_->record(), device_patience, "look at the gradients");
  return *found == 0;
}

TrainingOutcome Training::run() {
  iterations_ = all_iterations();
  checkpoint_lock_ =
      claim_checkpoint_path(channel_, request_.checkpoint, request_.resume, description_);
  prepare_networks();
  make_network(phases_.front().batch_per_rank);
  if (network_->classes() < request_.dataset.classes())
    throw InputError(
        fmt::format("{} has {} classes, and {} tells {} apart", request_.dataset.name(),
                    request_.dataset.classes(), request_.network.name(), network_->classes()),
        "choose a network with as many outputs as the data has classes");
  if (network_->traits().labels != request_.dataset.labels())
    throw InputError(fmt::format("samples of {} have {} labels, and those of {} have {}",
                                 request_.dataset.name(), request_.dataset.labels(),
                                 request_.network.name(), network_->traits().labels),
                     "choose data that the network is made for: text for one of tokens");
  if (!request_.resume.empty()) restore();
  if (observer_ != nullptr) observer_->start(network_->arithmetic());
  last_agreement_time_ = Clock::now();
  for (const Phase& phase : phases_) {
    while (position_.epoch < phase.first_epoch + phase.epochs && !enough()) run_epoch(phase);
  }
  settle();
  outcome_.iterations = done_;
  outcome_.complete = position_.epoch >= phases_.back().first_epoch + phases_.back().epochs;
  if (!outcome_.complete) outcome_.stopped = stopped_;
  gather_weights();
  outcome_.weights = assembled(to_host(weights_));
  outcome_.statistics = to_host(network_->running_statistics());
  return std::move(outcome_);
}

void Training::run_epoch(const Phase& phase) {
  make_network(phase.batch_per_rank);
  const std::int64_t batches = batches_in(position_.epoch, phase);
  {
    const AugmentationRecipe& changes = recipe_.augmentation;
    Loader loader(
        request_.dataset, Part::training,
        loader_options(phase.batch_per_rank, {.crop_padding = changes.crop_padding,
                                              .flip = changes.flip,
                                              .random_resized_crop = changes.random_resized_crop}),
        position_.epoch, position_.batch);
    next_labels_ = 0;
    epoch_start_ = Clock::now();
    while (position_.batch < batches && !enough()) {
      iterate(loader, phase);
      agree_on_stop();
      const bool due =
          request_.checkpoint_every > 0 && position_.iteration % request_.checkpoint_every == 0;
      if (due && position_.batch < batches && !enough()) save();
    }
  }
  if (position_.batch < batches) {  // stopped on the way
    save();
    return;
  }
  sums_.time = epoch_time();
  position_ = {.epoch = position_.epoch + 1, .batch = 0, .iteration = position_.iteration};
  settle();
  report_epoch();
  sums_ = {};
  save();
}

void Training::agree_on_stop() {
  if (!request_.stop) return;
  if (ranks_ == 1) {
    stopped_ = request_.stop();
    return;
  }
  if (done_ < next_agreement_) return;
  settle();
  const StopReason asked = request_.stop();
  const Seconds each = since(last_agreement_time_) / static_cast<double>(done_ - last_agreement_);
  const double stride = std::clamp(std::floor(between_agreements / each),
                                   double_buffered() ? least_stride_double_buffered : 1.0, 1e6);
  // The number of ranks that are asked for each reason; that for none is not read. Last the stride.
  std::array<double, stop_reasons + 1> sums = {};
  sums[to_size(asked)] = 1;
  sums[stop_reasons] = rank_ == 0 ? stride : 0;
  sum_over_ranks(channel_, sums);
  for (std::size_t reason = 1; reason < stop_reasons; ++reason) {
    if (sums[reason] > 0) stopped_ = static_cast<StopReason>(reason);
  }
  last_agreement_ = done_;
  last_agreement_time_ = Clock::now();
  next_agreement_ = done_ + static_cast<std::int64_t>(sums[stop_reasons]);
}

LoaderOptions Training::loader_options(int batch, const Augmentation& augmentation) {
  return {.rank = replica_,
          .ranks = replicas_,
          .batch = batch,
          .workers = request_.workers,
          .seed = recipe_.seed,
          .augmentation = augmentation,
          .allocate = [this](std::size_t bytes) { return batch_memory_.take(bytes); }};
}

const Batch* Training::bring_batch(Loader& loader) {
  // The loader writes the memory of the batch before again.
  wait_for(brought_, device_patience, "bring a batch to the device");
  const Batch* batch = loader.next();
  next_labels_ = batch == nullptr ? 0 : batch->labels.size();
  if (next_labels_ > 0) brought_ = network_->bring(batch->images, batch->labels);
  return batch;
}

void Training::iterate(Loader& loader, const Phase& phase) {
  const Clock::time_point start = Clock::now();
  const Seconds waited = loader.waited();
  if (next_labels_ == 0) static_cast<void>(bring_batch(loader));
  PACELINE_ASSERT(next_labels_ > 0, "an epoch has as many batches as it says");
  const Seconds input = loader.waited() - waited;
  const auto labels = static_cast<double>(std::exchange(next_labels_, 0));
  const double samples = labels / network_->traits().labels;
  if (layers_) layers_->at(done_);
  LayerRecorder* const recorder =
      layers_ && request_.recorder->records(done_) ? &*layers_ : nullptr;
  observe(recorder);
  if (sums_of_layers_) sums_of_layers_->tell(recorder);
  const std::int64_t batches = batches_in(position_.epoch, phase);
  // Counted in whole epochs, also where the last one ends early.
  const double epoch = static_cast<double>(position_.epoch) +
                       static_cast<double>(position_.batch) / static_cast<double>(whole(phase));
  network_->start_pass(Pass::training, dropout_seed(recipe_.seed, position_.iteration, replica_));
  const std::size_t slot = double_buffered() ? to_size(begun_ % 2) : 0;
  ++begun_;
  scales_[slot] = static_cast<float>(loss_scale_.scale);  // as a checkpoint keeps it
  exchange_->begin(gradients_[slot], done_);
  // The sum over ranks is then the gradient of the mean loss of all ranks, and overflows no sooner.
  network_->compute_gradients(
      static_cast<float>(scales_[slot] / replicas_), gradients_[slot],
      [this](int parameter, const Token& when) { exchange_->ready(parameter, when); });
  // The device computes now.
  if (position_.batch + 1 < batches && loader.is_ready()) static_cast<void>(bring_batch(loader));
  const std::int64_t skipped = loss_scale_.skipped;
  const double rate = learning_rate(recipe_, epoch, std::int64_t{replicas_} * phase.batch_per_rank);
  GradientExchange::Outcome travel;
  if (!double_buffered() || pending_ || exchange_->under_way() == 2) travel = update(rate, epoch);
  if (units_) travel.exposed += units_->take_waited();
  if (sums_of_layers_) travel.exposed += sums_of_layers_->take_waited();
  ++done_;
  // The outcome is on the device by now, because the update has waited for gradients.
  const PassOutcome pass = network_->outcome();
  no_loss_ = std::isfinite(pass.loss) ? 0 : no_loss_ + 1;
  if (no_loss_ == hopeless) {
    throw RunError("go on training",
                   fmt::format("the loss is no number since iteration {}; choose a lower learning "
                               "rate, or a longer warm-up",
                               position_.iteration - hopeless + 1));
  }
  if (observer_ != nullptr) {
    const std::string remark = network_->take_remark();
    if (!remark.empty()) observer_->remark(remark);
  }
  if (counts_samples()) {
    sums_.loss += pass.loss * labels;
    sums_.correct += static_cast<double>(pass.correct);
    sums_.labels += labels;
  }
  sums_.exposed += travel.exposed;
  sums_.input += input;
  if (observer_ != nullptr) {
    const Seconds time = since(start);
    observer_->iteration({.epoch = position_.epoch,
                          .batch = position_.batch,
                          .batches = batches,
                          .iteration = position_.iteration,
                          .iterations = iterations_,
                          .batch_per_rank = phase.batch_per_rank,
                          .loss = pass.loss,
                          .accuracy = static_cast<double>(pass.correct) / labels,
                          .learning_rate = rate,
                          .loss_scale = loss_scale_.scale,
                          .skipped = loss_scale_.skipped,
                          .overflow = loss_scale_.skipped > skipped,
                          .time = time,
                          .exposed = travel.exposed,
                          .input = input,
                          .images = (samples * replicas_) / time});
  }
  ++position_.iteration;
  ++position_.batch;
}

GradientExchange::Outcome Training::update(double rate, double epoch) {
  GradientExchange::Outcome travel;
  std::size_t slot = 0;
  if (pending_) {
    slot = *pending_;
    pending_.reset();
    travel.finite = is_finite(gradients_[slot]);
  } else {
    if (double_buffered()) slot = to_size((begun_ - exchange_->under_way()) % 2);
    travel = exchange_->finish();
  }
  const Clock::time_point start = Clock::now();
  // Others may have found what is not finite.
  travel.finite = sum_over_parts(travel.finite ? 0.0 : 1.0) == 0;
  if (travel.finite) {
    const double factor = clipped(1 / scales_[slot], gradients_[slot]);
    // With double buffering a backward pass reads the working copies beside the update, which does
    // not wait for it.
    const bool has_copies = !double_buffered() && !exchange_->is_sharded();
    const WorkingCopies* const copies = has_copies ? network_->working_copies() : nullptr;
    if (copies != nullptr) stream_->wait_for(network_->working_copies_read());
    optimizer_->step(*stream_, weights_, gradients_[slot], static_cast<float>(factor), rate, epoch,
                     copies);
    if (copies != nullptr)
      network_->use_working_copies(stream_->record());
    else if (units_)
      refresh_units();
    else
      give_weights();
  }
  after_step(recipe_.loss_scale, !travel.finite, loss_scale_);
  if (request_.recorder != nullptr)
    request_.recorder->record(models::TaskKind::update, models::Resource::compute, -1, done_, start,
                              Clock::now());
  return travel;
}

double Training::clipped(double factor, const ConstArrayView& gradients) {
  const double most = recipe_.optimizer.clip_norm;
  if (most == 0) return factor;
  // A small number beside the norm, as PyTorch's clip_grad_norm_ has it.
  return factor * std::min(1.0, most / (std::sqrt(square_sum(gradients)) * factor + 1e-6));
}

double Training::square_sum(const ConstArrayView& gradients) {
  std::vector<double> of_places = optimizer_->squares_of(gradients);
  double squares = 0;
  for (std::size_t i = 0; i < of_places.size(); ++i)
    if (!part_ || part_->rank == 0 || part_->cuts[i].is_split) squares += of_places[i];
  return sum_over_parts(squares);
}

double Training::sum_over_parts(double value) {
  if (exchange_->is_sharded()) {
    std::array<double, 1> sum = {value};
    sum_over_ranks(channel_, sum);
    return sum[0] / exchange_->replicas();
  }
  if (!part_) return value;
  std::array<float, 1> sum = {static_cast<float>(value)};
  exchange_->sum(view_of(std::span<float>(sum)));
  return static_cast<double>(sum[0]);
}

void Training::settle() {
  if (units_) units_->arrive();
  if (exchange_->under_way() == 0) return;
  PACELINE_ASSERT(double_buffered() && exchange_->under_way() == 1,
                  "only double buffering leaves gradients to the next iteration");
  static_cast<void>(exchange_->finish());
  pending_ = to_size((begun_ - 1) % 2);
}

void Training::report_epoch() {
  const std::array<double, 4> test = evaluate();
  std::array<double, 3> totals = {sums_.loss, sums_.correct, sums_.labels};
  sum_over_ranks(channel_, totals);
  const double tested = std::max(1.0, test[3]);
  const EpochReport report = {.epoch = position_.epoch - 1,
                              .training_loss = totals[0] / totals[2],
                              .training_accuracy = totals[1] / totals[2],
                              .test_loss = test[0] / tested,
                              .test_accuracy = test[1] / tested,
                              .test_accuracy_5 = test[2] / tested,
                              .skipped = loss_scale_.skipped,
                              .training_time = sums_.time,
                              .exposed = sums_.exposed,
                              .input = sums_.input,
                              .images = (totals[2] / network_->traits().labels) / sums_.time};
  outcome_.epochs.push_back(report);
  if (observer_ != nullptr) observer_->epoch(report);
}

std::array<double, 4> Training::evaluate() {
  const std::vector<float> own = to_host(network_->running_statistics());
  set_statistics(averaged(own));
  Loader loader(request_.dataset, Part::test, loader_options(network_->batch(), {}));
  std::array<double, 4> sums = {};
  observe(nullptr);
  if (sums_of_layers_) sums_of_layers_->tell(nullptr);
  while (bring_batch(loader) != nullptr) {
    if (next_labels_ == 0) {
      if (ask_for_weights()) units_->accompany_forward();
      continue;
    }
    const auto labels = static_cast<double>(next_labels_);
    network_->start_pass(Pass::evaluation);
    const PassOutcome pass = network_->outcome();
    if (!counts_samples()) continue;
    sums[0] += pass.loss * labels;
    sums[1] += static_cast<double>(pass.correct);
    sums[2] += static_cast<double>(pass.correct_5);
    sums[3] += labels;
  }
  set_statistics(own);
  sum_over_ranks(channel_, sums);
  return sums;
}

std::vector<float> Training::averaged(std::vector<float> values) {
  if (ranks_ == 1 || values.empty()) return values;
  std::vector<double> sums(values.begin(), values.end());
  sum_over_ranks(channel_, sums);
  std::ranges::transform(sums, values.begin(),
                         [this](double sum) { return static_cast<float>(sum / ranks_); });
  return values;
}

std::vector<float> Training::whole_state(const Optimizer::State& state) {
  std::vector<float> own = to_host(state.values);
  if (!exchange_->is_sharded() || !state.is_of_elements) return own;
  const Memory memory = allocated(weights_.elements);
  const ArrayView whole = memory.array(NumberType::fp32);
  std::span<const float> rest = own;
  for (const models::Elements& part : exchange_->own()) {
    const auto size = to_size(part.size);
    copy_from_host(parts_.device, *stream_, rest.first(size),
                   whole.part(to_size(part.begin), size));
    rest = rest.subspan(size);
  }
  exchange_->gather(whole, not_recorded);
  return to_host(whole);
}

std::size_t Training::whole_elements() const {
  if (!part_) return weights_.elements;
  std::int64_t elements = 0;
  for (const models::TensorCut& cut : part_->cuts) elements += cut.repeats * cut.stride;
  return to_size(elements);
}

std::vector<float> Training::own_part(std::vector<float> whole) const {
  return part_ ? models::part_of(*part_, whole) : std::move(whole);
}

std::vector<float> Training::assembled(std::vector<float> own) {
  if (!part_) return own;
  if (rank_ > 0) {
    if (replica_ == 0) channel_.send(0, std::as_bytes(std::span(own)));
    return {};
  }
  std::vector<float> whole(whole_elements());
  models::put_part(*part_, own, whole);
  for (int rank = 1; rank < neighbours_; ++rank) {
    const models::TensorPart theirs = models::tensor_part(request_.network, neighbours_, rank);
    channel_.receive(rank, std::as_writable_bytes(std::span(own)));
    models::put_part(theirs, own, whole);
  }
  return whole;
}

void Training::set_whole_state(const Optimizer::State& state, const SharedCheckpoint& checkpoint) {
  const bool is_shared = exchange_->is_sharded() && state.is_of_elements;
  std::vector<float> values =
      checkpoint.take(state.name, state.is_of_elements ? whole_elements() : state.values.elements);
  if (state.is_of_elements) values = own_part(std::move(values));
  if (is_shared) {
    std::vector<float> own;
    for (const models::Elements& part : exchange_->own())
      own.insert(own.end(), values.begin() + part.begin, values.begin() + part.end());
    values = std::move(own);
  }
  copy_from_host(parts_.device, *stream_, values, state.values);
}

void Training::save() {
  if (request_.checkpoint.empty()) return;
  settle();
  std::vector<CheckpointArray> states;
  gather_weights();
  if (rank_ == 0 || exchange_->is_sharded() || part_)
    for (const Optimizer::State& state : optimizer_->state()) {
      std::vector<float> values = whole_state(state);
      states.push_back(
          {state.name, state.is_of_elements ? assembled(std::move(values)) : std::move(values)});
    }
  std::vector<float> weights = assembled(rank_ == 0 || part_ ? to_host(weights_) : Floats{});
  std::vector<float> pending =
      pending_ && (rank_ == 0 || part_) ? assembled(to_host(gradients_[*pending_])) : Floats{};
  std::vector<float> statistics = gather(channel_, to_host(network_->running_statistics()));
  std::vector<float> sums;
  if (position_.batch > 0) {
    EpochSums own = sums_;
    own.time = epoch_time();
    sums = gather(channel_, stored(own));
  }
  Checkpoint checkpoint;  // of rank 0
  if (rank_ == 0) {
    checkpoint = {.job = description_,
                  .epoch = position_.epoch,
                  .batch = position_.batch,
                  .iteration = position_.iteration,
                  .loss_scale = loss_scale_,
                  .arrays = {}};
    checkpoint.arrays.push_back({"weights", std::move(weights)});
    std::ranges::move(states, std::back_inserter(checkpoint.arrays));
    checkpoint.arrays.push_back({"statistics", std::move(statistics)});
    if (!sums.empty()) checkpoint.arrays.push_back({"epoch", std::move(sums)});
    if (pending_) {
      checkpoint.arrays.push_back({"gradients.pending", std::move(pending)});
      checkpoint.arrays.push_back(
          {"gradients.pending.scale", {static_cast<float>(scales_[*pending_])}});
    }
  }
  if (units_) units_->keep_own();
  write_together(channel_, request_.checkpoint, checkpoint);
  if (observer_ != nullptr) observer_->checkpoint(request_.checkpoint, position_.iteration);
}

void Training::restore() {
  const SharedCheckpoint checkpoint(channel_, request_.resume, description_);
  position_ = checkpoint.position();
  const bool is_fixed = loss_scale_.fixed;
  loss_scale_ = checkpoint.loss_scale();
  loss_scale_.fixed = is_fixed;
  const auto take_array = [&](const std::string& name, const ArrayView& target) {
    copy_from_host(parts_.device, *stream_, own_part(checkpoint.take(name, whole_elements())),
                   target);
  };
  take_array("weights", weights_);
  for (const Optimizer::State& state : optimizer_->state()) set_whole_state(state, checkpoint);
  const auto statistics =
      checkpoint.take_of_ranks("statistics", network_->running_statistics().elements);
  const bool are_as_many = std::ssize(statistics) == ranks_;
  set_statistics(are_as_many ? statistics[to_size(rank_)] : mean(statistics));
  if (position_.batch > 0) {
    std::vector<EpochSums> sums;
    for (const std::vector<float>& stored : checkpoint.take_of_ranks("epoch", stored_sums_floats))
      sums.push_back(sums_of(std::span(stored).first<stored_sums_floats>()));
    sums_ = are_as_many ? sums[to_size(rank_)] : shared_out(sums, ranks_);
  }
  if (checkpoint.has_pending_gradients()) {
    take_array("gradients.pending", gradients_[1]);
    scales_[1] = checkpoint.take("gradients.pending.scale", 1).front();
    pending_ = 1;
    begun_ = 2;  // so that the next iteration takes slot 0
  }
  if (units_) units_->keep_own();
  give_weights();
}

}  // namespace

TrainingOutcome train(const TrainingRequest& request, const TrainingParts& parts,
                      TrainingObserver* observer) {
  return Training(request, parts, observer).run();
}

TrainingOutcome train(const TrainingRequest& request, const Endpoint& endpoint,
                      TrainingObserver* observer) {
  Executor executor(endpoint.transport);
  const TrainingParts parts{
      .channel = endpoint.channel,
      .executor = executor,
      .device = cpu_device(),
      .make_network = [](const models::Network& network, const TrainableNetworkOptions& options) {
        return std::make_unique<CpuNetwork>(network, options);
      }};
  return train(request, parts, observer);
}

}  // namespace paceline::runtime
