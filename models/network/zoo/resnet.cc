// ResNet with bottleneck blocks (He 2015), as v1.5: the stride of a block is in its 3x3. Names are
// torchvision's. The small one is He's for CIFAR, without bottlenecks.
#include <array>

#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

std::string convolution(NetworkBuilder& net, const std::string& name, const std::string& norm,
                        const std::string& input, std::int64_t channels, std::int64_t kernel,
                        std::int64_t stride) {
  net.add(name,
          Convolution{.channels = channels,
                      .kernel = square(kernel),
                      .stride = square(stride),
                      .padding = square(kernel / 2),
                      .bias = false},
          {input});
  return net.add(norm, BatchNorm{});
}

// 1x1, 3x3, 1x1 to four times the width, and a projection where the shape changes.
std::string bottleneck(NetworkBuilder& net, const std::string& block, std::string input,
                       std::int64_t width, std::int64_t stride, bool projects) {
  convolution(net, block + ".conv1", block + ".bn1", input, width, 1, 1);
  std::string last = net.add(block + ".relu1", Relu{});
  convolution(net, block + ".conv2", block + ".bn2", last, width, 3, stride);
  last = net.add(block + ".relu2", Relu{});
  last = convolution(net, block + ".conv3", block + ".bn3", last, 4 * width, 1, 1);
  if (projects)
    input = convolution(net, block + ".downsample.0", block + ".downsample.1", input, 4 * width, 1,
                        stride);
  net.add(block + ".add", Add{}, {last, input});
  return net.add(block + ".relu3", Relu{});
}

Network build(const char* name, std::array<int, 4> blocks) {
  NetworkBuilder net(name, Shape::image(3, 224, 224), imagenet_sample);
  convolution(net, "conv1", "bn1", "input", 64, 7, 2);
  net.add("relu", Relu{});
  std::string last =
      net.add("maxpool", MaxPool{{.kernel = square(3), .stride = square(2), .padding = square(1)}});
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string block_name =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      last = bottleneck(net, block_name, last, width, stage > 0 && block == 0 ? 2 : 1, block == 0);
    }
  }
  net.add("avgpool", AdaptiveAveragePool{square(1)});
  net.add("flatten", Flatten{});
  net.add("fc", FullyConnected{1000});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace

Network resnet50() {
  return build("resnet50", {3, 4, 6, 3});
}
Network resnet101() {
  return build("resnet101", {3, 4, 23, 3});
}
Network resnet152() {
  return build("resnet152", {3, 8, 36, 3});
}

// The CIFAR form of He 2015, section 4.2, with two blocks in each stage.
Network resnet_small() {
  NetworkBuilder net("resnet-small", Shape::image(1, 28, 28), small_image_sample);
  convolution(net, "conv1", "bn1", "input", 16, 3, 1);
  std::string last = net.add("relu", Relu{});
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t channels = std::int64_t{16} << stage;
    for (int block = 0; block < 2; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const bool projects = stage > 0 && block == 0;
      convolution(net, name + ".conv1", name + ".bn1", last, channels, 3, projects ? 2 : 1);
      const std::string middle = net.add(name + ".relu1", Relu{});
      const std::string out =
          convolution(net, name + ".conv2", name + ".bn2", middle, channels, 3, 1);
      if (projects)
        last =
            convolution(net, name + ".downsample.0", name + ".downsample.1", last, channels, 1, 2);
      net.add(name + ".add", Add{}, {out, last});
      last = net.add(name + ".relu2", Relu{});
    }
  }
  net.add("avgpool", AdaptiveAveragePool{square(1)});
  net.add("flatten", Flatten{});
  net.add("fc", FullyConnected{10});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace paceline::models
