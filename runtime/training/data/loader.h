// Batches of one rank, decoded ahead by worker threads.
//
// The order is a function of (seed, epoch): all ranks shuffle the same permutation; global batch i
// is its elements [i p b, (i+1) p b), of which rank r takes [i p b + r b, i p b + (r+1) b). What is
// left over at the end of a training epoch is dropped. A loader may start at any batch of any epoch
// and yields what an uninterrupted one would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "models/base/units.h"
#include "runtime/device/memory.h"
#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

struct LoaderOptions {
  int rank = 0;
  int ranks = 1;
  int batch = 1;     // of this rank
  int workers = 1;   // threads that decode; 0 decodes in next()
  int prefetch = 2;  // batches ahead
  std::uint64_t seed = 1;
  Augmentation augmentation = {};
  // Where images of a batch are put: memory that the host writes.
  std::function<Memory(std::size_t bytes)> allocate = host_memory;
};

struct Batch {
  ConstArrayView images;                 // samples x channels x height x width in FP32
  std::span<const std::int32_t> labels;  // Dataset::labels() of each sample
};

class Loader {
 public:
  // Training: shuffled by epoch, augmented, whole batches only. Test: in order, as they are, each
  // sample on one rank, the last batches may be short or empty, so that all ranks have as many
  // batches. `dataset` must outlive the loader. Throws InputError if an option is out of range, the
  // epoch has no batch `first_batch`, or the training set is smaller than one batch of all ranks.
  Loader(const Dataset& dataset, Part part, const LoaderOptions& options, std::int64_t epoch = 0,
         std::int64_t first_batch = 0);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  [[nodiscard]] std::int64_t batches() const;  // of one rank in the epoch
  // The next batch, or null after the last. Valid until the next call. Rethrows what a worker
  // threw when its batch is due, and again in each later call.
  [[nodiscard]] const Batch* next();
  // Whether next() has a batch without waiting. An error is none: it is thrown when its batch is due.
  [[nodiscard]] bool is_ready() const;
  // How long next() has waited for workers, in all; without workers, how long it has decoded.
  [[nodiscard]] Seconds waited() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
