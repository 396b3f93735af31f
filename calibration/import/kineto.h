// Traces of torch.profiler (Kineto; export_chrome_trace) become forward and backward times of the
// layers of a network of ours, and all-reduces by size.
//
// Which part of a trace is which layer is told by what the trace has. The best is tried first:
//
// 1. Names. A record_function (user_annotation) is called as the layer is, or its name ends in the
// layer's after ": ", "/" or a blank ("forward: layer1.0.conv1").
//
// 2. Modules, as in "nn.Module: Conv2d_0" (with_stack or with_modules). The k-th module of a kind
// that runs in an iteration is the k-th layer of that kind in the network, if there are as many.
//
// 3. Operators, as in "aten::conv2d", that are inside no other operator. They are counted as
// modules are. An aten::add or add_ counts only if backward goes through it, since batch norms
// count their batches by one.
//
// kind of layer              module                    operator
// convolution                Conv2d                    aten::conv2d, convolution
// fully_connected, linear,   Linear                    aten::linear, addmm
//   tied_linear
// batch_norm                 BatchNorm1d, 2d           aten::batch_norm
// relu                       ReLU and its like         aten::relu, hardtanh, leaky_relu, threshold
// gelu, tanh                 GELU, Tanh and their like aten::gelu, silu, tanh, sigmoid and others
// max_pool                   MaxPool2d                 aten::max_pool2d
// average_pool               AvgPool2d                 aten::avg_pool2d
// adaptive_average_pool      AdaptiveAvgPool2d         aten::adaptive_avg_pool2d
// lrn                        LocalResponseNorm
// dropout                    Dropout, Dropout2d        aten::dropout, feature_dropout
// add                                                  aten::add, add_
// concat                                               aten::cat, concat
// flatten                    Flatten                   aten::flatten
// embedding                  Embedding                 aten::embedding
// layer_norm                 LayerNorm                 aten::layer_norm
// attention                                            aten::scaled_dot_product_attention, or a softmax
//                                                      between two of aten::bmm, baddbmm, matmul
// softmax_cross_entropy      CrossEntropyLoss          aten::cross_entropy_loss
//
// Ways 2 and 3 need the layers of a kind to stand in the network in the order in which they run. A
// kind whose number differs is left out, and a remark says so. So do remarks of kinds that no operator
// tells, of how the time is shared between kinds, and of what has no layer, by name, from 1 % of a pass.
//
// The backward of a layer is the "autograd::engine::evaluate_function" whose "Sequence number" is
// that of an operator within the layer's forward (the last one that has it); a trace without these
// numbers is matched by the order of backward (autograd_order.h). Iterations are "ProfilerStep#N";
// without them "Optimizer.step#" ends each; a trace without either is one iteration. If kernels ran on a GPU, the time of a
// layer is that of the kernels, copies and memsets that its operators launched: they are found by
// "correlation" by way of the runtime call, or by "External id". Otherwise it is the time on the
// CPU. NCCL's kernels belong to no layer. Those of an all-reduce with "In msg nelems" and "dtype"
// are samples, and include waiting for the other ranks.
//
// The spellings of Kineto from PyTorch 1.8 ("Operator", "external id") to 2.8 are read, and the bare
// list of events that torch.autograd.profiler writes, and torch.profiler where PyTorch is built
// without Kineto (Debian's 1.13). It has neither categories nor sequence numbers nor shapes. Events are
// kept as they go by, about 150 bytes for each event of interest; there is no tree of the text. The
// facts of the format are from pytorch/kineto libkineto/src/output_json.cpp and
// torch/csrc/profiler.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"
#include "models/network/network.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_kineto(std::string_view text);

// The layers come in the network's order. Throws InputError if the text is no trace (chrome_trace.h), is not
// whole, or holds neither an operator of PyTorch nor an all-reduce, or if no layer is found in it.
// O(events log events + layers).
[[nodiscard]] Imported parse_kineto(std::string_view text, const std::string& file,
                                    const models::Network& network);

}  // namespace paceline::calibration
