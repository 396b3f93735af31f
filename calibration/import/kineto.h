// Traces of torch.profiler (Kineto; export_chrome_trace) to forward and backward times of the
// layers of a network of ours, and to all-reduces by size.
//
// Which part of a trace is which layer, by what the trace has, best first:
//
//  1. Names: a record_function (user_annotation) called as the layer is, or whose name ends so
//  after
//     ": ", "/" or a blank ("forward: layer1.0.conv1").
//  2. Modules: "nn.Module: Conv2d_0" (with_stack or with_modules): the k-th of a kind that runs in
//  an
//     iteration is the k-th layer of that kind in the network, if there are as many.
//  3. Operators: "aten::conv2d" that is inside no other, likewise. An aten::add or add_ counts only
//     if backward goes through it, for batch norms count their batches by one.
//
//     convolution                Conv2d             aten::conv2d, convolution
//     fully_connected            Linear             aten::linear, addmm
//     batch_norm                 BatchNorm1d, 2d    aten::batch_norm
//     relu                       ReLU               aten::relu, relu_
//     max_pool                   MaxPool2d          aten::max_pool2d
//     average_pool               AvgPool2d          aten::avg_pool2d
//     adaptive_average_pool      AdaptiveAvgPool2d  aten::adaptive_avg_pool2d
//     lrn                        LocalResponseNorm
//     dropout                    Dropout            aten::dropout, dropout_
//     add                                           aten::add, add_
//     concat                                        aten::cat, concat
//     flatten                    Flatten            aten::flatten
//     softmax_cross_entropy      CrossEntropyLoss   aten::cross_entropy_loss
//
// So 2 and 3 ask that the network's layers of a kind are in the order in which they run. A kind
// whose number differs is left out, and a remark says so.
//
// Backward of a layer is the "autograd::engine::evaluate_function" whose "Sequence number" is that
// of an operator within the layer's forward (the last to have it). Iterations are "ProfilerStep#N";
// without them the trace is one. With kernels on a GPU, the time of a layer is that of the kernels,
// copies and memsets that its operators launched ("correlation" by way of the runtime call, or
// "External id"); without, it is the time on the CPU. NCCL's kernels are no layer's: those of an
// all-reduce with "In msg nelems" and "dtype" are samples, and include waiting for the other ranks.
//
// Read are the spellings of Kineto from PyTorch 1.8 ("Operator", "external id") to 2.8. The events
// are kept, the text is not parsed into a tree: about 150 bytes for each event of interest. Facts
// of the format: pytorch/kineto libkineto/src/output_json.cpp, torch/csrc/profiler.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"
#include "models/network/network.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_kineto(std::string_view text);

// Layers in the network's order. Throws InputError if the text is no trace (chrome_trace.h), is not
// whole, or holds neither an operator of PyTorch nor an all-reduce, or if no layer is found in it.
// O(events log events + layers).
[[nodiscard]] Imported parse_kineto(std::string_view text, const std::string& file,
                                    const models::Network& network);

}  // namespace paceline::calibration
