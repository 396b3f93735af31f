// The timeline that Horovod writes (HOROVOD_TIMELINE): all-reduces by size, and when each tensor
// was ready.
//
// Read are the array that is never closed (before 0.20), and that which is closed after each event;
// an event that is cut at the end is left out. Tensors are processes, named by "process_name", or
// threads named by "thread_name"; ends ('E') have no name and close what was opened last. A tensor
// goes through NEGOTIATE_ALLREDUCE, in which an instant event (named 0, 1, ...) says which rank is
// ready, then ALLREDUCE, whose end carries "dtype" and "shape", with activities inside:
// MEMCPY_IN_FUSION_BUFFER, then one that ends in _ALLREDUCE (NCCL_, MPI_, GLOO_, CCL_, ...).
//
// A bucket is the tensors whose all-reduce overlaps by more than half and that were copied into the
// fusion buffer: they are on the wire together. Its time is from the first begin to the last end of
// that activity, its bytes are the sum. Hierarchical all-reduces have several activities, and are
// not timed. Ready is when the last rank was, after the first tensor of the same iteration: the
// k-th time of every tensor is iteration k. Facts of the format: horovod/common/timeline.cc of 0.12
// to 0.28 and docs/timeline.rst.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_horovod(std::string_view text);

// Throws InputError if the text is no trace (chrome_trace.h), or no tensor is all-reduced in it.
// Curves are one for each library and element type; none where the ends say no shape, which a
// remark tells. Ranks are those that were ever ready. O(events log events).
[[nodiscard]] Imported parse_horovod(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
