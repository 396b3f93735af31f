// What tests of networks on CUDA devices share: a network with its arrays, and small networks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/copies.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/network/cuda/step_library.h"
#include "tests/support/network_trial.h"

namespace paceline::test {

using models::Extent;
using models::LayerKind;
using models::Network;
using models::NetworkBuilder;
using models::NumberType;
using models::Shape;
using models::square;
using runtime::ArrayView;
using runtime::CudaDevice;
using runtime::CudaNetwork;
using runtime::Memory;
using runtime::MemoryKind;
using runtime::Pass;
using runtime::Stream;
using runtime::Token;
using runtime::TrainableNetworkOptions;
namespace cuda = runtime::cuda;

// A network on a device, with the arrays of weights and gradients that its caller has.
class OnDevice {
 public:
  // Layers are computed by what `open` gives, or by our own kernels.
  using Open = std::function<std::unique_ptr<cuda::StepLibraries>(int device)>;
  OnDevice(const NetworkTrial& trial, const TrainableNetworkOptions& options, int device = 0,
           const Open& open = {})
      : trial_(trial),
        device_(device),
        libraries_(open ? open(device) : nullptr),
        network_(device_, trial.network(), options, libraries_ ? libraries_->make() : nullptr),
        stream_(device_.make_stream()),
        weights_(device_.allocate(bytes(), MemoryKind::device)),
        gradients_(device_.allocate(bytes(), MemoryKind::device)) {
    copy_from_host(device_, *stream_, trial.weights(), weights_.array(NumberType::fp32));
    take_weights();
  }

  CudaNetwork& network() { return network_; }
  CudaDevice& device() { return device_; }
  Stream& stream() { return *stream_; }
  [[nodiscard]] ArrayView gradients() const { return gradients_.array(NumberType::fp32); }
  [[nodiscard]] ArrayView weights() const { return weights_.array(NumberType::fp32); }

  void take_weights() {
    stream_->wait_for(network_.take_weights(
        weights(), 0, static_cast<int>(network_.parameters().size()), stream_->record()));
  }
  // One pass, and the gradients divided by the loss's scale.
  Gradients pass(float loss_scale, std::uint64_t seed = 1) {
    Gradients result;
    result.loss = network_.forward(trial_.images(), trial_.labels(), Pass::training, seed).loss;
    const std::vector<float> logits = network_.logits();
    result.logits.assign(logits.begin(), logits.end());
    Token last;
    network_.compute_gradients(loss_scale, gradients(),
                               [&](int, const Token& token) { last = token; });
    stream_->wait_for(last);
    for (const float g : to_host(device_, *stream_, gradients()))
      result.weights.push_back(static_cast<double>(g) / static_cast<double>(loss_scale));
    return result;
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return trial_.weights().size() * sizeof(float); }

  const NetworkTrial& trial_;
  CudaDevice device_;
  std::unique_ptr<cuda::StepLibraries> libraries_;
  CudaNetwork network_;
  std::unique_ptr<Stream> stream_;
  Memory weights_;
  Memory gradients_;
};

// A layer between a convolution, in whose gradients its data gradient shows, and a fully connected
// layer that reads an image.
inline Network around(const LayerKind& layer, std::int64_t channels = 6,
                      const Extent& input = {9, 7}) {
  NetworkBuilder net("around", Shape::image(3, input.height, input.width));
  net.add("before",
          models::Convolution{.channels = channels, .kernel = square(3), .padding = square(1)});
  net.add("layer", layer);
  net.add("fc", models::FullyConnected{7});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// Two branches of one value, which are added and joined, and a value that is read twice.
inline Network branches() {
  NetworkBuilder net("branches", Shape::image(3, 8, 8));
  net.add("stem", models::Convolution{.channels = 6, .kernel = square(3), .padding = square(1)});
  net.add("left", models::Convolution{.channels = 6, .kernel = square(1)}, {"stem"});
  net.add("right", models::BatchNorm{}, {"stem"});
  net.add("sum", models::Add{}, {"left", "right", "stem"});
  net.add("relu", models::Relu{}, {"sum"});
  net.add("joined", models::Concat{}, {"relu", "left", "relu"});
  net.add("pool", models::MaxPool{{.kernel = square(3), .stride = square(2), .ceil = true}});
  net.add("flatten", models::Flatten{});
  net.add("dropout", models::Dropout{0.3});
  net.add("hidden", models::FullyConnected{9});
  net.add("fc", models::FullyConnected{5, false});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

inline std::vector<LayerKind> kinds() {
  return {models::Convolution{.channels = 8, .kernel = square(3), .bias = false},
          models::Convolution{.channels = 6,
                              .kernel = {3, 2},
                              .stride = {2, 1},
                              .padding = {1, 0},
                              .dilation = {1, 2},
                              .groups = 3},
          models::FullyConnected{11},
          models::BatchNorm{},
          models::Relu{},
          models::MaxPool{{.kernel = square(3), .stride = square(2), .padding = square(1)}},
          models::MaxPool{{.kernel = {2, 3}, .stride = {2, 1}, .ceil = true}},
          models::AveragePool{{.kernel = square(2), .stride = square(2)}},
          models::AveragePool{
              {.kernel = square(3), .stride = square(2), .padding = square(1), .ceil = true}},
          models::AdaptiveAveragePool{{1, 1}},
          models::AdaptiveAveragePool{{4, 5}},
          models::Lrn{3},
          models::Lrn{5},
          models::Dropout{0.25},
          models::Flatten{}};
}

// A residual block, whose batch norm, add and ReLU are one step; a flattened image that is normalised;
// and a value with more readers than one kernel adds gradients of.
inline Network fused() {
  NetworkBuilder net("fused", Shape::image(3, 6, 6));
  net.add("conv1", models::Convolution{.channels = 8, .kernel = square(3), .padding = square(1)});
  net.add("bn1", models::BatchNorm{});
  net.add("relu1", models::Relu{});
  net.add("conv2", models::Convolution{.channels = 8, .kernel = square(3), .padding = square(1)});
  net.add("bn2", models::BatchNorm{});
  net.add("sum", models::Add{}, {"bn2", "relu1"});
  net.add("relu2", models::Relu{});
  net.add("flat", models::Flatten{});
  net.add("bn3", models::BatchNorm{});
  net.add("hidden", models::FullyConnected{9});
  net.add("relu3", models::Relu{});
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back("fc" + std::to_string(i));
    net.add(all.back(), models::FullyConnected{2}, {"relu3"});
  }
  net.add("logits", models::Concat{}, all);
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

}  // namespace paceline::test
