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

}  // namespace paceline::models
