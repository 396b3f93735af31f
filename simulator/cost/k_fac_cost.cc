// Tests: tests/simulator/k_fac_test.cc.
#include "simulator/cost/k_fac_cost.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/plan/k_fac.h"

namespace paceline::simulator {
namespace {

using models::FisherBlock;

constexpr Bytes fp32_size = models::element_size(models::NumberType::fp32);

double squared(std::int64_t rows) {
  return static_cast<double>(rows) * static_cast<double>(rows);
}

class Kfac {
 public:
  Kfac(const KfacRequest& request, const RingTimes& rings, Bound bound)
      : request_(request),
        rings_(rings),
        use_(*request.plan.uses<models::KfacUse>()),
        blocks_(models::fisher_blocks(request.network)),
        owners_(models::owners_of(blocks_, request.plan.ranks, use_.owners)),
        flops_(rate_at(request.device.fp32, bound) *
               rate_at(request.device.compute_efficiency, bound)),
        memory_(effective_memory_bandwidth(request.device, bound)) {}

  [[nodiscard]] KfacTimes times() const {
    KfacTimes times;
    times.factors.resize(request_.network.layers.size());
    times.earlier_g.resize(request_.network.layers.size());
    for (const FisherBlock& block : blocks_) {
      const auto layer = to_size(block.layer);
      const LayerTime factors = factors_of(block);
      times.factors[layer] = factors;
      if (factors.forward > Seconds{0})
        times.earlier_g[layer] = (request_.accumulate - 1) * factors.backward / factors.forward;
    }
    add_owned(times);
    add_collectives(times);
    return times;
  }

 private:
  // The mean time in an iteration of what is done once in `factors_every` iterations.
  [[nodiscard]] Seconds refreshed(Seconds time) const {
    return time / static_cast<double>(use_.factors_every);
  }
  [[nodiscard]] Seconds kernel(double flop_count, Bytes bytes) const {
    return request_.waiting * std::max(Flops{flop_count} / flops_, bytes / memory_);
  }

  [[nodiscard]] LayerTime factors_of(const FisherBlock& block) const {
    if (block.outputs == 0) return {};
    const models::LayerWork& layer = request_.network.layers[to_size(block.layer)];
    const Bytes element = models::element_size(request_.precision);
    const double samples = request_.batch_per_rank;
    const auto groups = static_cast<double>(block.groups);
    const double rows = samples * static_cast<double>(block.positions);
    const auto product = [&](std::int64_t columns, double operands) {
      return groups * kernel(2 * rows * squared(columns),
                             operands * rows * static_cast<double>(columns) * element +
                                 squared(columns) * fp32_size);
    };
    if (block.inputs == 0) {
      // Its input and the gradient of its output become a row for each sample.
      const auto read = 2 * samples * static_cast<double>(layer.output.elements());
      const Seconds whole = kernel(2 * samples * squared(block.outputs),
                                   read * element + squared(block.outputs) * fp32_size);
      return accumulated(Seconds{0}, whole);
    }
    const double unfolded = layer.kind == "convolution" ? 2 : 1;
    return accumulated(product(block.inputs, unfolded), product(block.outputs, 1));
  }

  // The times of the factors of all accumulated batches, from those of one batch.
  [[nodiscard]] LayerTime accumulated(Seconds input, Seconds output) const {
    const double batches = request_.accumulate;
    return {refreshed(batches * input + (batches - 1) * output), refreshed(output)};
  }

  [[nodiscard]] OwnedLayer owned(const FisherBlock& block) const {
    const Bytes squares = block.squares() * fp32_size;
    const Bytes gradients = static_cast<double>(block.gradients) * fp32_size;
    return {block.layer, refreshed(kernel(block.inversion_flops(), 5 * squares)),
            kernel(block.preconditioning_flops(), squares + 3 * gradients)};
  }

  // What the owner that takes longest does.
  void add_owned(KfacTimes& times) const {
    std::map<int, std::pair<Seconds, std::vector<OwnedLayer>>> by_rank;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      auto& [time, layers] = by_rank[owners_[i]];
      if (blocks_[i].outputs == 0) continue;
      layers.push_back(owned(blocks_[i]));
      time += layers.back().invert + layers.back().precondition;
    }
    times.owners = static_cast<int>(by_rank.size());
    const auto longest = std::max_element(
        by_rank.begin(), by_rank.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (longest != by_rank.end()) times.owned = longest->second.second;
  }

  // The part of a layer in a collective: its elements on the wire, and the bytes that are read to
  // pack them and written when they are unpacked.
  struct Part {
    double elements = 0;
    Bytes packed{0};
    Bytes unpacked{0};
  };
  using Parts = std::vector<Part>;  // of each block

  template <class PartOf>
  [[nodiscard]] Parts parts(PartOf part_of) const {
    Parts all;
    all.reserve(blocks_.size());
    for (const FisherBlock& block : blocks_) all.push_back(part_of(block));
    return all;
  }

  // `everyone` unpacks all, or else each owner its own part, the busiest of which counts.
  [[nodiscard]] PackedCollective collective(const Parts& parts,
                                            const std::function<Seconds(Bytes)>& ring,
                                            bool everyone) const {
    const Bytes wire = models::element_size(request_.plan.wire);
    const int ranks = request_.plan.ranks;
    std::vector<double> elements;
    std::map<int, Bytes> handled;  // by the owner, on both sides of its packing or unpacking
    Bytes of_all{0};
    PackedCollective made;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      elements.push_back(part.elements);
      made.bytes += part.elements * wire;
      of_all += part.elements * wire + (everyone ? part.unpacked : part.packed);
      handled[owners_[i]] += part.elements * wire + (everyone ? part.packed : part.unpacked);
    }
    if (made.bytes <= Bytes{0}) return made;
    Bytes most{0};
    for (const auto& [rank, bytes] : handled) most = std::max(most, bytes);
    made.most_sent = models::most_sent(elements, owners_, ranks) * wire;
    const double others = static_cast<double>(ranks - 1) / ranks;
    made.transfer = request_.launch + ring(made.most_sent / others);
    made.pack = (everyone ? most : of_all) / memory_;
    made.unpack = (everyone ? of_all : most) / memory_;
    return made;
  }

  void add_collectives(KfacTimes& times) const {
    if (request_.plan.ranks == 1) return;
    const Bytes element = models::element_size(request_.precision);
    const auto gradients = [&](const FisherBlock& block) {
      const auto count = static_cast<double>(block.gradients);
      return Part{count, count * element, count * element};
    };
    const auto factor = [](double groups, double triangle, std::int64_t rows) {
      return Part{triangle, triangle * fp32_size, groups * squared(rows) * fp32_size};
    };
    const auto input = [&](const FisherBlock& block) {
      return factor(static_cast<double>(block.groups), block.input_triangle(), block.inputs);
    };
    const auto output = [&](const FisherBlock& block) {
      return factor(static_cast<double>(block.groups), block.output_triangle(), block.outputs);
    };
    const bool is_beside = request_.plan.overlap != models::Overlap::none;
    const auto factors = [&](const FisherBlock& block) {
      Part sum = gradients(block);
      for (const Part& part : {output(block), is_beside ? Part{} : input(block)}) {
        sum.elements += part.elements;
        sum.packed += part.packed;
        sum.unpacked += part.unpacked;
      }
      return sum;
    };
    constexpr bool everyone = true;
    const PackedCollective refreshing =
        collective(parts(factors), rings_.reduce_scatter, !everyone);
    times.reduced = refreshing;
    if (use_.factors_every > 1)
      times.reduced =
          mean(refreshing, collective(parts(gradients), rings_.reduce_scatter, !everyone));
    if (is_beside)
      times.inputs = mean(collective(parts(input), rings_.reduce_scatter, !everyone), {});
    times.gathered = collective(parts(gradients), rings_.all_gather, everyone);
  }

  // The mean over one iteration that refreshes the factors and those that do not. Its bytes are those
  // of the iteration that does.
  [[nodiscard]] PackedCollective mean(PackedCollective refreshing,
                                      const PackedCollective& plain) const {
    const auto of = [&](Seconds once, Seconds otherwise) {
      return otherwise + refreshed(once - otherwise);
    };
    refreshing.pack = of(refreshing.pack, plain.pack);
    refreshing.transfer = of(refreshing.transfer, plain.transfer);
    refreshing.unpack = of(refreshing.unpack, plain.unpack);
    return refreshing;
  }

  const KfacRequest& request_;
  const RingTimes& rings_;
  const models::KfacUse& use_;
  std::vector<FisherBlock> blocks_;
  std::vector<int> owners_;
  FlopsPerSecond flops_;
  BytesPerSecond memory_;
};

}  // namespace

Seconds KfacTimes::owned_total() const {
  Seconds sum;
  for (const OwnedLayer& layer : owned) sum += layer.invert + layer.precondition;
  return sum;
}

Seconds KfacTimes::factors_total() const {
  Seconds sum;
  for (const LayerTime& layer : factors) sum += layer.forward + layer.backward;
  return sum;
}

ComputeTimes KfacTimes::folded_into(ComputeTimes compute) const {
  PACELINE_ASSERT(compute.layers.size() == factors.size(), "every layer has its factors' times");
  for (std::size_t i = 0; i < factors.size(); ++i) {
    compute.layers[i].forward += factors[i].forward;
    compute.layers[i].backward += factors[i].backward;
  }
  compute.update += owned_total();
  return compute;
}

Seconds KfacTimes::communication(Seconds backward) const {
  return std::max(Seconds{0}, inputs.total() - backward) + reduced.total() + gathered.total();
}

KfacTimes k_fac_times(const KfacRequest& request, const RingTimes& rings, Bound bound) {
  PACELINE_ASSERT(request.plan.uses<models::KfacUse>() != nullptr, "the plan is one of K-FAC");
  return Kfac(request, rings, bound).times();
}

}  // namespace paceline::simulator
