// The best layout of a job: a search over axes of the mesh, batches, recomputation and strategies.
//
// Every layout whose axes divide the ranks and the network is a candidate, with each batch of a rank's sample
// that divides the global batch, with and without recomputation, and with gradients that are summed by NCCL
// or the device's own library, ZeRO-1, FSDP or hybrid FSDP. Tensor parallelism stays inside a node, and experts are shared out to powers of two. Candidates
// are taken in the order of a lower bound,
//
//   max over stages s of  m W(s) + the sum over earlier stages s' of w(s')
//
// where m batches of work W(s), exposed exchanges included, go through stage s, and w is the work of a stage's first
// chunk: stage s starts behind the forward passes of earlier ones, which are behind it on the way back. A
// candidate whose memory does not fit is not timed, and the search ends where the bound of the next
// candidate is no less than the best time: no candidate is then better.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "models/plan/strategy.h"
#include "simulator/prediction/prediction_request.h"

namespace paceline::simulator {

struct LayoutSearchRequest {
  // The job; its layout, batch, accumulation and recomputation are searched for.
  const PredictionRequest& job;
  std::int64_t global_batch = 1;    // samples of an iteration of all ranks
  bool fits_memory = true;          // whether only what fits into memory is timed
  std::function<bool()> stop = {};  // asked once a layout is timed, so that there is one
};

struct LayoutChoice {
  PredictionOptions
      options;  // those of the job with the layout, batch, accumulation and recomputation
  const models::Strategy* strategy = nullptr;
  Seconds least;                          // the lower bound
  Bytes memory;                           // of a rank that needs most
  std::optional<Seconds> iteration = {};  // where it was timed
  bool fits = true;
};

struct FoundLayouts {
  std::vector<LayoutChoice> timed;  // by their time
  std::vector<LayoutChoice>
      too_large;  // candidates with a better bound than the best, which do not fit
  std::int64_t candidates = 0;
  Seconds least_left;      // no candidate that was not timed, and fits, takes less
  bool is_proven = false;  // whether that is no less than the best time
};

// Throws InputError where no candidate divides the ranks and the batch, or none fits.
[[nodiscard]] FoundLayouts search_layouts(const LayoutSearchRequest& request);

}  // namespace paceline::simulator
