// Tests: tests/runtime/training/optimizer_test.cc.
#include "runtime/device/cpu_update.h"

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "models/base/error.h"
#include "runtime/tensor/kernels.h"
#include "runtime/tensor/optimizer_kernels.h"

namespace paceline::runtime {
namespace {

using Block = UpdateTable::Block;

class CpuUpdate {
 public:
  explicit CpuUpdate(const UpdateParameters& update)
      : table_(*update.table),
        rule_(update.rule),
        weights_(reinterpret_cast<float*>(update.weights.data)),
        gradients_(reinterpret_cast<const float*>(update.gradients.data)),
        momentum_(reinterpret_cast<float*>(update.momentum.data)),
        mean_square_(reinterpret_cast<float*>(update.mean_square.data)),
        copies_(update.copies),
        rates_(table_.tensors().size(), static_cast<float>(rule_.learning_rate)) {
    PACELINE_ASSERT(copies_ == nullptr || copies_->are_of(table_), "each tensor has a copy");
  }

  void run() {
    const std::span<const Block> shared = table_.shared();
    if (table_.lars() && !shared.empty()) set_own_rates(shared, true);
    on_workers([this, shared](std::size_t worker) {
      for (const std::vector<Block>& tensor : table_.own(worker)) {
        set_own_rates(tensor, false);
        update(tensor);
      }
      const std::size_t first = shared.size() * worker / table_.workers();
      const std::size_t last = shared.size() * (worker + 1) / table_.workers();
      update(shared.subspan(first, last - first));
    });
  }

 private:
  // Runs action(i) on worker i, all at once.
  template <class Action>
  void on_workers(Action action) const {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < table_.workers(); ++i) helpers.emplace_back(action, i);
    action(0);
  }

  // LARS: sets the rates of the tensors that have their own, among those of `blocks`. With
  // `threads` the workers share the sums.
  void set_own_rates(std::span<const Block> blocks, bool threads) {
    std::vector<SquareSums> sums(blocks.size());
    const auto add = [&](std::size_t first, std::size_t last) {
      for (std::size_t b = first; b < last; ++b) {
        if (!table_.tensors()[blocks[b].tensor].has_own_rate) continue;
        sums[b] = square_sums(weights_ + blocks[b].offset, gradients_ + blocks[b].offset,
                              blocks[b].elements);
      }
    };
    if (threads)
      on_workers([&](std::size_t i) {
        add(blocks.size() * i / table_.workers(), blocks.size() * (i + 1) / table_.workers());
      });
    else
      add(0, blocks.size());

    for (std::size_t b = 0; b < blocks.size();) {
      const std::size_t tensor = blocks[b].tensor;
      SquareSums total;
      for (; b < blocks.size() && blocks[b].tensor == tensor; ++b) {
        total.weights += sums[b].weights;
        total.gradients += sums[b].gradients;
      }
      set_own_rate(tensor, total);
    }
  }

  void set_own_rate(std::size_t tensor, const SquareSums& total) {
    const double weight_norm = std::sqrt(total.weights);
    const double gradient_norm =
        std::sqrt(total.gradients) * std::abs(static_cast<double>(rule_.gradient_factor));
    if (weight_norm == 0 || gradient_norm == 0) return;
    const auto decay = static_cast<double>(table_.tensors()[tensor].decay);
    const double own = rule_.trust_coefficient * weight_norm /
                       (gradient_norm + decay * weight_norm + rule_.lars_epsilon);
    rates_[tensor] = static_cast<float>(rule_.learning_rate * own);
  }

  void update(std::span<const Block> blocks) const {
    for (const Block& block : blocks) {
      update(block);
      if (copies_ != nullptr) write_copy(copies_->copies()[block.tensor], block);
    }
  }

  // The new weights of the block, rounded, each at its place in the copy.
  void write_copy(const WorkingCopy& copy, const Block& block) const {
    const std::size_t first = block.offset - copy.offset;
    const std::span<const float> weights(weights_ + block.offset, block.elements);
    if (copy.is_in_order())
      return cast_from_fp32(weights, copy.target.type,
                            copy.target.part(first, block.elements).data);
    const std::size_t size = bytes_of(copy.target.type);
    std::vector<std::byte> rounded(weights.size() * size);
    cast_from_fp32(weights, copy.target.type, rounded.data());
    for (std::size_t i = 0; i < weights.size(); ++i)
      std::memcpy(copy.target.data + copy.place_of(first + i) * size, rounded.data() + i * size,
                  size);
  }

  void update(const Block& block) const {
    float* w = weights_ + block.offset;
    const float* g = gradients_ + block.offset;
    float* v = momentum_ + block.offset;
    const float decay = table_.tensors()[block.tensor].decay;
    if (rule_.adam) {
      const auto shrink = static_cast<float>(1 - rule_.learning_rate * static_cast<double>(decay));
      adam_step({.gradient_factor = rule_.gradient_factor,
                 .decay = rule_.decoupled_decay ? 0 : decay,
                 .shrink = rule_.decoupled_decay ? shrink : 1,
                 .mean_decay = rule_.momentum,
                 .square_decay = rule_.square_decay,
                 .rate = rule_.adam_rate,
                 .root_correction = rule_.root_correction,
                 .epsilon = rule_.adam_epsilon},
                w, g, v, mean_square_ + block.offset, block.elements);
      return;
    }
    if (!rule_.rmsprop) {
      sgd_step({.gradient_factor = rule_.gradient_factor,
                .decay = decay,
                .momentum = rule_.momentum,
                .rate = rates_[block.tensor],
                .nesterov = rule_.nesterov,
                .look_ahead = rule_.look_ahead},
               w, g, v, block.elements);
      return;
    }
    rmsprop_step({.gradient_factor = rule_.gradient_factor,
                  .decay = decay,
                  .momentum = rule_.momentum,
                  .sgd_rate = rule_.sgd_rate,
                  .rmsprop_rate = rule_.rmsprop_rate,
                  .square_decay = rule_.square_decay,
                  .epsilon = rule_.rmsprop_epsilon},
                 w, g, v, mean_square_ + block.offset, block.elements);
  }

  const UpdateTable& table_;
  const UpdateRule& rule_;
  float* weights_;
  const float* gradients_;
  float* momentum_;
  float* mean_square_;
  const WorkingCopies* copies_;
  std::vector<float> rates_;  // of each tensor; workers write those of their own
};

}  // namespace

void update_on_cpu(const UpdateParameters& update) {
  CpuUpdate(update).run();
}

}  // namespace paceline::runtime
