// Implementation. Batch i is decoded into slot i mod (prefetch + 1); the consumer holds one slot.
// A batch is cut into one piece for each worker, and workers take the pieces of all batches in
// order, so that they work on the batch that is needed next.
//
//  1. Batch i is begun only when the consumer has given back batch i - slots.
//  2. A slot is written by workers between begin() and pieces_left == 0, and read by the consumer
//     after that; the mutex orders both.
//  3. Of several errors in a batch the one of the least sample is kept, so that the error does not
//     depend on the workers.
#include "runtime/training/data/loader.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "models/base/error.h"
#include "models/base/seeds.h"
#include "models/base/to_size.h"
#include "runtime/training/data/order.h"

namespace paceline::runtime {
namespace {

using Clock = std::chrono::steady_clock;

struct Slot {
  std::int64_t number = -1;  // of the batch that it holds
  Memory memory;
  std::vector<std::int32_t> all_labels;
  Batch batch;  // what of both is filled
  int pieces_left = 0;
  int failed_piece = 0;
  std::exception_ptr error;
};

void check(const LoaderOptions& options, std::int64_t epoch) {
  const auto refuse = [](const char* what, std::int64_t value, const std::string& remedy) {
    throw InputError(std::string(what) + " is " + std::to_string(value), remedy);
  };
  constexpr int most_threads = 1024;
  if (options.ranks < 1) refuse("the number of ranks", options.ranks, "give 1 or more");
  if (options.rank < 0 || options.rank >= options.ranks)
    refuse("the rank", options.rank, "ranks are 0 to " + std::to_string(options.ranks - 1));
  if (options.batch < 1) refuse("the batch of a rank", options.batch, "give 1 or more samples");
  if (options.workers < 0 || options.workers > most_threads)
    refuse("the number of workers", options.workers,
           "give 0 to " + std::to_string(most_threads) + " threads");
  if (options.prefetch < 1 || options.prefetch > most_threads)
    refuse("the number of batches ahead", options.prefetch,
           "give 1 to " + std::to_string(most_threads));
  if (epoch < 0) refuse("the epoch", epoch, "epochs count from 0");
}

std::int64_t batches_in(const Dataset& dataset, Part part, const Sharing& sharing) {
  if (part == Part::test) return batches_of_all(sharing);
  const std::int64_t batches = batches_per_epoch(sharing.samples, sharing.ranks, sharing.batch);
  if (batches > 0) return batches;
  throw InputError("the training set of " + in_quotes(dataset.name()) + " has " +
                       std::to_string(sharing.samples) + " samples, fewer than " +
                       std::to_string(sharing.ranks) + " ranks take in one batch of " +
                       std::to_string(sharing.batch),
                   "choose a smaller batch");
}

}  // namespace

struct Loader::State {
  State(const Dataset& dataset, Part part, const LoaderOptions& options, std::int64_t epoch,
        std::int64_t first_batch);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { stop(); }

  const Batch* next();
  bool is_ready();

  std::int64_t batches = 0;
  Clock::duration waited{};

 private:
  Slot& slot_of(std::int64_t number) { return slots_[to_size(number) % slots_.size()]; }
  // Whether the slot holds the batch that the consumer is given next.
  [[nodiscard]] bool is_decoded(const Slot& slot) const {
    return slot.number == consumed_ && slot.pieces_left == 0;
  }
  [[nodiscard]] bool may_begin() const {
    return next_batch_ < given_back_ + static_cast<std::int64_t>(slots_.size());
  }
  void begin(Slot& slot, std::int64_t number);
  void decode(Slot& slot, int piece);
  std::exception_ptr error_of_decoding(Slot& slot, int piece);
  const Batch* decoded_here();
  void work();
  void stop();

  const Dataset& dataset_;
  const Part part_;
  const LoaderOptions options_;
  const Sharing sharing_;
  const std::uint64_t augmentation_seed_;  // of the epoch
  const std::int64_t elements_;            // of a sample
  const std::size_t labels_;               // of a sample
  const int pieces_;                       // of a batch
  std::vector<std::uint32_t> order_;       // empty for the test part, which is in order
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable room_;   // a slot was given back, or stopping_
  std::condition_variable ready_;  // a batch is decoded
  std::atomic<bool> stopping_ = false;
  // Guarded by the mutex.
  std::int64_t next_batch_ = 0;  // the batch and the piece of it that the next worker takes
  int next_piece_ = 0;
  std::int64_t given_back_ = 0;  // batches that the consumer is done with

  std::int64_t consumed_ = 0;  // batches that next() has returned; the consumer's own
  std::vector<std::thread> threads_;
};

Loader::State::State(const Dataset& dataset, Part part, const LoaderOptions& options,
                     std::int64_t epoch, std::int64_t first_batch)
    : dataset_(dataset),
      part_(part),
      options_((check(options, epoch), options)),
      sharing_{dataset.size(part), options.rank, options.ranks, options.batch},
      augmentation_seed_(
          mixed_seed(mixed_seed(options.seed, 1), static_cast<std::uint64_t>(epoch))),
      elements_(dataset.sample().elements()),
      labels_(to_size(dataset.labels())),
      pieces_(std::max(1, std::min(options.workers, options.batch))) {
  batches = batches_in(dataset, part, sharing_);
  if (first_batch < 0 || first_batch > batches)
    throw InputError("an epoch of " + in_quotes(dataset.name()) + " cannot start at batch " +
                         std::to_string(first_batch),
                     "it has " + std::to_string(batches));
  if (part == Part::training)
    order_ = shuffled_order(sharing_.samples, mixed_seed(options.seed, 0), epoch);
  next_batch_ = given_back_ = consumed_ = first_batch;
  slots_.resize(options.workers == 0 ? 1 : to_size(options.prefetch) + 1);
  for (Slot& slot : slots_) {
    slot.memory = options.allocate(to_size(options.batch * elements_) * sizeof(float));
    slot.all_labels.resize(to_size(options.batch) * labels_);
  }
  try {
    for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

void Loader::State::begin(Slot& slot, std::int64_t number) {
  slot.number = number;
  slot.pieces_left = pieces_;
  slot.error = nullptr;
  const auto count = to_size(positions_of(sharing_, number).count());
  slot.batch = {slot.memory.array(NumberType::fp32).part(0, count * to_size(elements_)),
                std::span(slot.all_labels).first(count * labels_)};
}

void Loader::State::decode(Slot& slot, int piece) {
  const Positions positions = positions_of(sharing_, slot.number);
  const std::int64_t begin = positions.count() * piece / pieces_;
  const std::int64_t end = positions.count() * (piece + 1) / pieces_;
  const auto elements = to_size(elements_);
  const std::span<float> images = host_floats(slot.memory.array(NumberType::fp32));
  const Augmentation none;
  for (std::int64_t i = begin; i < end && !stopping_.load(std::memory_order_relaxed); ++i) {
    const auto place = to_size(i);
    const std::int64_t position = positions.begin + i;
    const std::int64_t sample = order_.empty() ? position : order_[to_size(position)];
    dataset_.read(part_, sample, part_ == Part::training ? options_.augmentation : none,
                  mixed_seed(augmentation_seed_, static_cast<std::uint64_t>(sample)),
                  images.subspan(place * elements, elements),
                  std::span(slot.all_labels).subspan(place * labels_, labels_));
  }
}

std::exception_ptr Loader::State::error_of_decoding(Slot& slot, int piece) {
  try {
    decode(slot, piece);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void Loader::State::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [this] { return stopping_ || next_batch_ == batches || may_begin(); });
    if (stopping_ || next_batch_ == batches) return;
    Slot& slot = slot_of(next_batch_);
    const int piece = next_piece_;
    if (piece == 0) begin(slot, next_batch_);
    if (++next_piece_ == pieces_) {
      next_piece_ = 0;
      ++next_batch_;
    }
    lock.unlock();
    std::exception_ptr error = error_of_decoding(slot, piece);
    lock.lock();
    if (error && (!slot.error || piece < slot.failed_piece)) {
      slot.error = std::move(error);
      slot.failed_piece = piece;
    }
    if (--slot.pieces_left == 0) ready_.notify_one();
  }
}

const Batch* Loader::State::decoded_here() {
  Slot& slot = slots_[0];
  const Clock::time_point start = Clock::now();
  begin(slot, consumed_);
  decode(slot, 0);
  waited += Clock::now() - start;
  ++consumed_;
  return &slot.batch;
}

const Batch* Loader::State::next() {
  if (consumed_ == batches) return nullptr;
  if (threads_.empty()) return decoded_here();
  std::unique_lock lock(mutex_);
  if (given_back_ < consumed_) {
    given_back_ = consumed_;
    room_.notify_all();
  }
  Slot& slot = slot_of(consumed_);
  if (!is_decoded(slot)) {
    const Clock::time_point start = Clock::now();
    ready_.wait(lock, [&] { return is_decoded(slot); });
    waited += Clock::now() - start;
  }
  if (slot.error) std::rethrow_exception(slot.error);
  ++consumed_;
  return &slot.batch;
}

bool Loader::State::is_ready() {
  if (consumed_ == batches || threads_.empty()) return false;
  const std::lock_guard lock(mutex_);
  const Slot& slot = slot_of(consumed_);
  return is_decoded(slot) && !slot.error;
}

void Loader::State::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Loader::Loader(const Dataset& dataset, Part part, const LoaderOptions& options, std::int64_t epoch,
               std::int64_t first_batch)
    : state_(std::make_unique<State>(dataset, part, options, epoch, first_batch)) {}
Loader::~Loader() = default;

std::int64_t Loader::batches() const {
  return state_->batches;
}
const Batch* Loader::next() {
  return state_->next();
}
bool Loader::is_ready() const {
  return state_->is_ready();
}
Seconds Loader::waited() const {
  return Seconds{std::chrono::duration<double>(state_->waited).count()};
}

}  // namespace paceline::runtime
