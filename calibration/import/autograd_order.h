// Which backward belongs to which operator, in traces of PyTorch that do not say so.
//
// Autograd runs the nodes of one device on one thread, and of those that are ready the one that was
// made last (torch/csrc/autograd/engine.cpp, CompareNodeTaskTime). All readers of what a node's
// operator made come after it and are ready before it, so that nodes run in exactly the reverse of
// the order in which their operators ran; only AccumulateGrad, which belongs to no operator, comes
// in between. The k-th ConvolutionBackward of an iteration is therefore that of the k-th convolution
// from the end, if there are as many.
#pragma once

#include <string>
#include <vector>

#include "calibration/import/kineto_trace.h"

namespace paceline::calibration {

[[nodiscard]] bool is_without_sequence_numbers(const KinetoTrace& trace);

// Gives the outermost operators of each iteration, and the roots of its backward, the sequence
// numbers that tie them together. Operators of a kind that backward has a different number of, but
// has, are marked `backward_unknown`, and a remark says so. An aten::add_ right before a
// batch_norm counts its batches, and has no backward. O(iterations kinds + operators).
void number_by_order(KinetoTrace& trace, std::vector<std::string>& remarks);

}  // namespace paceline::calibration
