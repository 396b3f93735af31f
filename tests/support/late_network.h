// A network whose weights and gradients are in the memory of a device, such as a LateDevice: the
// CPU's network computes, and kernels of the device carry gradients to where they belong, late.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/network/cpu_network.h"

namespace paceline::test {

class LateNetwork final : public runtime::TrainableNetwork {
 public:
  LateNetwork(runtime::Device& device, const models::Network& network,
              const runtime::TrainableNetworkOptions& options)
      : cpu_(network, options),
        gradients_(static_cast<std::size_t>(cpu_.parameter_elements())),
        staged_weights_(
            device.allocate(gradients_.size() * sizeof(float), runtime::MemoryKind::pinned)),
        staged_gradients_(
            device.allocate(gradients_.size() * sizeof(float), runtime::MemoryKind::pinned)),
        stream_(device.make_stream()) {
    const runtime::ArrayView staged = staged_weights_.array(runtime::NumberType::fp32);
    std::vector<runtime::WorkingCopy> copies;
    for (const runtime::ParameterPlace& place : parameters()) {
      const auto first = static_cast<std::size_t>(place.offset);
      const auto count = static_cast<std::size_t>(place.elements);
      copies.push_back(runtime::WorkingCopy::in_order(staged.part(first, count), first));
    }
    copies_ = runtime::WorkingCopies(std::move(copies));
  }

  [[nodiscard]] const runtime::NetworkTraits& traits() const override { return cpu_.traits(); }
  [[nodiscard]] runtime::ArrayView running_statistics() override {
    return cpu_.running_statistics();
  }
  runtime::Token take_weights(const runtime::ConstArrayView& weights, int first, int count,
                              const runtime::Token& when) override {
    const runtime::ArrayView staged =
        staged_weights_.array(runtime::NumberType::fp32).part(0, weights.elements);
    stream_->wait_for(when);
    stream_->start(runtime::Cast{weights, staged});
    const runtime::Token taken = stream_->record();
    runtime::wait_for(taken, Seconds{60}, "take the weights");
    cpu_.set_weights(runtime::host_floats(staged), first, count);
    written_ = {};
    return taken;
  }
  // The copies are what the CPU takes weights from before a pass, so that nothing reads them later.
  [[nodiscard]] const runtime::WorkingCopies* working_copies() const override { return &copies_; }
  void use_working_copies(const runtime::Token& written) override { written_ = written; }
  runtime::PassOutcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                               runtime::Pass pass, std::uint64_t seed) override {
    if (written_.source() != nullptr) {
      runtime::wait_for(written_, Seconds{60}, "use the working copies");
      cpu_.set_weights(runtime::host_floats(staged_weights_.array(runtime::NumberType::fp32)), 0,
                       static_cast<int>(parameters().size()));
      written_ = {};
    }
    return cpu_.forward(images, labels, pass, seed);
  }
  void compute_gradients(float loss_scale, const runtime::ArrayView& gradients,
                         const GradientReady& ready) override {
    runtime::wait_for(stream_->record(), Seconds{60}, "use the staging memory again");
    const runtime::ArrayView staged = staged_gradients_.array(runtime::NumberType::fp32);
    cpu_.backward(loss_scale, gradients_, [&](int parameter) {
      const runtime::ParameterPlace& place = parameters()[static_cast<std::size_t>(parameter)];
      const auto first = static_cast<std::size_t>(place.offset);
      const auto count = static_cast<std::size_t>(place.elements);
      std::ranges::copy(std::span(gradients_).subspan(first, count),
                        runtime::host_floats(staged.part(first, count)).begin());
      stream_->start(runtime::Cast{staged.part(first, count), gradients.part(first, count)});
      ready(parameter, stream_->record());
    });
  }
  [[nodiscard]] std::vector<float> logits() const override { return cpu_.logits(); }
  void observe(runtime::LayerObserver* observer) override { cpu_.observe(observer); }

 private:
  runtime::CpuNetwork cpu_;
  std::vector<float> gradients_;
  runtime::Memory staged_weights_;
  runtime::Memory staged_gradients_;
  std::unique_ptr<runtime::Stream> stream_;
  runtime::WorkingCopies copies_;
  runtime::Token written_;
};

}  // namespace paceline::test
