// Inception v3 (Szegedy 2015, without the auxiliary head) and v4 (Szegedy 2016). A "unit" is a
// convolution without bias, a batch norm and a ReLU.
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

class Inception {
 public:
  explicit Inception(const char* name) : net_(name, Shape::image(3, 299, 299), imagenet_sample) {}

  // Padded so that the size stays, unless it is a valid 3x3 or strided.
  struct Unit {
    std::int64_t channels;
    Extent kernel;
    std::int64_t stride = 1;
    bool valid = false;  // no padding
  };

  std::string unit(const Unit& u, const std::string& input) {
    const std::string name = "conv" + std::to_string(++units_);
    const bool padded = u.stride == 1 && !u.valid;
    const Extent padding = padded ? Extent{u.kernel.height / 2, u.kernel.width / 2} : Extent{0, 0};
    net_.add(name,
             Convolution{.channels = u.channels,
                         .kernel = u.kernel,
                         .stride = square(u.stride),
                         .padding = padding,
                         .bias = false},
             {input});
    net_.add(name + "_bn", BatchNorm{});
    return net_.add(name + "_relu", Relu{});
  }
  std::string chain(std::initializer_list<Unit> chained, std::string input) {
    for (const Unit& u : chained) input = unit(u, input);
    return input;
  }
  std::string average(const std::string& input) {
    return net_.add("pool" + std::to_string(++pools_),
                    AveragePool{{.kernel = square(3), .stride = square(1), .padding = square(1)}},
                    {input});
  }
  std::string maximum(const std::string& input) {
    return net_.add("pool" + std::to_string(++pools_),
                    MaxPool{{.kernel = square(3), .stride = square(2)}}, {input});
  }
  std::string concat(const std::vector<std::string>& inputs) {
    return net_.add("mixed" + std::to_string(++mixed_), Concat{}, inputs);
  }
  [[nodiscard]] Network finish(double dropout, const std::string& input) {
    net_.add("avgpool", AdaptiveAveragePool{square(1)}, {input});
    net_.add("dropout", Dropout{dropout});
    net_.add("flatten", Flatten{});
    net_.add("fc", FullyConnected{1000});
    net_.add("loss", SoftmaxCrossEntropy{});
    return net_.build();
  }

 private:
  NetworkBuilder net_;
  int units_ = 0;
  int pools_ = 0;
  int mixed_ = 0;
};

constexpr Extent k1{1, 1};
constexpr Extent k3{3, 3};
constexpr Extent k5{5, 5};
constexpr Extent k1x3{1, 3};
constexpr Extent k3x1{3, 1};
constexpr Extent k1x7{1, 7};
constexpr Extent k7x1{7, 1};

std::string v3_a(Inception& n, const std::string& in, std::int64_t pool_channels) {
  return n.concat({n.unit({64, k1}, in), n.chain({{48, k1}, {64, k5}}, in),
                   n.chain({{64, k1}, {96, k3}, {96, k3}}, in),
                   n.unit({pool_channels, k1}, n.average(in))});
}

std::string v3_b(Inception& n, const std::string& in, std::int64_t width) {
  return n.concat(
      {n.unit({192, k1}, in), n.chain({{width, k1}, {width, k1x7}, {192, k7x1}}, in),
       n.chain({{width, k1}, {width, k7x1}, {width, k1x7}, {width, k7x1}, {192, k1x7}}, in),
       n.unit({192, k1}, n.average(in))});
}

std::string v3_c(Inception& n, const std::string& in) {
  const std::string one = n.unit({320, k1}, in);
  const std::string two = n.unit({384, k1}, in);
  const std::string three = n.chain({{448, k1}, {384, k3}}, in);
  return n.concat({one, n.unit({384, k1x3}, two), n.unit({384, k3x1}, two),
                   n.unit({384, k1x3}, three), n.unit({384, k3x1}, three),
                   n.unit({192, k1}, n.average(in))});
}

std::string v4_stem(Inception& n) {
  std::string last = n.chain({{32, k3, 2}, {32, k3, 1, true}, {64, k3}}, "input");
  last = n.concat({n.maximum(last), n.unit({96, k3, 2}, last)});
  last = n.concat({n.chain({{64, k1}, {96, k3, 1, true}}, last),
                   n.chain({{64, k1}, {64, k1x7}, {64, k7x1}, {96, k3, 1, true}}, last)});
  return n.concat({n.unit({192, k3, 2}, last), n.maximum(last)});
}

std::string v4_a(Inception& n, const std::string& in) {
  return n.concat({n.unit({96, k1}, in), n.chain({{64, k1}, {96, k3}}, in),
                   n.chain({{64, k1}, {96, k3}, {96, k3}}, in), n.unit({96, k1}, n.average(in))});
}

std::string v4_b(Inception& n, const std::string& in) {
  return n.concat({n.unit({384, k1}, in), n.chain({{192, k1}, {224, k1x7}, {256, k7x1}}, in),
                   n.chain({{192, k1}, {192, k7x1}, {224, k1x7}, {224, k7x1}, {256, k1x7}}, in),
                   n.unit({128, k1}, n.average(in))});
}

std::string v4_c(Inception& n, const std::string& in) {
  const std::string one = n.unit({256, k1}, in);
  const std::string two = n.unit({384, k1}, in);
  const std::string three = n.chain({{384, k1}, {448, k3x1}, {512, k1x3}}, in);
  return n.concat({one, n.unit({256, k1x3}, two), n.unit({256, k3x1}, two),
                   n.unit({256, k1x3}, three), n.unit({256, k3x1}, three),
                   n.unit({256, k1}, n.average(in))});
}

}  // namespace

Network inception_v3() {
  Inception n("inception-v3");
  std::string last = n.maximum(n.chain({{32, k3, 2}, {32, k3, 1, true}, {64, k3}}, "input"));
  last = n.maximum(n.chain({{80, k1}, {192, k3, 1, true}}, last));
  for (const std::int64_t pool_channels : {32, 64, 64}) last = v3_a(n, last, pool_channels);
  last = n.concat({n.unit({384, k3, 2}, last), n.chain({{64, k1}, {96, k3}, {96, k3, 2}}, last),
                   n.maximum(last)});
  for (const std::int64_t width : {128, 160, 160, 192}) last = v3_b(n, last, width);
  last = n.concat({n.chain({{192, k1}, {320, k3, 2}}, last),
                   n.chain({{192, k1}, {192, k1x7}, {192, k7x1}, {192, k3, 2}}, last),
                   n.maximum(last)});
  for (int i = 0; i < 2; ++i) last = v3_c(n, last);
  return n.finish(0.5, last);
}

Network inception_v4() {
  Inception n("inception-v4");
  std::string last = v4_stem(n);
  for (int i = 0; i < 4; ++i) last = v4_a(n, last);
  last = n.concat({n.unit({384, k3, 2}, last), n.chain({{192, k1}, {224, k3}, {256, k3, 2}}, last),
                   n.maximum(last)});
  for (int i = 0; i < 7; ++i) last = v4_b(n, last);
  last = n.concat({n.chain({{192, k1}, {192, k3, 2}}, last),
                   n.chain({{256, k1}, {256, k1x7}, {320, k7x1}, {320, k3, 2}}, last),
                   n.maximum(last)});
  for (int i = 0; i < 3; ++i) last = v4_c(n, last);
  return n.finish(0.2, last);
}

}  // namespace paceline::models
