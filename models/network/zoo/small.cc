// Two networks that a CPU trains in minutes, for 28x28 grey images of 10 classes.
#include "models/network/zoo/families.h"

namespace paceline::models {

Network cnn_small() {
  NetworkBuilder net("cnn-small", Shape::image(1, 28, 28), small_image_sample);
  net.add("conv1", Convolution{.channels = 16, .kernel = square(5), .padding = square(2)});
  net.add("relu1", Relu{});
  net.add("pool1", MaxPool{{.kernel = square(2), .stride = square(2)}});
  net.add("conv2", Convolution{.channels = 32, .kernel = square(5), .padding = square(2)});
  net.add("relu2", Relu{});
  net.add("pool2", MaxPool{{.kernel = square(2), .stride = square(2)}});
  net.add("flatten", Flatten{});
  net.add("fc1", FullyConnected{128});
  net.add("relu3", Relu{});
  net.add("fc2", FullyConnected{10});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

// The CIFAR form of He 2015, section 4.2, with two blocks in each stage.
Network resnet_small() {
  NetworkBuilder net("resnet-small", Shape::image(1, 28, 28), small_image_sample);
  const auto convolution = [&net](const std::string& name, const std::string& norm,
                                  const std::string& input, std::int64_t channels,
                                  std::int64_t kernel, std::int64_t stride) {
    net.add(name,
            Convolution{.channels = channels,
                        .kernel = square(kernel),
                        .stride = square(stride),
                        .padding = square(kernel / 2),
                        .bias = false},
            {input});
    return net.add(norm, BatchNorm{});
  };
  convolution("conv1", "bn1", "input", 16, 3, 1);
  std::string last = net.add("relu", Relu{});
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t channels = std::int64_t{16} << stage;
    for (int block = 0; block < 2; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const bool projects = stage > 0 && block == 0;
      convolution(name + ".conv1", name + ".bn1", last, channels, 3, projects ? 2 : 1);
      const std::string middle = net.add(name + ".relu1", Relu{});
      const std::string out = convolution(name + ".conv2", name + ".bn2", middle, channels, 3, 1);
      if (projects)
        last = convolution(name + ".downsample.0", name + ".downsample.1", last, channels, 1, 2);
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
