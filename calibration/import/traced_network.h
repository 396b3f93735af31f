// A network from a trace of torch.profiler that has the shapes of operators' inputs.
//
// It needs record_shapes=True and PyTorch 2.1 or later, whose traces have the sizes of each input and
// the strides, paddings and the like ("Concrete Inputs"). The outermost operators of the first
// iteration's forward become layers, in the order in which they ran:
//
//   aten::conv2d, aten::batch_norm, aten::relu and relu_, aten::max_pool2d, aten::avg_pool2d,
//   aten::adaptive_avg_pool2d, aten::dropout, aten::flatten, aten::linear, aten::cross_entropy_loss.
//
// A trace does not say whose output an operator reads. Each is taken to read the one before it, which
// its input's sizes must bear out; where branches meet (aten::add, aten::cat) there is no network. A
// layer has the name of the record_function around it, if that names one operator, or else one by its
// kind and number: "conv1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibration/import/kineto_trace.h"
#include "models/network/network.h"

namespace paceline::calibration {

struct TracedNetwork {
  models::Network network;
  int batch = 0;                          // samples of an iteration
  std::vector<std::string> remarks = {};  // which operators became layers, and which did not
};

// Whether a trace has the sizes of its operators' inputs, by its first lines.
[[nodiscard]] bool has_shapes(std::string_view text);

// Throws InputError that names the operator if the trace has no shapes, an operator is none of
// these, or its input is not what the layer before it makes.
[[nodiscard]] TracedNetwork traced_network(std::string_view text, const std::string& file,
                                           const std::string& name);

}  // namespace paceline::calibration
