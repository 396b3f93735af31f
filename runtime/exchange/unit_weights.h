// The weights of a sharded plan, whose parts the ranks share out: a unit is a bucket of the plan, and its parts are
// gathered before a pass reads them.
//
// With fsdp (ZeRO-3) a rank keeps its own part of each unit. A unit is gathered before its forward and its backward pass
// and dropped behind them (Rajbhandari 2020, arXiv 1910.02054, 5.3; Zhao 2023, arXiv 2304.11277, 3.2), and the next ones
// are gathered beside the passes of one: two of a forward pass, and one of a backward pass. A unit that holds layers of no
// block (models::block_of) is gathered once, as FSDP's root, and so are all where the plan does not reshard. With zero1
// and zero2 a rank has all weights, and units are gathered once after each update, in the order of the forward pass, beside
// it. With zero2 and fsdp the gradients of a unit have memory of their own while they are computed and summed. Without
// overlap a pass waits for all that it asked for.
//
// Thread safety: one computing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/base/to_size.h"
#include "models/base/units.h"
#include "models/collective/rank_program.h"
#include "models/plan/plan.h"
#include "runtime/device/spare_memory.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

class UnitWeights : public LayerObserver {
 public:
  // The reader of weights, such as a network with working copies.
  struct Reader {
    // Takes the weights of parameters [first, first + count), which stand side by side.
    std::function<void(const ArrayView& values, int first, int count)> take;
    // Needs them no more until they are taken again.
    std::function<void(int first, int count)> drop;
    // Writes their gradients to memory of their own. Where it is empty, they go to the flat array.
    std::function<void(int first, int count, const ArrayView& memory)> put_gradients = {};
  };

  // `weights` is the flat FP32 array, of which this rank's own parts hold. It outlives this. The exchange ends before this does, because it may be writing into buffers.
  UnitWeights(std::span<const ParameterPlace> places, const models::Plan& plan,
              GradientExchange& exchange, const ArrayView& weights, std::size_t layers);

  // A layer that reads the parameters of another one, too.
  void tie(int layer, int owner);
  // Who takes weights from here on. Nobody has any before.
  void serve(Reader reader);
  // Layers' work is passed on to `next`, which may be null, without the time that weights take. Gathers have the number of
  // the iteration in the timeline.
  void at(std::int64_t iteration, LayerObserver* next);

  // Whether the layer reads weights that are not there.
  [[nodiscard]] bool lacks(int layer) const;
  void began(bool backward, int layer) override;
  void ended(bool backward, int layer) override;

  // Takes part in the gathers of a forward pass of others.
  void accompany_forward();
  // The own parts change until `when` is done: all that was gathered is dropped, or gathered anew beside what follows.
  void refresh(const Token& when = {});
  // Waits for what was asked for, so that nothing travels.
  void arrive();
  // Makes the whole flat array valid.
  void fill();
  // With fsdp, gives the memory of the flat array back, and keeps this rank's own parts.
  void keep_own() const;
  // How long passes have waited for weights since it was asked last.
  [[nodiscard]] Seconds take_waited();

 private:
  enum class State { away, coming, here };
  struct Unit {
    int first_parameter = 0;
    int parameters = 0;
    models::Elements all;
    models::Elements own;
    bool stays = false;   // from a forward pass to the backward pass
    int first_layer = 0;  // of those that read it, in the order of the network
    int last_layer = 0;
    State state = State::away;
    bool is_placed = false;  // its gradients have memory of their own
    Memory buffer =
        {};  // that it is gathered into, while it is coming; none where that is the flat array
  };

  void read_by(int layer, int unit);
  [[nodiscard]] ArrayView values(const Unit& unit) const;
  void fetch(Unit& unit);
  void await(Unit& unit);
  void bring(Unit& unit);
  void drop(Unit& unit);
  void place(Unit& unit);
  void prefetch(bool backward, int layer);
  [[nodiscard]] int index(const Unit& unit) const {
    return static_cast<int>(&unit - units_.data());
  }

  GradientExchange& exchange_;
  ArrayView weights_;
  bool overlaps_;
  bool keeps_parts_;                         // and no more, as fsdp does
  bool places_gradients_;                    // as zero2 and fsdp do
  std::vector<Unit> units_;                  // in backward order, as the plan's buckets
  std::vector<std::vector<int>> of_layers_;  // units that each layer reads
  SpareMemory spare_;                        // buffers
  Reader reader_;
  LayerObserver* next_ = nullptr;
  std::int64_t iteration_ = 0;
  Token changed_;  // the own parts have, when it is done
  Seconds waited_{0};
};

}  // namespace paceline::runtime
