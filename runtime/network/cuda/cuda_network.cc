// Tests: tests/cuda/network.
#include "runtime/network/cuda/cuda_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/network/batch.h"
#include "runtime/network/cuda/compiler.h"
#include "runtime/network/cuda/own_kernels.h"
#include "runtime/network/cuda/replayed_work.h"

namespace paceline::runtime {

using cuda::Operation;
using cuda::Operations;
using cuda::PassParameters;
using cuda::ReplayedWork;
using cuda::SampleOutcome;
using cuda::StepLibrary;

namespace {

void wait(const Token& token) {
  wait_for(token, device_patience, "go on with the network");
}

std::unique_ptr<cuda::CudaStream> make_stream(CudaDevice& device) {
  return std::unique_ptr<cuda::CudaStream>(
      static_cast<cuda::CudaStream*>(device.make_stream().release()));
}

void start_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                cuda::CudaStream& stream) {
  cuda::check(cudaMemcpyAsync(to, from, bytes, kind, stream.handle()),
              "copy between the host and a CUDA device");
}

// Pinned memory, which the host writes before a copy to the device or reads behind one from it.
template <class Element>
class Staging {
 public:
  Staging(CudaDevice& device, std::size_t elements)
      : memory_(device.allocate(elements * sizeof(Element), MemoryKind::pinned)),
        elements_(elements) {}
  [[nodiscard]] std::span<Element> elements() const {
    return {reinterpret_cast<Element*>(memory_.data()), elements_};
  }
  // Puts a copy into the stream.
  void copy_to(Element* device, cuda::CudaStream& stream) const {
    start_copy(device, memory_.data(), elements_ * sizeof(Element), cudaMemcpyHostToDevice, stream);
  }
  void copy_from(const Element* device, cuda::CudaStream& stream) const {
    start_copy(memory_.data(), device, elements_ * sizeof(Element), cudaMemcpyDeviceToHost, stream);
  }

 private:
  Memory memory_;
  std::size_t elements_;
};

// Sets where operations put the gradients of parameters.
void set_gradient_array(Operation& operation, float* array) {
  std::visit(
      [array](auto& body) {
        if constexpr (requires { body.gradient.array; }) body.gradient.array = array;
        if constexpr (requires { body.gamma.array; }) {
          body.gamma.array = array;
          body.beta.array = array;
        }
      },
      operation);
}

// Where the operation that fills a parameter's working copy puts it.
WorkingCopy as_working_copy(const Operation& operation, const ParameterPlace& place) {
  const auto target = [](void* data, NumberType type, std::int64_t elements) {
    return ArrayView{static_cast<std::byte*>(data), type, to_size(elements), MemoryKind::device};
  };
  const auto offset = to_size(place.offset);
  if (const auto* vector = std::get_if<cuda::LoadVector>(&operation))
    return WorkingCopy::in_order(target(vector->target, vector->type, vector->elements), offset);
  const cuda::Filters& filters = std::get<cuda::LoadFilters>(operation).target;
  return {.target = target(filters.data, filters.type, filters.stored_elements()),
          .offset = offset,
          .outputs = to_size(filters.outputs),
          .channels = to_size(filters.channels),
          .pixels = to_size(filters.kernel_height * filters.kernel_width),
          .stored_channels = to_size(filters.stored_channels)};
}

}  // namespace

class CudaNetwork::Implementation {
 public:
  Implementation(CudaDevice& device, const models::Network& network,
                 const TrainableNetworkOptions& options, std::unique_ptr<StepLibrary> library)
      : device_(device),
        device_index_(device.index()),
        options_(checked(network, options)),
        traits_{.batch = options.batch,
                .classes = count_classes(network),
                .arithmetic = models::NumberType::fp32,
                .parameters = parameter_places(network)},
        input_elements_(to_size(network.input().elements())),
        library_(std::move(library)),
        compute_(make_stream(device)),
        input_(make_stream(device)),
        replaying_(options.replay),
        of_pass_{OfPass(device, batch()), OfPass(device, batch())},
        backward_pass_(device, 1),
        outcomes_(device, batch()),
        logits_(device, batch() * to_size(traits_.classes)) {
    compile(device, network);
    std::vector<WorkingCopy> copies;
    for (std::size_t i = 0; i < traits_.parameters.size(); ++i)
      copies.push_back(as_working_copy(program_.working_copies[i], traits_.parameters[i]));
    copies_ = WorkingCopies(std::move(copies));
    std::vector<int> all(traits_.parameters.size());
    std::iota(all.begin(), all.end(), 0);
    announce_at(all);
  }
  ~Implementation() {
    // What was started reads memory of this object.
    try {
      wait(input_->record());
      wait(compute_->record());
    } catch (const RunError&) {  // whoever uses the device next is told
    }
  }

  [[nodiscard]] const NetworkTraits& traits() const { return traits_; }
  void observe(LayerObserver* observer) { observer_ = observer; }
  void mark(PassMarker* marker) { marker_ = marker; }

  [[nodiscard]] ArrayView statistics() {
    return {reinterpret_cast<std::byte*>(program_.statistics), NumberType::fp32,
            program_.statistics_elements, MemoryKind::device};
  }

  Token take_weights(const ConstArrayView& weights, int first, int count, const Token& when) {
    const cuda::CurrentDevice current(device_index_);
    PACELINE_ASSERT(static_cast<std::int64_t>(weights.elements) == traits_.elements(first, count) &&
                        weights.type == NumberType::fp32 && weights.kind != MemoryKind::host,
                    "weights are those of the parameters, in memory that the device takes");
    compute_->wait_for(when);
    const auto* array = reinterpret_cast<const float*>(weights.data);
    const auto issue = [&] {
      for (int i = first; i < first + count; ++i)
        start_working_copy(to_size(i), array + traits_.elements(first, i - first));
    };
    if (first == 0 && count == static_cast<int>(traits_.parameters.size()))
      working_copies_.put(compute_->handle(), replaying_, array, issue);
    else
      issue();
    return compute_->record();
  }

  [[nodiscard]] const WorkingCopies& working_copies() const { return copies_; }
  // All passes go to one stream.
  [[nodiscard]] Token working_copies_read() { return compute_->record(); }
  void use_working_copies(const Token& written) { compute_->wait_for(written); }

  Token bring(const ConstArrayView& images, std::span<const std::int32_t> labels) {
    const cuda::CurrentDevice current(device_index_);
    check_batch(traits_, input_elements_, host_floats(images), labels);
    const std::byte* source = images.data;
    if (images.kind != MemoryKind::pinned) source = staged(host_floats(images));
    input_->wait_for(images_read_);
    start_copy(program_.images, source, images.bytes(), cudaMemcpyHostToDevice, *input_);
    brought_ = input_->record();
    slot_ = 1 - slot_;
    OfPass& next = of_pass_[slot_];
    wait(next.copied);
    const std::span<std::int32_t> all = next.labels.elements();
    std::ranges::copy(labels, all.begin());
    std::ranges::fill(all.subspan(labels.size()), 0);
    samples_ = labels.size();
    return brought_;
  }

  void start_pass(Pass pass, std::uint64_t seed) {
    const cuda::CurrentDevice current(device_index_);
    check_samples(traits_, samples_, pass);
    compute_->wait_for(brought_);
    if (marker_ != nullptr) marker_->began(false, *compute_);
    load(seed);
    const bool trains = pass == Pass::training;
    const auto issue = [&] {
      for (std::size_t i = 0; i < program_.layers.size(); ++i) {
        const cuda::LayerProgram& layer = program_.layers[i];
        began(false, i);
        start(trains ? layer.training : layer.evaluation);
        ended(false, i);
      }
    };
    if (is_watched())
      issue();
    else
      (trains ? training_ : evaluation_).put(compute_->handle(), replaying_, nullptr, issue);
    outcomes_.copy_from(program_.outcomes, *compute_);
    outcomes_came_ = compute_->record();
    computed_samples_ = std::exchange(samples_, 0);
    is_trained_ = pass == Pass::training;
    seed_ = seed;
  }

  [[nodiscard]] PassOutcome outcome() const {
    wait(outcomes_came_);
    PassOutcome result;
    const auto classes = static_cast<std::int32_t>(traits_.classes);
    for (const SampleOutcome& sample : outcomes_.elements().first(computed_samples_)) {
      result.loss += sample.loss;
      result.correct += sample.before < 1 ? 1 : 0;
      result.correct_5 += sample.before < std::min<std::int32_t>(5, classes) ? 1 : 0;
    }
    result.loss /= static_cast<double>(computed_samples_);
    return result;
  }

  void backward(float loss_scale, const ArrayView& gradients, const GradientReady& ready) {
    const cuda::CurrentDevice current(device_index_);
    PACELINE_ASSERT(is_trained_, "a backward pass follows a training pass");
    PACELINE_ASSERT(static_cast<std::int64_t>(gradients.elements) == traits_.parameter_elements() &&
                        gradients.type == NumberType::fp32 && gradients.kind != MemoryKind::host,
                    "gradients are the whole flat array, in memory that the device takes");
    is_trained_ = false;
    if (marker_ != nullptr) marker_->began(true, *compute_);
    wait(backward_pass_copied_);
    backward_pass_.elements()[0] = {seed_, loss_scale, options_.batch};
    backward_pass_.copy_to(program_.pass, *compute_);
    backward_pass_copied_ = compute_->record();
    auto* array = reinterpret_cast<float*>(gradients.data);
    if (array != gradient_array_) {
      for (cuda::LayerProgram& layer : program_.layers)
        for (Operation& operation : layer.parameter_gradients) set_gradient_array(operation, array);
      gradient_array_ = array;
    }
    for (Stretch& stretch : stretches_) {
      const auto issue = [&] {
        for (const HalfLayer& half : stretch.halves) start_half(half);
      };
      if (is_watched() || !stretch.has_work)
        issue();
      else
        stretch.work.put(compute_->handle(), replaying_, array, issue);
      if (!ready || stretch.parameters.empty()) continue;
      const Token done = compute_->record();
      for (const int parameter : stretch.parameters) ready(parameter, done);
    }
  }

  // Cuts the backward pass into stretches.
  void announce_at(const std::vector<int>& parameters) {
    const cuda::CurrentDevice current(device_index_);
    wait(compute_->record());  // a graph of the stretches before may run
    stretches_.clear();
    stretches_.emplace_back();
    for (std::size_t i = program_.layers.size(); i-- > 0;) {
      const std::vector<int>& own = program_.layers[i].parameters;
      Stretch& stretch = stretches_.back();
      stretch.add({i, true}, program_.layers[i].parameter_gradients);
      stretch.parameters.insert(stretch.parameters.end(), own.begin(), own.end());
      const bool ends = std::ranges::any_of(
          own, [&](int parameter) { return std::ranges::binary_search(parameters, parameter); });
      if (ends) stretches_.emplace_back();
      stretches_.back().add({i, false}, program_.layers[i].data_gradients);
    }
  }

  [[nodiscard]] std::string take_remark() {
    const std::string reason = replaying_.take_reason();
    return reason.empty() ? reason : fmt::format("CUDA graphs are off: {}", reason);
  }

  [[nodiscard]] std::vector<float> logits() const {
    const cuda::CurrentDevice current(device_index_);
    logits_.copy_from(program_.logits, *compute_);
    wait(compute_->record());
    const std::span<const float> values = logits_.elements();
    return {values.begin(), values.end()};
  }

 private:
  static const TrainableNetworkOptions& checked(const models::Network& network,
                                                const TrainableNetworkOptions& options) {
    check_trainable_on_gpus(network);
    check_options(options);
    return options;
  }
  [[nodiscard]] std::size_t batch() const { return to_size(options_.batch); }

  void compile(CudaDevice& device, const models::Network& network) {
    const cuda::CurrentDevice current(device_index_);
    cuda::Memories memories;
    static_cast<void>(
        cuda::compile(network, options_, traits_.parameters, library_.get(), memories));
    memories.measure();
    arena_ = device.allocate(std::max<std::size_t>(memories.arena_bytes(), 1), MemoryKind::device);
    kept_ = device.allocate(std::max<std::size_t>(memories.kept_bytes(), 1), MemoryKind::device);
    memories.bind(arena_.data(), kept_.data());
    program_ = cuda::compile(network, options_, traits_.parameters, library_.get(), memories);
    for (const cuda::InitialBytes& initial : program_.initial) {
      if (initial.bytes.empty()) continue;
      const Staging<std::byte> staging(device, initial.bytes.size());
      std::ranges::copy(initial.bytes, staging.elements().begin());
      staging.copy_to(initial.target, *compute_);
      wait(compute_->record());
    }
  }

  // Copies images that the caller has in ordinary memory to pinned memory of this network.
  const std::byte* staged(std::span<const float> images) {
    if (!staged_images_) staged_images_.emplace(device_, batch() * input_elements_);
    wait(brought_);  // the memory may still be read
    std::ranges::copy(images, staged_images_->elements().begin());
    return reinterpret_cast<const std::byte*>(staged_images_->elements().data());
  }

  // Puts the images of the pass into the network's first tensor, where samples that a batch lacks are
  // zeros. What the pass reads of the host besides is small, and goes in the same stream.
  void load(std::uint64_t seed) {
    OfPass& now = of_pass_[slot_];
    now.parameters.elements()[0] = {seed, 1.0F, static_cast<std::int32_t>(samples_)};
    now.labels.copy_to(program_.labels, *compute_);
    now.parameters.copy_to(program_.pass, *compute_);
    now.copied = compute_->record();
    cuda::start(program_.load_images, compute_->handle());
    images_read_ = compute_->record();
  }

  // One of the two parts of a layer's backward pass.
  struct HalfLayer {
    std::size_t layer = 0;
    bool of_parameters = true;
  };
  // A part of the backward pass, after which the gradients of these parameters are there.
  struct Stretch {
    std::vector<HalfLayer> halves;
    std::vector<int> parameters;
    bool has_work = false;
    ReplayedWork work;

    void add(const HalfLayer& half, const Operations& operations) {
      halves.push_back(half);
      has_work = has_work || !operations.empty();
    }
  };

  // Somebody is told of each layer, so that work is put into the stream layer by layer.
  [[nodiscard]] bool is_watched() const { return observer_ != nullptr || marker_ != nullptr; }

  void start_half(const HalfLayer& half) {
    const cuda::LayerProgram& layer = program_.layers[half.layer];
    if (half.of_parameters) {
      began(true, half.layer);
      start(layer.parameter_gradients);
    } else {
      start(layer.data_gradients);
      ended(true, half.layer);
    }
  }

  // Fills the working copy of a parameter from its weights.
  void start_working_copy(std::size_t index, const float* weights) {
    Operation load = program_.working_copies.at(index);
    std::visit(
        [&](auto& body) {
          if constexpr (requires { body.source = weights; }) body.source = weights;
        },
        load);
    cuda::start(load, compute_->handle());
  }

  void start(const Operations& operations) {
    for (const Operation& operation : operations) cuda::start(operation, compute_->handle());
  }

  void began(bool backward, std::size_t layer) {
    if (observer_ == nullptr) return;
    wait(compute_->record());
    observer_->began(backward, static_cast<int>(layer));
  }
  void ended(bool backward, std::size_t layer) {
    if (marker_ != nullptr) marker_->ended(backward, static_cast<int>(layer), *compute_);
    if (observer_ == nullptr) return;
    wait(compute_->record());
    observer_->ended(backward, static_cast<int>(layer));
  }

  // Labels and parameters of a pass, which the host writes.
  struct OfPass {
    OfPass(CudaDevice& device, std::size_t batch) : labels(device, batch), parameters(device, 1) {}
    Staging<std::int32_t> labels;
    Staging<PassParameters> parameters;
    Token copied;
  };

  CudaDevice& device_;
  int device_index_;  // to which work goes, and so is current while this puts work into a stream
  TrainableNetworkOptions options_;
  NetworkTraits traits_;
  std::size_t input_elements_ = 0;  // of one sample
  std::unique_ptr<StepLibrary> library_;
  std::unique_ptr<cuda::CudaStream> compute_;
  std::unique_ptr<cuda::CudaStream> input_;
  Memory arena_;
  Memory kept_;
  cuda::Program program_;
  WorkingCopies copies_;
  // Graphs go before what they work on, and before the streams.
  cuda::Replaying replaying_;
  ReplayedWork working_copies_;
  ReplayedWork training_;
  ReplayedWork evaluation_;
  std::vector<Stretch> stretches_;  // of the backward pass
  std::optional<Staging<float>> staged_images_;
  std::array<OfPass, 2> of_pass_;  // of the pass under way, and of the next
  std::size_t slot_ = 0;           // of the batch that was brought last
  Staging<PassParameters> backward_pass_;
  Staging<SampleOutcome> outcomes_;
  Staging<float> logits_;
  LayerObserver* observer_ = nullptr;
  PassMarker* marker_ = nullptr;
  float* gradient_array_ = nullptr;  // that operations have
  // Copies between the host and the device.
  Token brought_;
  Token images_read_;  // by the pass that was started last
  Token backward_pass_copied_;
  Token outcomes_came_;
  std::size_t samples_ = 0;           // of the batch that was brought, until its pass is started
  std::size_t computed_samples_ = 0;  // of the last forward pass
  // The last training pass, as backward() needs it.
  bool is_trained_ = false;
  std::uint64_t seed_ = 0;
};

CudaNetwork::CudaNetwork(CudaDevice& device, const models::Network& network,
                         const TrainableNetworkOptions& options)
    : CudaNetwork(device, network, options, nullptr) {}
CudaNetwork::CudaNetwork(CudaDevice& device, const models::Network& network,
                         const TrainableNetworkOptions& options,
                         std::unique_ptr<cuda::StepLibrary> library)
    : implementation_(
          std::make_unique<Implementation>(device, network, options, std::move(library))) {}
CudaNetwork::~CudaNetwork() = default;

const NetworkTraits& CudaNetwork::traits() const {
  return implementation_->traits();
}
ArrayView CudaNetwork::running_statistics() {
  return implementation_->statistics();
}
Token CudaNetwork::take_weights(const ConstArrayView& weights, int first, int count,
                                const Token& when) {
  return implementation_->take_weights(weights, first, count, when);
}
PassOutcome CudaNetwork::forward(std::span<const float> images,
                                 std::span<const std::int32_t> labels, Pass pass,
                                 std::uint64_t seed) {
  start_forward(images, labels, pass, seed);
  return outcome();
}
Token CudaNetwork::bring(const ConstArrayView& images, std::span<const std::int32_t> labels) {
  return implementation_->bring(images, labels);
}
void CudaNetwork::start_pass(Pass pass, std::uint64_t seed) {
  implementation_->start_pass(pass, seed);
}
PassOutcome CudaNetwork::outcome() {
  return implementation_->outcome();
}
const WorkingCopies* CudaNetwork::working_copies() const {
  return &implementation_->working_copies();
}
Token CudaNetwork::working_copies_read() {
  return implementation_->working_copies_read();
}
void CudaNetwork::use_working_copies(const Token& written) {
  implementation_->use_working_copies(written);
}
void CudaNetwork::compute_gradients(float loss_scale, const ArrayView& gradients,
                                    const GradientReady& ready) {
  implementation_->backward(loss_scale, gradients, ready);
}
std::vector<float> CudaNetwork::logits() const {
  return implementation_->logits();
}
void CudaNetwork::announce_at(const std::vector<int>& parameters) {
  implementation_->announce_at(parameters);
}
std::string CudaNetwork::take_remark() {
  return implementation_->take_remark();
}
void CudaNetwork::observe(LayerObserver* observer) {
  implementation_->observe(observer);
}
void CudaNetwork::mark(PassMarker* marker) {
  implementation_->mark(marker);
}

}  // namespace paceline::runtime
