// Tests: tests/simulator/device_memory_test.cc.
#include "simulator/cost/device_memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "models/base/to_size.h"
#include "models/plan/k_fac.h"
#include "simulator/cost/shard_cost.h"

namespace paceline::simulator {
namespace {

constexpr int most_samples = 1 << 30;
constexpr Bytes fp32_size = models::element_size(models::NumberType::fp32);

// The backward pass of one sample at which activations and gradients of activations take most.
struct ActivationPeak {
  int layer = 0;
  Bytes activations{0};
  Bytes workspace{0};
};

constexpr std::string_view loss_kind = "softmax_cross_entropy";

class ActivationPeakSearch {
 public:
  explicit ActivationPeakSearch(const MemoryRequest& request)
      : layers_(request.network.layers),
        element_(models::element_size(request.precision)),
        recomputes_(request.recompute == models::Recompute::full) {}

  // In a layer's backward pass, its activations and those of all earlier layers are live. Where blocks are
  // recomputed, those of the layer's whole block are, too. Of layers with equal sums the last one counts.
  [[nodiscard]] ActivationPeak find() const {
    ActivationPeak peak;
    Bytes before{0};  // of earlier blocks, without what is recomputed
    std::string_view block;
    Bytes of_block{0};  // of the layer's block, all of it
    Bytes kept_of_block{0};
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::string_view own = models::block_of(layers_[i].name);
      if (own != block) {
        before += kept_of_block;
        of_block = kept_of_block = Bytes{0};
        block = own;
      }
      of_block += stored(i);
      if (!is_dropped(i)) kept_of_block += stored(i);
      const Bytes live = before + of_block;
      const Bytes work = workspace(i);
      if (live + work >= peak.activations + peak.workspace)
        peak = {static_cast<int>(i), live, work};
    }
    return peak;
  }

 private:
  [[nodiscard]] bool is_loss(std::size_t layer) const { return layers_[layer].kind == loss_kind; }
  [[nodiscard]] Bytes stored(std::size_t layer) const {
    return static_cast<double>(layers_[layer].stored) * (is_loss(layer) ? fp32_size : element_);
  }
  // Whether it is computed anew in the backward pass. A block's output is another block's input.
  [[nodiscard]] bool is_dropped(std::size_t layer) const {
    return recomputes_ && !layers_[layer].leaves_block &&
           !models::block_of(layers_[layer].name).empty();
  }
  [[nodiscard]] Bytes workspace(std::size_t layer) const {
    if (is_loss(layer)) return Bytes{0};
    const bool feeds_loss = layer + 1 < layers_.size() && is_loss(layer + 1);
    const std::int64_t read = feeds_loss ? 0 : layers_[layer].output.elements();
    return static_cast<double>(read + layers_[layer].backward_written) * element_;
  }

  const std::vector<models::LayerWork>& layers_;
  Bytes element_;
  bool recomputes_;
};

// Bytes of the largest buckets that may be on their way together, twice.
Bytes buffer_bytes(const models::Plan& plan) {
  if (plan.ranks == 1) return Bytes{0};
  std::vector<Bytes> sizes;
  sizes.reserve(plan.buckets.size());
  for (const models::Bucket& bucket : plan.buckets) sizes.push_back(plan.bytes(bucket));
  const auto travelling = std::min(sizes.size(), to_size(plan.streams));
  std::partial_sort(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(travelling),
                    sizes.end(), std::greater<>());
  Bytes sum{0};
  for (std::size_t i = 0; i < travelling; ++i) sum += 2 * sizes[i];
  return sum;
}

// The memory that K-FAC needs beside all that, for `samples` of a batch.
struct KfacMemory {
  Bytes workspace{0};
  std::optional<Bytes> buffers = {};  // in place of those of buckets
  Bytes factors{0};
};

KfacMemory k_fac_memory(const MemoryRequest& request, double samples) {
  const models::Plan& plan = request.plan;
  const auto* use = plan.uses<models::KfacUse>();
  if (use == nullptr) return {};
  const std::vector<models::FisherBlock> blocks = models::fisher_blocks(request.network);
  const std::vector<int> owners = models::owners_of(blocks, plan.ranks, use->owners);
  double inputs = 0;
  double reduced = 0;
  double squares = 0;
  double unfolded = 0;
  std::map<int, double> inverses;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const models::FisherBlock& block = blocks[i];
    inputs += block.input_triangle();
    reduced += block.output_triangle() + static_cast<double>(block.gradients);
    squares += block.squares();
    inverses[owners[i]] += block.squares();
    unfolded = std::max(unfolded, static_cast<double>(block.groups) *
                                      static_cast<double>(block.positions) *
                                      static_cast<double>(block.inputs));
  }
  double most = 0;
  for (const auto& [rank, elements] : inverses) most = std::max(most, elements);
  const double on_wire =
      plan.overlap == models::Overlap::none ? inputs + reduced : std::max(inputs, reduced);
  return {.workspace = samples * unfolded * fp32_size,
          .buffers = plan.ranks == 1 ? Bytes{0} : 2 * on_wire * models::element_size(plan.wire),
          .factors = (squares + most) * fp32_size};
}

models::ShardUse shards_of(const models::Plan& plan) {
  const auto* use = plan.uses<models::ShardUse>();
  return use == nullptr ? models::ShardUse{} : *use;
}

// Buffers of collectives, with parameters and gradients that are whole for a while.
Bytes sharded_buffers(const MemoryRequest& request, const models::ShardUse& use) {
  const models::Sharding& sharding = models::sharding(use.kind);
  if (use.shards == 1) return buffer_bytes(request.plan);
  double unit = 0;
  double root = 0;  // in no block
  for (const models::Bucket& bucket : request.plan.buckets) {
    const auto elements = static_cast<double>(bucket.elements);
    const bool is_root = holds_root(bucket, request.network);
    if (is_root) root += elements;
    if (!is_root || !sharding.before_pass()) unit = std::max(unit, elements);
  }
  const Bytes parameter = models::element_size(request.precision);
  const Bytes gradient = models::element_size(request.plan.wire);
  if (!sharding.before_pass()) {
    const Bytes whole = sharding.sums_in_each_pass() ? unit * parameter : Bytes{0};
    return whole + (1 + 1.0 / use.shards) * unit * gradient;
  }
  const double gathered =
      use.reshard ? 2 * unit + root : unit + static_cast<double>(request.network.parameters());
  return (gathered + unit) * parameter + unit * gradient;
}

}  // namespace

DeviceMemory device_memory(const MemoryRequest& request) {
  const bool is_mixed = request.precision == models::Precision::mixed;
  const Bytes element = models::element_size(request.precision);
  const auto parameters = static_cast<double>(request.network.parameters());
  const double batch = request.batch_per_rank;
  const models::ShardUse shards = shards_of(request.plan);
  const models::Sharding& sharding = models::sharding(shards.kind);
  const auto share = [&](models::TensorPlacement placement) {
    return placement == models::TensorPlacement::split ? parameters / shards.shards : parameters;
  };
  // Parameters in shards are the masters.
  const bool are_masters = is_mixed && sharding.before_pass().has_value();
  const bool waits = request.plan.overlap == models::Overlap::double_buffered;
  const KfacMemory k_fac = k_fac_memory(request, batch);
  const ActivationPeak peak = ActivationPeakSearch(request).find();
  return {.parameters = are_masters ? Bytes{0} : share(sharding.parameters) * element,
          .masters = is_mixed ? share(sharding.states) * fp32_size : Bytes{0},
          .gradients =
              (waits ? 2 : 1) * share(sharding.gradients) * (are_masters ? fp32_size : element),
          .optimizer = request.optimizer_states.value_or(request.network.optimizer_states) *
                       share(sharding.states) * fp32_size,
          .activations = batch * peak.activations,
          .input = batch * static_cast<double>(request.network.input_elements) * fp32_size,
          .workspace = batch * peak.workspace + k_fac.workspace,
          .buffers = shards.kind == models::ShardingKind::none
                         ? k_fac.buffers.value_or(buffer_bytes(request.plan))
                         : sharded_buffers(request, shards),
          .factors = k_fac.factors,
          .peak_layer = peak.layer};
}

int largest_batch(const MemoryRequest& request, Bytes capacity) {
  const auto total_of = [&](int batch) {
    MemoryRequest trial = request;
    trial.batch_per_rank = batch;
    return device_memory(trial).total();
  };
  // The total is a line in the batch.
  const Bytes fixed = total_of(0);
  const Bytes each = total_of(1) - fixed;
  if (fixed > capacity) return 0;
  if (each * most_samples <= capacity - fixed) return most_samples;
  int batch = static_cast<int>(std::floor((capacity - fixed) / each));
  // The division may round up to the next whole number.
  while (batch > 0 && total_of(batch) > capacity) --batch;
  return batch;
}

}  // namespace paceline::simulator
