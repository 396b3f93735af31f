// The timeline that Horovod writes (HOROVOD_TIMELINE) becomes all-reduces by size, and the times at
// which each tensor was ready.
//
// Two forms are read: the array that is never closed (before 0.20), and the one that is closed after
// each event. An event that is cut at the end is left out. Tensors are processes, named by
// "process_name", or threads, named by "thread_name". Ends ('E') have no name and close what was
// opened last. A tensor goes through NEGOTIATE_ALLREDUCE, in which an instant event (named 0, 1,
// ...) says which rank is ready. Then comes ALLREDUCE, whose end carries "dtype" and "shape", with
// activities inside: MEMCPY_IN_FUSION_BUFFER, then one whose name ends in _ALLREDUCE (NCCL_, MPI_,
// GLOO_, CCL_, ...).
//
// Tensors whose all-reduces overlap by more than half and that were copied into the fusion buffer
// are on the wire together: they are one bucket. Its time is from the first begin to the last end of
// that activity, and its bytes are the sum. Hierarchical all-reduces have several activities, and
// are not timed. A tensor is ready when its last rank is, counted from the first tensor of the same
// iteration; the k-th time of every tensor is iteration k. The facts of the format are from
// horovod/common/timeline.cc of 0.12 to 0.28 and docs/timeline.rst.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_horovod(std::string_view text);

// Throws InputError if the text is no trace (chrome_trace.h), or no tensor is all-reduced in it.
// There is a curve for each library and element type, and none where the ends say no shape, which a
// remark tells. The ranks are those that were ever ready. O(events log events).
[[nodiscard]] Imported parse_horovod(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
