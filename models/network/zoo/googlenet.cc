// GoogLeNet with both auxiliary heads (Szegedy 2014), as Caffe ships it: names and order are those
// of its bvlc_googlenet. The weights of the heads' losses, 0.3 each, change no cost and are not
// stated.
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

// Channels of the branches of an inception module: 1x1, 3x3 behind a reduction, 5x5 behind one, and
// a 1x1 behind a pooling.
struct Module {
  const char* number;
  std::int64_t one;
  std::int64_t reduce3;
  std::int64_t three;
  std::int64_t reduce5;
  std::int64_t five;
  std::int64_t pool;
};

constexpr Module at_28[] = {{"3a", 64, 96, 128, 16, 32, 32}, {"3b", 128, 128, 192, 32, 96, 64}};
constexpr Module at_14[] = {{"4a", 192, 96, 208, 16, 48, 64},
                            {"4b", 160, 112, 224, 24, 64, 64},
                            {"4c", 128, 128, 256, 24, 64, 64},
                            {"4d", 112, 144, 288, 32, 64, 64},
                            {"4e", 256, 160, 320, 32, 128, 128}};
constexpr Module at_7[] = {{"5a", 256, 160, 320, 32, 128, 128},
                           {"5b", 384, 192, 384, 48, 128, 128}};

class GoogLeNet {
 public:
  // Padded so that the size stays, except for strides.
  std::string convolution(const std::string& name, const std::string& input, std::int64_t channels,
                          std::int64_t kernel, std::int64_t stride = 1) {
    net_.add(name,
             Convolution{.channels = channels,
                         .kernel = square(kernel),
                         .stride = square(stride),
                         .padding = square(kernel / 2)},
             {input});
    return net_.add(name + "/relu", Relu{});
  }
  std::string halved(const std::string& number, const std::string& input) {
    return net_.add("pool" + number + "/3x3_s2",
                    MaxPool{{.kernel = square(3), .stride = square(2), .ceil = true}}, {input});
  }
  std::string normalised(const std::string& name) { return net_.add(name, Lrn{5}); }
  std::string module(const Module& m, const std::string& input) {
    const std::string name = std::string("inception_") + m.number;
    const std::string one = convolution(name + "/1x1", input, m.one, 1);
    const std::string reduced3 = convolution(name + "/3x3_reduce", input, m.reduce3, 1);
    const std::string three = convolution(name + "/3x3", reduced3, m.three, 3);
    const std::string reduced5 = convolution(name + "/5x5_reduce", input, m.reduce5, 1);
    const std::string five = convolution(name + "/5x5", reduced5, m.five, 5);
    const std::string pooled = net_.add(
        name + "/pool", MaxPool{{.kernel = square(3), .stride = square(1), .padding = square(1)}},
        {input});
    const std::string projected = convolution(name + "/pool_proj", pooled, m.pool, 1);
    return net_.add(name + "/output", Concat{}, {one, three, five, projected});
  }
  void auxiliary_head(const std::string& number, const std::string& input) {
    const std::string name = "loss" + number;
    const std::string pooled =
        net_.add(name + "/ave_pool",
                 AveragePool{{.kernel = square(5), .stride = square(3), .ceil = true}}, {input});
    convolution(name + "/conv", pooled, 128, 1);
    net_.add(name + "/flatten", Flatten{});
    net_.add(name + "/fc", FullyConnected{1024});
    net_.add(name + "/relu_fc", Relu{});
    net_.add(name + "/drop_fc", Dropout{0.7});
    classify(number);
  }
  [[nodiscard]] Network finish(const std::string& input) {
    net_.add("pool5/7x7_s1", AveragePool{{.kernel = square(7), .stride = square(1)}}, {input});
    net_.add("pool5/drop_7x7_s1", Dropout{0.4});
    net_.add("pool5/flatten", Flatten{});
    classify("3");
    net_.add("loss", Add{}, losses_);
    return net_.build();
  }

 private:
  void classify(const std::string& number) {
    net_.add("loss" + number + "/classifier", FullyConnected{1000});
    losses_.push_back(net_.add("loss" + number + "/loss", SoftmaxCrossEntropy{}));
  }

  NetworkBuilder net_{"googlenet", Shape::image(3, 224, 224), imagenet_sample};
  std::vector<std::string> losses_;
};

}  // namespace

Network googlenet() {
  GoogLeNet n;
  n.halved("1", n.convolution("conv1/7x7_s2", "input", 64, 7, 2));
  const std::string norm1 = n.normalised("pool1/norm1");
  n.convolution("conv2/3x3", n.convolution("conv2/3x3_reduce", norm1, 64, 1), 192, 3);
  std::string last = n.halved("2", n.normalised("conv2/norm2"));
  for (const Module& m : at_28) last = n.module(m, last);
  last = n.halved("3", last);
  for (const Module& m : at_14) {
    last = n.module(m, last);
    const std::string number = m.number;
    if (number == "4a") n.auxiliary_head("1", last);
    if (number == "4d") n.auxiliary_head("2", last);
  }
  last = n.halved("4", last);
  for (const Module& m : at_7) last = n.module(m, last);
  return n.finish(last);
}

}  // namespace paceline::models
