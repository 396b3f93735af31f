// AlexNet in one tower without groups (Krizhevsky 2012 with the widths of both towers), its
// batch-norm form, and Jizhi's refinement. The papers do not print every layer of the BN forms:
// no bias before a convolution's batch norm, and a batch norm after fc6 and fc7, are our reading.
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

enum class Norm { lrn, batch, batch_and_pool5 };

struct ConvolutionRow {
  const char* number;
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  bool lrn;   // in the original
  bool pool;  // 3x3, stride 2
};

constexpr ConvolutionRow convolutions[] = {{"1", 96, 11, 4, 0, true, true},
                                           {"2", 256, 5, 1, 2, true, true},
                                           {"3", 384, 3, 1, 1, false, false},
                                           {"4", 384, 3, 1, 1, false, false},
                                           {"5", 256, 3, 1, 1, false, true}};

Network build(const char* name, Norm norm) {
  const bool batch_norm = norm != Norm::lrn;
  NetworkBuilder net(name, Shape::image(3, 227, 227), imagenet_sample);
  for (const ConvolutionRow& row : convolutions) {
    const std::string number = row.number;
    net.add("conv" + number, Convolution{.channels = row.channels,
                                         .kernel = square(row.kernel),
                                         .stride = square(row.stride),
                                         .padding = square(row.padding),
                                         .bias = !batch_norm});
    if (batch_norm) net.add("conv" + number + "_bn", BatchNorm{});
    net.add("relu" + number, Relu{});
    if (!batch_norm && row.lrn) net.add("norm" + number, Lrn{5});
    if (row.pool) net.add("pool" + number, MaxPool{{.kernel = square(3), .stride = square(2)}});
  }
  if (norm == Norm::batch_and_pool5) net.add("pool5_bn", BatchNorm{});
  net.add("flatten", Flatten{});
  for (const std::string number : {"6", "7"}) {
    net.add("fc" + number, FullyConnected{4096});
    if (batch_norm) net.add("fc" + number + "_bn", BatchNorm{});
    net.add("relu" + number, Relu{});
    net.add("dropout" + number, Dropout{0.5});
  }
  net.add("fc8", FullyConnected{1000});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace

Network alexnet() {
  return build("alexnet", Norm::lrn);
}
Network alexnet_bn() {
  return build("alexnet-bn", Norm::batch);
}
Network alexnet_bn_refined() {
  return build("alexnet-bn-refined", Norm::batch_and_pool5);
}

}  // namespace paceline::models
