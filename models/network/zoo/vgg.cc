// VGG-16: configuration D of Simonyan & Zisserman 2014, table 1.
#include "models/network/zoo/families.h"

namespace paceline::models {

Network vgg16() {
  NetworkBuilder net("vgg16", Shape::image(3, 224, 224), imagenet_sample);
  struct Stage {
    int convolutions;
    std::int64_t channels;
  };
  constexpr Stage stages[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
  int number = 0;
  for (const Stage& stage : stages) {
    ++number;
    for (int i = 1; i <= stage.convolutions; ++i) {
      const std::string suffix = std::to_string(number) + "_" + std::to_string(i);
      net.add("conv" + suffix,
              Convolution{.channels = stage.channels, .kernel = square(3), .padding = square(1)});
      net.add("relu" + suffix, Relu{});
    }
    net.add("pool" + std::to_string(number), MaxPool{{.kernel = square(2), .stride = square(2)}});
  }
  net.add("flatten", Flatten{});
  for (const std::string suffix : {"6", "7"}) {
    net.add("fc" + suffix, FullyConnected{4096});
    net.add("relu" + suffix, Relu{});
    net.add("dropout" + suffix, Dropout{0.5});
  }
  net.add("fc8", FullyConnected{1000});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace paceline::models
