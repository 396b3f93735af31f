// Tests: tests/simulator/device_memory_test.cc.
#include "simulator/cost/device_memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "models/base/to_size.h"
#include "models/plan/k_fac.h"

namespace paceline::simulator {
namespace {

constexpr int most_samples = 1 << 30;
constexpr Bytes fp32_size = models::element_size(models::NumberType::fp32);

// Elements that the forward pass of one sample writes and keeps.
double kept_elements(const models::NetworkWork& network) {
  double kept = 0;
  for (const models::LayerWork& layer : network.layers) {
    if (layer.kind != "relu")
      kept += static_cast<double>(layer.forward_written - layer.forward_passing);
  }
  return kept;
}

// Elements of the gradients of activations that one layer reads and writes, of one sample.
double workspace_elements(const models::NetworkWork& network) {
  std::int64_t most = 0;
  for (const models::LayerWork& layer : network.layers)
    most = std::max(most, layer.output.elements() + layer.backward_written);
  return static_cast<double>(most);
}

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

}  // namespace

DeviceMemory device_memory(const MemoryRequest& request) {
  const bool is_mixed = request.precision == models::Precision::mixed;
  const Bytes element = models::element_size(request.precision);
  const auto parameters = static_cast<double>(request.network.parameters());
  const double batch = request.batch_per_rank;
  const bool waits = request.plan.overlap == models::Overlap::double_buffered;
  const KfacMemory k_fac = k_fac_memory(request, batch);
  return {.parameters = parameters * element,
          .masters = is_mixed ? parameters * fp32_size : Bytes{0},
          .gradients = (waits ? 2 : 1) * parameters * element,
          .optimizer = request.optimizer_states.value_or(request.network.optimizer_states) *
                       parameters * fp32_size,
          .activations = batch * kept_elements(request.network) * element,
          .input = batch * static_cast<double>(request.network.input_elements) * fp32_size,
          .workspace = batch * workspace_elements(request.network) * element + k_fac.workspace,
          .buffers = k_fac.buffers.value_or(buffer_bytes(request.plan)),
          .factors = k_fac.factors};
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
