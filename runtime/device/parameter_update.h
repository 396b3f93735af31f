// What the kernel UpdateParameters needs to know: which tensors stand where, and the numbers of one
// step of an optimizer on all of them. runtime/training/optimizer.h has the formulas, and makes the
// numbers from a recipe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace paceline::runtime {

// One parameter tensor in the flat arrays.
struct UpdatedTensor {
  std::size_t offset = 0;  // elements
  std::size_t elements = 0;
  float decay = 0;            // weight decay
  bool has_own_rate = false;  // by LARS
};

// The tensors that an optimizer updates, and how the work is shared between the threads of a CPU.
// Made once; a device may keep a copy of it.
class UpdateTable {
 public:
  // A stretch of one tensor.
  struct Block {
    std::size_t tensor = 0;
    std::size_t offset = 0;
    std::size_t elements = 0;
  };

  UpdateTable() = default;
  // `lars` says whether tensors may have a rate of their own; `threads` is at least 1.
  UpdateTable(std::vector<UpdatedTensor> tensors, bool lars, int threads);

  // Tables with one identity are copies of each other. It expires with the last of them.
  [[nodiscard]] std::weak_ptr<const void> identity() const { return identity_; }
  [[nodiscard]] std::span<const UpdatedTensor> tensors() const { return tensors_; }
  [[nodiscard]] std::size_t elements() const { return elements_; }  // of the flat arrays
  [[nodiscard]] bool lars() const { return lars_; }
  [[nodiscard]] std::size_t workers() const { return workers_; }
  // Blocks that all workers share: each takes an equal piece of them.
  [[nodiscard]] std::span<const Block> shared() const { return shared_; }
  // The blocks of whole tensors that one worker has.
  [[nodiscard]] std::span<const std::vector<Block>> own(std::size_t worker) const {
    return own_[worker];
  }

 private:
  void cut();
  void add_blocks(std::size_t tensor, std::vector<Block>& blocks) const;

  std::shared_ptr<const void> identity_;
  std::vector<UpdatedTensor> tensors_;
  std::size_t elements_ = 0;
  bool lars_ = false;
  std::size_t workers_ = 1;
  std::vector<Block> shared_;
  std::vector<std::vector<std::vector<Block>>> own_;
};

// The numbers of one step.
struct UpdateRule {
  float gradient_factor = 1;
  double learning_rate = 0;
  float momentum = 0;  // of the old v; corrected where the rate has changed
  bool nesterov = false;
  float look_ahead = 0;          // with Nesterov: of the new v
  double trust_coefficient = 0;  // LARS
  double lars_epsilon = 0;
  bool rmsprop = false;    // RMSprop warm-up in place of momentum SGD
  float sgd_rate = 0;      // with it: the rate times the share of SGD
  float rmsprop_rate = 0;  // with it: RMSprop's rate times its share
  float square_decay = 0;
  float rmsprop_epsilon = 0;
  bool adam =
      false;  // Adam in place of momentum SGD; `momentum` is the decay of its means. On CPUs only.
  float adam_rate = 0;
  float adam_epsilon = 0;
  float root_correction = 1;
  bool decoupled_decay = false;
};

}  // namespace paceline::runtime
