#include "models/network/network.h"
#include "tests/support/error_of.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/network/shape_inference.h"
#include "models/network/work.h"

namespace paceline::models {
namespace {

Shape shape_after(Shape input, LayerKind kind) {
  NetworkBuilder net("net", input);
  net.add("layer", std::move(kind));
  return infer_shapes(net.build()).back();
}

using test::error_of;

TEST(ShapeInference, ConvolutionByHand) {
  const Shape in = Shape::image(4, 227, 227);
  EXPECT_EQ(shape_after(in, Convolution{.channels = 96, .kernel = square(11), .stride = square(4)}),
            Shape::image(96, 55, 55));
  EXPECT_EQ(shape_after(in, Convolution{.channels = 8, .kernel = {1, 7}, .padding = {0, 3}}),
            Shape::image(8, 227, 227));
  // A 3x3 kernel with dilation 2 spans 5: floor((227 + 2 - 5) / 2) + 1.
  EXPECT_EQ(shape_after(in, Convolution{.channels = 8,
                                        .kernel = square(3),
                                        .stride = square(2),
                                        .padding = square(1),
                                        .dilation = square(2)}),
            Shape::image(8, 113, 113));
  EXPECT_EQ(shape_after(in, Convolution{.channels = 8, .kernel = square(1), .groups = 4}),
            Shape::image(8, 227, 227));
}

// 112: floor((112 - 3) / 2) + 1 = 55, and rounded up 56.
TEST(ShapeInference, PoolingRoundsDownUnlessCeil) {
  const Shape in = Shape::image(64, 112, 112);
  EXPECT_EQ(shape_after(in, MaxPool{{.kernel = square(3), .stride = square(2)}}),
            Shape::image(64, 55, 55));
  EXPECT_EQ(
      shape_after(
          in,
          MaxPool{{.kernel = square(3), .stride = square(2), .padding = square(0), .ceil = true}}),
      Shape::image(64, 56, 56));
  // With ceil, a window that would start in the padding is dropped: 4 wide, kernel 2, stride 2,
  // padding 1.
  EXPECT_EQ(shape_after(Shape::image(1, 4, 4), AveragePool{{.kernel = square(2),
                                                            .stride = square(2),
                                                            .padding = square(1),
                                                            .ceil = true}}),
            Shape::image(1, 3, 3));
  EXPECT_EQ(shape_after(in, AdaptiveAveragePool{square(7)}), Shape::image(64, 7, 7));
}

TEST(ShapeInference, FlattenAndFullyConnected) {
  EXPECT_EQ(shape_after(Shape::image(256, 6, 6), Flatten{}), Shape::vector(9216));
  EXPECT_EQ(shape_after(Shape::image(256, 6, 6), FullyConnected{10}), Shape::vector(10));
}

TEST(ShapeInference, ErrorsNameTheLayer) {
  EXPECT_EQ(error_of([] {
              (void)shape_after(Shape::image(1, 3, 3),
                                Convolution{.channels = 1, .kernel = square(5)});
            }),
            "layer 'layer': kernel 5x5 is larger than its padded input 3x3; use a smaller kernel "
            "or dilation, more padding, or fewer strides before it");
  EXPECT_EQ(error_of([] {
              (void)shape_after(Shape::image(3, 8, 8),
                                Convolution{.channels = 8, .kernel = square(1), .groups = 2});
            }),
            "layer 'layer': 2 groups do not divide 3 input and 8 output channels; choose groups "
            "that divide both");
  EXPECT_EQ(
      error_of([] {
        (void)shape_after(Shape::vector(8), Convolution{.channels = 8, .kernel = square(1)});
      }),
      "layer 'layer': convolution needs an image, and reads a vector of 8; put it before flatten");
}

TEST(Work, ConvolutionByHand) {
  NetworkBuilder net("net", Shape::image(4, 8, 8));
  net.add("conv", Convolution{.channels = 6, .kernel = {3, 1}, .padding = {1, 0}, .groups = 2});
  net.add("conv2", Convolution{.channels = 5, .kernel = square(1), .bias = false});
  const NetworkWork net_work = work(net.build());
  const LayerWork& first = net_work.layers[0];
  EXPECT_EQ(first.parameters[0].shape, (std::vector<std::int64_t>{6, 2, 3, 1}));
  EXPECT_EQ(first.parameter_elements(), 6 * 2 * 3 + 6);
  EXPECT_EQ(first.forward_flops, 2 * 6 * 64 * 2 * 3);
  EXPECT_EQ(first.data_gradient_flops, 0);  // it sees the network's input only
  EXPECT_EQ(first.forward_read, 4 * 64);
  EXPECT_EQ(first.forward_written, 6 * 64);
  EXPECT_EQ(first.kept, 4 * 64);
  EXPECT_EQ(net_work.layers[1].data_gradient_flops, 2 * 5 * 64 * 6);
  EXPECT_EQ(net_work.gradients[0].name, "conv2.weight");
  EXPECT_EQ(net_work.gradients[1].name, "conv.bias");
  EXPECT_EQ(net_work.gradients[2].name, "conv.weight");
}

TEST(NetworkBuilder, RefusesWhatIsNoNetwork) {
  EXPECT_EQ(error_of([] { (void)NetworkBuilder("net", Shape::vector(1)).build(); }),
            "network 'net' is empty; give it at least one layer");
  EXPECT_EQ(error_of([] {
              NetworkBuilder net("net", Shape::vector(1));
              net.add("a", Relu{});
              net.add("a", Relu{});
            }),
            "two layers are called 'a'; give each layer a name of its own");
  EXPECT_EQ(error_of([] {
              NetworkBuilder net("net", Shape::vector(1));
              net.add("relu1", Relu{});
              net.add("relu2", Relu{}, {"relu"});
            }),
            "layer 'relu2' reads 'relu', which is no layer; did you mean 'relu1'?");
  EXPECT_EQ(
      error_of([] {
        NetworkBuilder net("net", Shape::vector(1));
        net.add("a", Relu{});
        net.add("b", Relu{}, {"input"});
        (void)net.build();
      }),
      "nothing reads layer 'a'; connect it, or leave it out; only the last layer has no reader");
}

}  // namespace
}  // namespace paceline::models
