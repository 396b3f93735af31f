// The steps of an iteration against the network that they are of: what each computes, in symbols,
// and what it costs. No cuDNN takes part.
#include "runtime/network/steps/layer_steps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/network/work.h"
#include "models/network/zoo.h"
#include "tests/support/drawn_network.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"
#include "tests/support/golden.h"

namespace paceline::runtime::steps {
namespace {

using models::Network;
using models::network_input;
using test::drawn;
using test::error_of;
using testing::HasSubstr;
using Kind = Tensor::Kind;
using Product = Convolution::Product;
using Number = std::uint64_t;  // sums wrap around

constexpr std::array networks = {"alexnet",      "alexnet-bn",   "alexnet-bn-refined", "vgg16",
                                 "inception-v3", "inception-v4", "resnet50",           "resnet101",
                                 "resnet152",    "resnet-small", "cnn-small"};

Number hashed(const std::string& what, Number input) {
  return std::hash<std::string>{}(fmt::format("{} {}", what, input));
}

// What the network says: the output of each layer in symbols, and its gradient, which is the sum over
// all paths to the loss of the product of the derivatives on the way.
class Expected {
 public:
  explicit Expected(const Network& network) : network_(network) {
    const auto& layers = network.layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const models::Layer& layer = layers[i];
      const std::string name = fmt::format("{} {}", models::name(layer.kind), i);
      if (std::holds_alternative<models::Add>(layer.kind)) {
        Number sum = 0;
        for (const int input : layer.inputs) sum += output(input);
        outputs_.push_back(sum);
      } else if (std::holds_alternative<models::Flatten>(layer.kind)) {
        outputs_.push_back(output(layer.inputs[0]));
      } else if (std::holds_alternative<models::Relu>(layer.kind)) {
        outputs_.push_back(hashed("relu", output(layer.inputs[0])));
      } else {
        Number all = 0;
        for (const int input : layer.inputs) all = hashed("and", all + output(input));
        outputs_.push_back(hashed(name, all));
      }
    }
    paths_.assign(layers.size(), 0);
    paths_.back() = 1;
    for (std::size_t i = layers.size(); i-- > 0;) {
      for (const int input : layers[i].inputs) {
        if (input == network_input) continue;
        paths_[static_cast<std::size_t>(input)] += paths_[i] * derivative(static_cast<int>(i));
      }
    }
  }
  // A ReLU's derivative is a number of its own, and that of any other layer one.
  [[nodiscard]] Number derivative(int layer) const {
    const bool is_relu = std::holds_alternative<models::Relu>(
        network_.layers()[static_cast<std::size_t>(layer)].kind);
    return is_relu ? hashed("derivative", static_cast<Number>(layer)) | 1 : 1;
  }
  // The derivative of the only reader, which has to be a ReLU.
  [[nodiscard]] std::optional<Number> derivative_behind(int layer) const {
    std::optional<Number> found;
    int readers = 0;
    for (int i = 0; i < static_cast<int>(network_.layers().size()); ++i) {
      for (const int input : network_.layers()[static_cast<std::size_t>(i)].inputs) {
        if (input != layer) continue;
        ++readers;
        found = derivative(i);
      }
    }
    return readers == 1 && found != Number{1} ? found : std::nullopt;
  }
  [[nodiscard]] Number output(int value) const {
    return value == network_input ? images : outputs_[static_cast<std::size_t>(value)];
  }
  [[nodiscard]] Number paths(int layer) const { return paths_[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] int input_of(int layer) const {
    return network_.layers()[static_cast<std::size_t>(layer)].inputs[0];
  }
  // The name under which a layer's own work goes into its output.
  [[nodiscard]] std::string own_name(int layer) const {
    return fmt::format(
        "{} {}", models::name(network_.layers()[static_cast<std::size_t>(layer)].kind), layer);
  }

 private:
  static constexpr Number images = 0x9e3779b97f4a7c15;  // no gradient
  const Network& network_;
  std::vector<Number> outputs_;
  std::vector<Number> paths_;
};

// Runs steps in symbols, and finds what they do wrong.
class Interpreter {
 public:
  Interpreter(const Network& network, const std::vector<Step>& steps)
      : network_(network), expected_(network), steps_(steps) {}

  // The first fault; empty if there is none.
  std::string fault() {
    std::size_t number = 0;
    for (const Step& step : steps_) {
      run(step);
      if (!fault_.empty()) return fmt::format("step {}: {}", number, fault_);
      ++number;
    }
    for (const models::Gradient& gradient : models::work(network_).gradients) {
      for (const int part : {0, 1}) {
        const bool is_bias = gradient.name.ends_with(".bias") || gradient.name.ends_with(".beta");
        if (is_bias != (part == 1)) continue;
        const auto found = values_.find({Kind::parameter_gradient, gradient.layer, part});
        if (found == values_.end()) return "no gradient of " + gradient.name;
        if (found->second != expected_.paths(gradient.layer))
          return "a wrong gradient of " + gradient.name;
        ++gradients_;
      }
    }
    std::size_t written = 0;
    for (const auto& [tensor, value] : values_) written += tensor.kind == Kind::parameter_gradient;
    if (written != models::work(network_).gradients.size()) return "gradients of no parameter";
    return "";
  }

 private:
  void say(const std::string& problem) {
    if (fault_.empty()) fault_ = problem;
  }

  [[nodiscard]] const Tensor* find(const std::vector<Operand>& operands, Role role) const {
    for (const Operand& operand : operands) {
      if (operand.role == static_cast<int>(role)) return &operand.tensor;
    }
    return nullptr;
  }
  Number value(const Tensor& tensor) {
    const auto found = values_.find(tensor);
    if (found == values_.end()) {
      say(fmt::format("reads tensor {} of layer {} before it is there",
                      static_cast<int>(tensor.kind), tensor.layer));
      return 0;
    }
    return found->second;
  }
  Number read(const Step& step, Role role) {
    const Tensor* tensor = find(step.reads, role);
    if (tensor == nullptr) {
      say(fmt::format("has no operand {}", static_cast<int>(role)));
      return 0;
    }
    return value(*tensor);
  }
  void write(const Tensor& tensor, Number value) {
    if (!values_.emplace(tensor, value).second && tensor.kind != Kind::statistics)
      say("writes a tensor twice");
    if (tensor.kind == Kind::data && value != expected_.output(tensor.layer))
      say("computes another output");
  }
  void write(const Step& step, Role role, Number value) {
    const Tensor* tensor = find(step.writes, role);
    if (tensor == nullptr) return say(fmt::format("does not write {}", static_cast<int>(role)));
    write(*tensor, value);
  }
  int layer_of(const Step& step, Role role) {
    const Tensor* tensor = find(step.reads, role);
    if (tensor == nullptr) tensor = find(step.writes, role);
    if (tensor == nullptr) {
      say("has no weights");
      return 0;
    }
    return tensor->layer;
  }
  Number sum_of_terms(const Step& step, int terms) {
    Number sum = 0;
    int found = 0;
    for (const Operand& operand : step.reads) {
      if (operand.role < static_cast<int>(Role::term)) continue;
      if (operand.role != static_cast<int>(Role::term) + found++) say("numbers its terms wrong");
      sum += value(operand.tensor);
    }
    if (found != terms) say("has other terms than its operation");
    return sum;
  }
  Number own(int layer, Number input) {
    return hashed(expected_.own_name(layer), hashed("and", input));
  }
  void must_be(Number found, Number wanted, const char* what) {
    if (found != wanted) say(fmt::format("reads another {}", what));
  }

  void run(const Step& step) {
    if (const auto* operation = std::get_if<Operation>(&step.work)) {
      std::visit([&](const auto& o) { compute(step, o); }, *operation);
    } else {
      run_own(step);
    }
  }

  void compute(const Step& step, const Convolution& c) {
    if (c.product == Product::forward) {
      const int layer = layer_of(step, Role::w);
      if (c.bias != (find(step.reads, Role::bias) != nullptr)) say("has a bias or has not");
      const Number y = own(layer, read(step, Role::x));
      return write(step, Role::y, c.relu ? hashed("relu", y) : y);
    }
    const bool of_data = c.product == Product::data_gradient;
    const int layer = layer_of(step, of_data ? Role::w : Role::dw);
    const Number dy = read(step, Role::dy);
    must_be(dy, expected_.paths(layer), "gradient");
    if (!of_data)
      must_be(read(step, Role::x), expected_.output(expected_.input_of(layer)), "input");
    write(step, of_data ? Role::dx : Role::dw, dy);
  }
  void compute(const Step& step, const BatchNorm& b) {
    const int layer = layer_of(step, Role::scale);
    const Number x = read(step, Role::x);
    must_be(x, expected_.output(expected_.input_of(layer)), "input");
    if (b.pass == Pass::forward) {
      Number y = own(layer, x);
      if (b.residual) y += read(step, Role::residual);
      write(step, Role::y, b.relu ? hashed("relu", y) : y);
      write(step, Role::mean, 1);
      write(step, Role::inverse_deviation, 1);
    } else {
      const Number dy = read(step, Role::dy);
      read(step, Role::mean);
      read(step, Role::inverse_deviation);
      if (b.relu != (find(step.reads, Role::shift) != nullptr)) say("has a shift or has not");
      Number gradient = dy;
      if (b.relu) {
        const std::optional<Number> derivative = expected_.derivative_behind(layer);
        if (!derivative) return say("takes a ReLU in that is not there");
        gradient *= *derivative;
      }
      for (const Role role : {Role::dx, Role::scale_gradient, Role::shift_gradient})
        write(step, role, gradient);
    }
  }
  void compute(const Step& step, const Pool& p) {
    if (p.pass == Pass::forward) {
      write(step, Role::y, own(step.layer, read(step, Role::x)));
      if (p.kind == Pool::Kind::max) write(step, Role::index, 1);
    } else {
      if (p.kind == Pool::Kind::max) read(step, Role::index);
      write(step, Role::dx, read(step, Role::dy));
    }
  }
  void compute(const Step& step, const Sum& s) {
    const Number sum = sum_of_terms(step, s.terms);
    write(step, Role::y, s.relu ? hashed("relu", sum) : sum);
  }
  void compute(const Step& step, const ReluBackward& r) {
    must_be(read(step, Role::y), expected_.output(step.layer), "output of the ReLU");
    const Number dx = sum_of_terms(step, r.terms) * expected_.derivative(step.layer);
    write(step, Role::dx, dx);
  }

  // Parameters are there from the start. The first operand of a backward kernel is the gradient,
  // and the loss makes one.
  void run_own(const Step& step) {
    const OwnKernel kernel = std::get<OwnKernel>(step.work);
    if (kernel == OwnKernel::load_input) {
      write({Kind::data, network_input, 0}, expected_.output(network_input));
      for (std::size_t i = 0; i < network_.layers().size(); ++i) {
        const int layer = static_cast<int>(i);
        for (const int part : {0, 1}) {
          values_.emplace(Tensor{Kind::parameter, layer, part}, 1);
          values_.emplace(Tensor{Kind::statistics, layer, part}, 1);
        }
      }
      return;
    }
    Number all = 0;
    for (const Operand& operand : step.reads) all = hashed("and", all + value(operand.tensor));
    const Number gradient = kernel == OwnKernel::loss ? 1 : value(step.reads.at(0).tensor);
    for (const Operand& operand : step.writes) {
      if (operand.tensor.kind == Kind::kept) {
        write(operand.tensor, 1);
      } else if (step.pass == Pass::forward && kernel == OwnKernel::flatten) {
        write(operand.tensor, gradient);  // the value itself, in another order
      } else if (step.pass == Pass::forward) {
        write(operand.tensor, hashed(expected_.own_name(step.layer), all));
      } else {
        write(operand.tensor, gradient);
      }
    }
  }

  const Network& network_;
  Expected expected_;
  const std::vector<Step>& steps_;
  std::map<Tensor, Number> values_;
  std::string fault_;
  int gradients_ = 0;
};

std::string fault_of(const Network& network) {
  const std::vector<Step> steps = layer_steps(network, 2);
  return Interpreter(network, steps).fault();
}

TEST(LayerSteps, ComputeWhatTheNetworkSays) {
  for (const char* name : networks) EXPECT_EQ(fault_of(models::zoo_network(name)), "") << name;
}

RC_GTEST_PROP(LayerSteps, ComputeWhatADrawnNetworkSays, ()) {
  RC_ASSERT(fault_of(test::drawn_network()) == "");
}

// Wherever one operand of one step is another, or one step is missing, the interpreter says so.
TEST(LayerSteps, MutantsOfAreFound) {
  const Network network = models::zoo_network("resnet-small");
  const std::vector<Step> steps = layer_steps(network, 2);
  int mutants = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<Step> without = steps;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(Interpreter(network, without).fault(), "") << "without step " << i;
    for (std::size_t k = 0; k < steps[i].reads.size(); ++k) {
      const Tensor& read = steps[i].reads[k].tensor;
      if (read.kind != Kind::data && read.kind != Kind::gradient &&
          read.kind != Kind::gradient_part)
        continue;
      std::vector<Step> other = steps;
      other[i].reads[k].tensor = {Kind::data, network_input, 0};
      if (other[i] == steps[i]) continue;
      EXPECT_NE(Interpreter(network, other).fault(), "") << "step " << i << ", operand " << k;
      ++mutants;
    }
  }
  EXPECT_GT(mutants, 100);
}

TEST(LayerSteps, CostWhatTheNetworkCosts) {
  for (const char* name : networks) {
    const Network network = models::zoo_network(name);
    const models::NetworkWork work = models::work(network);
    constexpr int batch = 3;
    std::map<std::pair<int, Product>, std::int64_t> flops_of;
    for (const Step& step : layer_steps(network, batch)) {
      const auto* operation = std::get_if<Operation>(&step.work);
      if (operation == nullptr || flops(*operation) == 0) continue;
      for (const auto* operands : {&step.reads, &step.writes}) {
        for (const Operand& operand : *operands) {
          if (operand.role == static_cast<int>(Role::w) ||
              operand.role == static_cast<int>(Role::dw))
            flops_of[{operand.tensor.layer, std::get<Convolution>(*operation).product}] +=
                flops(*operation);
        }
      }
    }
    for (std::size_t i = 0; i < work.layers.size(); ++i) {
      const int layer = static_cast<int>(i);
      // Channels of zeros are computed, too.
      const bool padded = network.layers()[i].inputs[0] == network_input;
      const std::int64_t channels = network.input().channels;
      const auto scaled = [&](std::int64_t count) {
        return batch * (padded ? count / channels * ((channels + 3) / 4 * 4) : count);
      };
      const std::string what = std::string(name) + " " + work.layers[i].name;
      const auto expect = [&](Product product, std::int64_t count) {
        EXPECT_EQ((flops_of[{layer, product}]), scaled(count)) << what;
      };
      expect(Product::forward, work.layers[i].forward_flops);
      expect(Product::data_gradient, work.layers[i].data_gradient_flops);
      expect(Product::filter_gradient, work.layers[i].weight_gradient_flops);
    }
  }
}

// Gradients come in the order of a plan's buckets, so that a bucket is complete as early as it may.
TEST(LayerSteps, GiveGradientsInTheOrderOfBuckets) {
  for (const char* name : networks) {
    const Network network = models::zoo_network(name);
    std::vector<int> layers;
    for (const Step& step : layer_steps(network, 1)) {
      for (const Operand& operand : step.writes) {
        if (operand.tensor.kind == Kind::parameter_gradient) layers.push_back(operand.tensor.layer);
      }
    }
    std::vector<int> expected;
    for (const models::Gradient& gradient : models::work(network).gradients)
      expected.push_back(gradient.layer);
    EXPECT_EQ(layers, expected) << name;
  }
}

std::string text_of(const Network& network, const Tensor& tensor) {
  constexpr std::array<const char*, 7> kinds = {
      "", "gradient of ", "part of ", "parameter", "gradient of parameter", "statistics", "kept"};
  const std::string layer = tensor.layer == network_input
                                ? "input"
                                : network.layers()[static_cast<std::size_t>(tensor.layer)].name;
  const char* kind = kinds[static_cast<std::size_t>(tensor.kind)];
  switch (tensor.kind) {
    case Kind::data:
    case Kind::gradient:
      return kind + layer;
    case Kind::gradient_part:
      return fmt::format("{}{}", kind, layer) +
             (tensor.part > 0 ? fmt::format("#{}", tensor.part) : "");
    default:
      return fmt::format("{} {} of {}", kind, tensor.part, layer);
  }
}

std::string text_of(const Network& network, const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands)
    text += (text.empty() ? "" : ", ") + text_of(network, operand.tensor);
  return text;
}

TEST(LayerSteps, AreAsListed) {
  for (const char* name : {"alexnet", "resnet-small"}) {
    const Network network = models::zoo_network(name);
    std::string text =
        fmt::format("# The steps of {}, batch 64: what they compute, write and read.\n", name);
    for (const Step& step : layer_steps(network, 64)) {
      const auto* operation = std::get_if<Operation>(&step.work);
      text += (operation != nullptr
                   ? key(*operation, models::NumberType::fp16)
                   : fmt::format("own {} {}", steps::name(std::get<OwnKernel>(step.work)),
                                 step.pass == Pass::forward ? "forward" : "backward")) +
              "\n  writes " + text_of(network, step.writes) + "\n  reads  " +
              text_of(network, step.reads) + "\n";
    }
    test::expect_golden(fmt::format("steps/{}.txt", name), text);
  }
}

TEST(LayerSteps, LeaveUnevenPoolsToAKernelOfOurOwn) {
  const auto kernels = [](const models::LayerKind& pool) {
    models::NetworkBuilder net("pools", models::Shape::image(4, 7, 7));
    net.add("conv", models::Convolution{.channels = 4, .kernel = models::square(1)});
    net.add("pool", pool);
    net.add("full", models::FullyConnected{10});
    net.add("loss", models::SoftmaxCrossEntropy{});
    int own = 0;
    for (const Step& step : layer_steps(net.build(), 1)) {
      const auto* kernel = std::get_if<OwnKernel>(&step.work);
      own += kernel != nullptr && *kernel == OwnKernel::uneven_pool;
    }
    return own;
  };
  using models::square;
  const models::Pool reaching{.kernel = square(2), .stride = square(2), .ceil = true};
  EXPECT_EQ(kernels(models::AveragePool{reaching}), 2);
  EXPECT_EQ(kernels(models::MaxPool{reaching}), 0);
  EXPECT_EQ(kernels(models::AdaptiveAveragePool{square(2)}), 2);
  EXPECT_EQ(kernels(models::AdaptiveAveragePool{square(7)}), 0);
  EXPECT_EQ(kernels(models::AdaptiveAveragePool{square(1)}), 0);
}

TEST(LayerSteps, PadTheInputForConvolutionsAlone) {
  const auto channels = [](bool pools) {
    models::NetworkBuilder net("input", models::Shape::image(3, 8, 8));
    net.add("conv", models::Convolution{.channels = 4, .kernel = models::square(1)}, {"input"});
    net.add("pool", models::AdaptiveAveragePool{models::square(8)}, {pools ? "input" : "conv"});
    net.add("both", models::Concat{}, {"conv", "pool"});
    net.add("full", models::FullyConnected{10});
    net.add("loss", models::SoftmaxCrossEntropy{});
    const std::vector<Step> steps = layer_steps(net.build(), 1);
    return std::get<Convolution>(std::get<Operation>(steps.at(1).work)).x.channels;
  };
  EXPECT_EQ(channels(false), 4);
  EXPECT_EQ(channels(true), 3);
}

TEST(LayerSteps, RefuseWhatTheyCannotCompute) {
  EXPECT_THAT(error_of([] { return layer_steps(models::zoo_network("resnet-small"), 0); }),
              HasSubstr("a batch of 0"));
  EXPECT_THAT(error_of([] { return layer_steps(models::zoo_network("bert-base"), 1); }),
              HasSubstr("not trained yet"));
}

TEST(LayerSteps, RefuseKindsThatAreOnlyPredicted) {
  const models::Shape image = models::Shape::image(4, 4, 4);
  const std::vector<models::LayerKind> kinds = {
      models::StochasticDepth{},
      models::Scale{},
      models::Rearrange{image},
      models::Slice{models::Shape::image(2, 4, 4)},
      models::Pad{models::Shape::image(4, 5, 5)},
      models::RelativePositionBias{.entries = 9, .heads = 4, .window = 4}};
  for (const models::LayerKind& kind : kinds) {
    models::NetworkBuilder net("net", image);
    net.add("layer", kind);
    net.add("full", models::FullyConnected{10});
    net.add("loss", models::SoftmaxCrossEntropy{});
    EXPECT_THAT(error_of([&] { return layer_steps(net.build(), 1); }),
                HasSubstr("layer 'layer' is of kind " + std::string(models::name(kind)) +
                          ", which is not trained yet"));
  }
  for (const models::LayerKind& kind :
       {models::LayerKind(models::LayerNorm{}), models::LayerKind(models::Linear{4})}) {
    models::NetworkBuilder net("net", image);
    net.add("layer", kind);
    net.add("full", models::FullyConnected{10});
    net.add("loss", models::SoftmaxCrossEntropy{});
    EXPECT_THAT(error_of([&] { return layer_steps(net.build(), 1); }),
                HasSubstr("layer 'layer' is of kind " + std::string(models::name(kind)) +
                          ", which is trained on CPUs only yet"));
  }
  for (const models::LayerKind& kind :
       {models::LayerKind(models::ClassToken{}), models::LayerKind(models::MeanToken{})}) {
    models::NetworkBuilder net("net", models::Shape::sequence(4, 4));
    net.add("layer", kind);
    net.add("flatten", models::Flatten{});
    net.add("loss", models::SoftmaxCrossEntropy{});
    EXPECT_THAT(error_of([&] { return layer_steps(net.build(), 1); }),
                HasSubstr("which is not trained yet"));
  }
  models::NetworkBuilder net("net", image);
  net.add("layer", models::Multiply{}, {"input", "input"});
  net.add("flatten", models::Flatten{});
  net.add("loss", models::SoftmaxCrossEntropy{});
  EXPECT_THAT(error_of([&] { return layer_steps(net.build(), 1); }),
              HasSubstr("is of kind multiply, which is trained on CPUs only yet"));
}

// Fully connected layers read a flattened image as it stands, and so do they through layers that
// take each element by itself. Any other reader gets it in the order of the caller's arrays.
TEST(LayerSteps, FlattenWhereAReaderAsksForTheOrder) {
  const auto flattens = [](const std::vector<models::LayerKind>& behind, bool is_image = true) {
    models::NetworkBuilder net("flat", models::Shape::image(4, is_image ? 2 : 1, 1));
    net.add("conv", models::Convolution{.channels = 4, .kernel = models::square(1)});
    net.add("flatten", models::Flatten{});
    for (std::size_t i = 0; i < behind.size(); ++i) net.add(fmt::format("l{}", i), behind[i]);
    net.add("full", models::FullyConnected{10});
    net.add("loss", models::SoftmaxCrossEntropy{});
    const Network network = net.build();
    EXPECT_EQ(fault_of(network), "");
    int count = 0;
    for (const Step& step : layer_steps(network, 1))
      count += step.work == decltype(step.work){OwnKernel::flatten};
    const bool as_image = stored_shapes(network, 1).at(2).height == 2;
    EXPECT_EQ(as_image, count == 0 && is_image);
    return count;
  };
  EXPECT_EQ(flattens({}), 0);
  EXPECT_EQ(flattens({models::Relu{}, models::Dropout{}, models::Flatten{}}), 0);
  EXPECT_EQ(flattens({models::BatchNorm{}}), 2);
  EXPECT_EQ(flattens({models::Relu{}, models::BatchNorm{}, models::Relu{}}), 2);
  EXPECT_EQ(flattens({models::BatchNorm{}}, false), 0);
  EXPECT_EQ(flattens({models::Flatten{}, models::Dropout{}, models::BatchNorm{}}), 4);
  // Two readers, of which one asks.
  models::NetworkBuilder net("two", models::Shape::image(4, 2, 2));
  net.add("flatten", models::Flatten{});
  net.add("norm", models::BatchNorm{});
  net.add("full1", models::FullyConnected{10});
  net.add("full2", models::FullyConnected{10}, {"flatten"});
  net.add("sum", models::Add{}, {"full1", "full2"});
  net.add("loss", models::SoftmaxCrossEntropy{});
  EXPECT_EQ(layer_steps(net.build(), 1).at(1).work, (decltype(Step::work){OwnKernel::flatten}));
}

}  // namespace
}  // namespace paceline::runtime::steps
