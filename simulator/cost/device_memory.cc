// Tests: tests/simulator/device_memory_test.cc.
#include "simulator/cost/device_memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "models/base/to_size.h"
#include "models/layout/pipeline_order.h"
#include "models/layout/rank_work.h"
#include "models/layout/stages.h"
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
  ActivationPeakSearch(const models::NetworkWork& network, const MemoryRequest& request)
      : layers_(network.layers),
        element_(models::element_size(request.precision)),
        recomputation_(network, request.recompute) {}

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
      of_block += std::max(stored(i), kept(i));
      kept_of_block += kept(i);
      const Bytes live = before + of_block;
      const Bytes work = workspace(i);
      if (live + work >= peak.activations + peak.workspace)
        peak = {static_cast<int>(i), live, work};
    }
    return peak;
  }

  // Returns the bytes that the forward pass of one sample keeps for the backward pass.
  [[nodiscard]] Bytes kept() const {
    Bytes sum{0};
    for (std::size_t i = 0; i < layers_.size(); ++i) sum += kept(i);
    return sum;
  }
  // The weights of the block that has most, without experts, whose products are added to the gradients where
  // these lie.
  [[nodiscard]] Bytes largest_block() const {
    std::map<std::string_view, std::int64_t> elements;
    for (const models::LayerWork& layer : layers_)
      if (const std::string_view block = models::block_of(layer.name);
          !block.empty() && layer.kind != "expert_linear")
        elements[block] += layer.parameter_elements();
    std::int64_t most = 0;
    for (const auto& [block, count] : elements) most = std::max(most, count);
    return static_cast<double>(most) * element_;
  }

 private:
  [[nodiscard]] bool is_loss(std::size_t layer) const { return layers_[layer].kind == loss_kind; }
  [[nodiscard]] Bytes bytes(std::int64_t elements, std::size_t layer) const {
    return static_cast<double>(elements) * (is_loss(layer) ? fp32_size : element_);
  }
  [[nodiscard]] Bytes stored(std::size_t layer) const {
    return bytes(layers_[layer].stored, layer);
  }
  [[nodiscard]] Bytes kept(std::size_t layer) const {
    return bytes(recomputation_.kept(layer), layer);
  }
  [[nodiscard]] Bytes workspace(std::size_t layer) const {
    if (is_loss(layer)) return Bytes{0};
    const bool feeds_loss = layer + 1 < layers_.size() && is_loss(layer + 1);
    const std::int64_t read = feeds_loss ? 0 : layers_[layer].output.elements();
    return static_cast<double>(read + layers_[layer].backward_written) * element_;
  }

  const std::vector<models::LayerWork>& layers_;
  Bytes element_;
  models::Recomputation recomputation_;
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

// The part of a network that a rank holds: all of it, or one stage.
struct RankPart {
  const models::NetworkWork& network;
  const std::vector<models::Bucket>& buckets;  // of the plan, with gradients of the part
  double batches_kept = 0;                     // that are on their way beside the one of the peak
  int stage = 0;
};

// Buffers of collectives, with parameters and gradients that are whole for a while.
Bytes sharded_buffers(const MemoryRequest& request, const RankPart& part,
                      const models::NetworkWork& all, const models::ShardUse& use) {
  const models::Sharding& sharding = models::sharding(use.kind);
  if (use.shards == 1) return buffer_bytes(request.plan);
  double unit = 0;
  double root = 0;  // in no block
  for (const models::Bucket& bucket : part.buckets) {
    const auto elements = static_cast<double>(bucket.elements);
    const bool is_root = holds_root(bucket, all);
    if (is_root) root += elements;
    if (!is_root || !sharding.before_pass()) unit = std::max(unit, elements);
  }
  const Bytes parameter = models::element_size(request.precision);
  const Bytes gradient = models::element_size(request.plan.wire);
  const bool is_pipeline = request.plan.layout.pipeline > 1;
  if (!sharding.before_pass()) {
    const bool are_apart = sharding.sums_in_each_pass() && !is_pipeline;
    const Bytes whole = are_apart ? unit * parameter : Bytes{0};
    // Gradients of the wire's type are summed where they lie.
    const bool is_cast = gradient < parameter;
    return whole + (is_cast ? (1 + 1.0 / use.shards) * unit * gradient : Bytes{0});
  }
  const auto parameters = static_cast<double>(part.network.parameters());
  if (is_pipeline) return parameters * (parameter + gradient) + unit * (parameter + gradient);
  const double gathered = use.reshard ? 2 * unit + root : unit + parameters;
  return (gathered + unit) * parameter + unit * gradient;
}

// The memory of a rank that has this part; `all` is what all ranks of a pipeline have.
DeviceMemory memory_of(const MemoryRequest& request, const RankPart& part,
                       const models::NetworkWork& all) {
  const bool is_mixed = models::has_masters(request.precision);
  const Bytes element = models::element_size(request.precision);
  auto parameters = static_cast<double>(part.network.parameters());
  // A tied head has a copy of the table of its own where that is on another stage.
  if (part.stage > 0)
    for (const models::LayerWork& layer : part.network.layers)
      parameters += static_cast<double>(layer.tied_elements);
  const double batch = request.batch_per_rank;
  const models::ShardUse shards = shards_of(request.plan);
  const models::Sharding& sharding = models::sharding(shards.kind);
  const int parts = request.plan.layout.expert_parts();
  const double split =
      parts == 1 ? parameters / shards.shards : split_parameters(part.network, shards, parts);
  const auto share = [&](models::TensorPlacement placement) {
    return placement == models::TensorPlacement::split ? split : parameters;
  };
  const double kept = models::optimizer_cost(part.network, request.optimizer.of(part.network)).kept;
  const auto own = static_cast<double>(std::max<std::int64_t>(1, part.network.parameters()));
  // Parameters in shards are the masters.
  const bool are_masters = is_mixed && sharding.before_pass().has_value();
  const bool is_plain =
      shards.kind == models::ShardingKind::none && request.plan.layout == models::Layout{};
  const Bytes gradient = are_masters ? fp32_size
                         : is_plain  ? element
                                     : std::max(element, models::element_size(request.plan.wire));
  const bool are_whole = request.plan.layout.pipeline > 1 && !are_masters;
  const bool waits = request.plan.overlap == models::Overlap::double_buffered;
  const KfacMemory k_fac = k_fac_memory(request, batch);
  const ActivationPeakSearch search(part.network, request);
  const bool are_added = gradient > element && !are_masters;
  const ActivationPeak peak = search.find();
  const bool on_host = request.optimizer.on_host;
  const bool are_gradients_on_host =
      on_host && !are_whole && sharding.gradients == models::TensorPlacement::split;
  const Bytes masters = is_mixed ? share(sharding.states) * fp32_size : Bytes{0};
  const Bytes states = kept / own * share(sharding.states) * fp32_size;
  const Bytes gradients =
      (waits ? 2 : 1) * (are_whole ? parameters : share(sharding.gradients)) * gradient;
  return {.parameters = are_masters && !on_host ? Bytes{0} : share(sharding.parameters) * element,
          .masters = on_host ? Bytes{0} : masters,
          .gradients = are_gradients_on_host ? Bytes{0} : gradients,
          .optimizer = on_host ? Bytes{0} : states,
          .activations = batch * (peak.activations + part.batches_kept * search.kept()),
          .input = batch * static_cast<double>(part.network.input_elements) * fp32_size,
          .workspace = batch * peak.workspace + (are_added ? search.largest_block() : Bytes{0}) +
                       k_fac.workspace,
          .buffers = shards.kind == models::ShardingKind::none
                         ? k_fac.buffers.value_or(buffer_bytes(request.plan))
                         : sharded_buffers(request, part, all, shards),
          .factors = k_fac.factors,
          .on_host = on_host ? masters + states + share(sharding.gradients) * fp32_size : Bytes{0},
          .peak_layer = peak.layer,
          .stage = part.stage};
}

// The memory of a rank of a stage; `network` is a rank's share of all layers.
DeviceMemory memory_of_stage(const MemoryRequest& request, const models::NetworkWork& network,
                             const models::Stages& stages, int stage) {
  models::NetworkWork own{.name = network.name,
                          .layers = {},
                          .gradients = {},
                          .input_elements = network.input_elements,
                          .sequence = network.sequence,
                          .optimizer_states = network.optimizer_states};
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    if (stages.stage_of(static_cast<int>(i)) == stage) own.layers.push_back(network.layers[i]);
  std::vector<models::Bucket> buckets;
  for (const models::Bucket& bucket : request.plan.buckets)
    if (stages.stage_of(network.gradients[to_size(bucket.first_gradient)].layer) == stage)
      buckets.push_back(bucket);
  const models::Layout& layout = request.plan.layout;
  const int kept = models::most_in_flight(layout, stage, request.accumulate);
  const double beside = std::max(0.0, static_cast<double>(kept) / layout.chunks - 1);
  return memory_of(request, {own, buckets, beside, stage}, network);
}

}  // namespace

DeviceMemory device_memory(const MemoryRequest& request) {
  const models::Layout& layout = request.plan.layout;
  if (layout == models::Layout{})
    return memory_of(request, {request.network, request.plan.buckets}, request.network);
  const models::NetworkWork network = models::rank_work(request.network, layout).network;
  const models::Stages stages = models::stages_of(network, layout);
  if (stages.stages == 1) return memory_of(request, {network, request.plan.buckets}, network);
  std::optional<DeviceMemory> most;
  for (int stage = 0; stage < stages.stages; ++stage) {
    const DeviceMemory memory = memory_of_stage(request, network, stages, stage);
    if (!most || memory.total() > most->total()) most = memory;
  }
  return *most;
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
