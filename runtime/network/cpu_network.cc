// Tests: tests/runtime/network_test.cc, network_layers_test.cc, network_modes_test.cc.
#include "runtime/network/cpu_network.h"

#include <omp.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/device/spare_memory.h"
#include "runtime/network/batch.h"
#include "runtime/network/onednn/compiler.h"
#include "runtime/network/tensor_group.h"

namespace paceline::runtime {
namespace {

// Sets OpenMP's number of threads for this thread while it lives. oneDNN asks for it when it makes
// a primitive and when it runs one.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

// Whether the storage type's own arithmetic is to be tried.
bool wants_narrow_arithmetic(const TrainableNetworkOptions& options) {
  return options.storage == models::NumberType::bf16 && options.arithmetic == Arithmetic::best;
}

// The network compiled in the storage type's own arithmetic; nothing where oneDNN lacks that for a
// layer.
std::optional<onednn::CompiledNetwork> compiled_narrow(const models::Network& network,
                                                       const TrainableNetworkOptions& options,
                                                       const std::vector<ParameterPlace>& places) {
  try {
    return onednn::Compiler(network, options, places, options.storage).compile();
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

}  // namespace

class CpuNetwork::Implementation {
 public:
  Implementation(const models::Network& network, const TrainableNetworkOptions& options)
      : options_(options),
        traits_{.batch = options.batch, .parameters = parameter_places(network)} {
    check_trainable(network);
    check_options(options);
    const ThreadCount threads(options.threads);
    compile(network);
    stream_ = dnnl::stream(compiled_.engine);
    traits_.classes = count_classes(network);
    if (options.tensor != nullptr && options.tensor->part.splits_loss)
      traits_.classes *= options.tensor->part.ranks;
    traits_.labels = count_labels(network);
    input_elements_ = to_size(network.input().elements());
    labels_.reserve(batch() * to_size(traits_.labels));
  }

  [[nodiscard]] std::size_t batch() const { return to_size(options_.batch); }
  [[nodiscard]] const NetworkTraits& traits() const { return traits_; }
  [[nodiscard]] const std::vector<ParameterPlace>& places() const { return traits_.parameters; }
  [[nodiscard]] std::span<float> statistics() { return compiled_.statistics; }
  void observe(LayerObserver* observer) { observer_ = observer; }

  void set_weights(std::span<const float> weights, int first, int count) {
    PACELINE_ASSERT(static_cast<std::int64_t>(weights.size()) == traits_.elements(first, count),
                    "weights are those of the parameters");
    const std::int64_t base = count > 0 ? places()[to_size(first)].offset : 0;
    const ThreadCount threads(options_.threads);
    onednn::Call call{.stream = stream_};
    for (int i = first; i < first + count; ++i) {
      const auto index = to_size(i);
      onednn::WorkingCopies& copies = compiled_.working_copies.at(index);
      if (!copies.source) continue;  // no pass reads it
      // oneDNN takes what it reads as not const, too.
      copies.source.set_data_handle(
          const_cast<float*>(weights.data() + places()[index].offset - base));
      for (const onednn::Memory& copy : copies.targets) give_memory(copy);
      run(copies.steps, call);
    }
    stream_.wait();
  }

  void drop_weights(int first, int count) {
    for (int i = first; i < first + count; ++i)
      for (const onednn::Memory& copy : compiled_.working_copies.at(to_size(i)).targets)
        take_memory(copy);
  }

  PassOutcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                      Pass pass, std::uint64_t seed) {
    check_samples(traits_, labels.size(), pass);
    check_batch(traits_, input_elements_, images, labels);
    const ThreadCount threads(options_.threads);
    onednn::Call call{.stream = stream_, .seed = seed, .labels = labels};
    load(images, call);
    for (std::size_t i = 0; i < compiled_.layers.size(); ++i) {
      const onednn::LayerProgram& layer = compiled_.layers[i];
      began(false, i);
      run(pass == Pass::training ? layer.training : layer.evaluation, call);
      ended(false, i);
    }
    is_trained_ = pass == Pass::training;
    if (is_trained_) {
      seed_ = seed;
      labels_.assign(labels.begin(), labels.end());
    }
    return call.outcome;
  }

  void backward(float loss_scale, std::span<float> gradients,
                const std::function<void(int)>& ready) {
    PACELINE_ASSERT(is_trained_, "a backward pass follows a training pass");
    PACELINE_ASSERT(static_cast<std::int64_t>(gradients.size()) == traits_.parameter_elements(),
                    "gradients are the whole flat array");
    is_trained_ = false;
    const ThreadCount threads(options_.threads);
    gradients_.resize(places().size());
    put_gradients(0, static_cast<int>(places().size()), gradients);
    onednn::Call call{.stream = stream_,
                      .seed = seed_,
                      .labels = labels_,
                      .loss_scale = loss_scale,
                      .gradients = gradients_};
    for (std::size_t i = compiled_.layers.size(); i-- > 0;) {
      const onednn::LayerProgram& layer = compiled_.layers[i];
      began(true, i);
      run(layer.parameter_gradients, call);
      if (ready)
        for (const int parameter : layer.parameters) ready(parameter);
      run(layer.data_gradients, call);
      ended(true, i);
    }
  }

  void put_gradients(int first, int count, std::span<float> memory) {
    for (int i = first; i < first + count; ++i)
      gradients_[to_size(i)] = memory.data() + traits_.elements(first, i - first);
    for (auto& [parameter, place] : compiled_.gradients_in_place)
      if (parameter >= first && parameter < first + count)
        place.set_data_handle(gradients_[to_size(parameter)]);
  }

  [[nodiscard]] std::vector<float> logits() const {
    const std::span<const float> values = onednn::floats(compiled_.logits);
    return {values.begin(), values.end()};
  }

 private:
  // A working copy that was dropped has no memory. That which it had is kept for the next one that it is large enough for, so that
  // passes allocate nothing once units have come and gone.
  void give_memory(const onednn::Memory& copy) {
    if (copy.get_data_handle() != nullptr) return;
    Memory memory = spare_.take(copy.get_desc().get_size());
    copy.set_data_handle(memory.data());
    lent_.insert_or_assign(copy.get(), std::move(memory));
  }
  void take_memory(const onednn::Memory& copy) {
    if (copy.get_data_handle() == nullptr) return;
    copy.set_data_handle(nullptr);  // which frees what oneDNN allocated
    const auto lent = lent_.find(copy.get());
    if (lent == lent_.end()) return;
    spare_.put_back(std::move(lent->second));
    lent_.erase(lent);
  }

  void compile(const models::Network& network) {
    if (wants_narrow_arithmetic(options_)) {
      if (auto narrow = compiled_narrow(network, options_, places())) {
        compiled_ = *std::move(narrow);
        traits_.arithmetic = options_.storage;
        return;
      }
    }
    compiled_ = onednn::Compiler(network, options_, places(), traits_.arithmetic).compile();
  }

  // Fewer samples than a batch are filled up with zeros.
  void load(std::span<const float> images, onednn::Call& call) {
    const float* source = images.data();
    if (images.size() < batch() * input_elements_) {
      partial_batch_.assign(batch() * input_elements_, 0.0F);
      std::copy(images.begin(), images.end(), partial_batch_.begin());
      source = partial_batch_.data();
    }
    compiled_.images.set_data_handle(const_cast<float*>(source));
    run(compiled_.load_images, call);
  }

  static void run(const onednn::Steps& steps, onednn::Call& call) {
    for (const onednn::Step& step : steps) step.run(call);
  }

  void began(bool backward, std::size_t layer) {
    if (observer_ != nullptr) observer_->began(backward, static_cast<int>(layer));
  }
  void ended(bool backward, std::size_t layer) {
    if (observer_ != nullptr) observer_->ended(backward, static_cast<int>(layer));
  }

  TrainableNetworkOptions options_;
  NetworkTraits traits_;
  onednn::CompiledNetwork compiled_;
  dnnl::stream stream_;
  std::unordered_map<dnnl_memory_t, Memory> lent_;  // to working copies
  SpareMemory spare_;
  LayerObserver* observer_ = nullptr;
  std::size_t input_elements_ = 0;  // of one sample
  std::vector<float> partial_batch_;
  std::vector<float*> gradients_;  // by parameter
  // The last training pass, as backward() needs it.
  bool is_trained_ = false;
  std::uint64_t seed_ = 0;
  std::vector<std::int32_t> labels_;
};

CpuNetwork::CpuNetwork(const models::Network& network, const TrainableNetworkOptions& options)
    : implementation_(std::make_unique<Implementation>(network, options)) {}
CpuNetwork::~CpuNetwork() = default;

const NetworkTraits& CpuNetwork::traits() const {
  return implementation_->traits();
}
ArrayView CpuNetwork::running_statistics() {
  return view_of(implementation_->statistics());
}
Token CpuNetwork::take_weights(const ConstArrayView& weights, int first, int count,
                               const Token& when) {
  wait_for(when, device_patience, "take new weights");
  implementation_->set_weights(host_floats(weights), first, count);
  return {};
}
void CpuNetwork::drop_weights(int first, int count) {
  implementation_->drop_weights(first, count);
}
void CpuNetwork::put_gradients(int first, int count, const ArrayView& memory) {
  implementation_->put_gradients(first, count, host_floats(memory));
}
PassOutcome CpuNetwork::forward(std::span<const float> images, std::span<const std::int32_t> labels,
                                Pass pass, std::uint64_t seed) {
  return implementation_->forward(images, labels, pass, seed);
}
void CpuNetwork::compute_gradients(float loss_scale, const ArrayView& gradients,
                                   const GradientReady& ready) {
  implementation_->backward(loss_scale, host_floats(gradients), [&ready](int parameter) {
    if (ready) ready(parameter, Token());
  });
}
std::vector<float> CpuNetwork::logits() const {
  return implementation_->logits();
}
void CpuNetwork::observe(LayerObserver* observer) {
  implementation_->observe(observer);
}

std::span<float> CpuNetwork::statistics() {
  return implementation_->statistics();
}
void CpuNetwork::set_weights(std::span<const float> weights) {
  set_weights(weights, 0, static_cast<int>(parameters().size()));
}
void CpuNetwork::set_weights(std::span<const float> weights, int first, int count) {
  implementation_->set_weights(weights, first, count);
}
void CpuNetwork::backward(float loss_scale, std::span<float> gradients,
                          const std::function<void(int)>& ready) {
  implementation_->backward(loss_scale, gradients, ready);
}

}  // namespace paceline::runtime
