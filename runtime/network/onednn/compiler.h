// The compiler turns a models::Network into steps and memories. Private to runtime/network/onednn.
//
// A network is compiled in two sweeps. Going forward, each layer in order chooses the layout of its
// output, adds the steps of its forward pass, and says what its backward pass will want kept. Going
// backward, it adds the steps that turn the gradient of its output into those of its parameters and
// inputs. All values are taken as (N, C, H, W); a vector has H = W = 1, and a sequence W = 1. Layers that work on
// each element of a sequence see it as rows: a matrix of a row for each element, of its features.
//
// Invariants:
//  1. A value's gradient has the value's layout.
//  2. A step overwrites a block of data only if nobody will read it (may_overwrite), and a gradient
//     only if it is not another value's as well (Value::gradient_is_shared).
//  3. A shared gradient is read in its producer's backward pass, and not after.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "models/base/to_size.h"
#include "models/network/network.h"
#include "runtime/network/onednn/workshop.h"
#include "runtime/network/tensor_group.h"

namespace paceline::runtime::onednn {

// The output of a layer, or the network's input.
struct Value {
  models::Shape shape;
  int producer = models::network_input;
  std::vector<int> readers;  // in order; a layer that reads it twice stands there twice
  bool needs_gradient = false;

  Description layout;  // of data and gradient; of no dimensions until it is chosen
  Block data = no_block;
  bool is_shared = false;  // a view of a value that others read, too

  Block gradient = no_block;  // is set as soon as a reader has given its part
  bool gradient_is_shared = false;
};

// How a parameter comes from the caller's array into its working copies: forward and backward may
// want different layouts.
struct WorkingCopies {
  Memory source;  // in the caller's array
  std::vector<Memory> targets;
  Steps steps;
};

// The part of an input's gradient that comes from one of its readers.
struct GradientPart {
  // The part is written where the gradient stands, is copied there, or is added to it.
  enum class Way { placed, to_copy, to_add };
  int input = 0;
  Memory memory;
  Way way = Way::placed;
};

// Who does a ReLU's work: the ReLU itself, the layer before it in the forward pass, or the layer
// before it in both passes.
enum class ReluState { own, forward_done, done };

// Where a rank stands among those that share the tensors of the network.
struct TensorPlace {
  int rank = 0;
  int ranks = 1;
};

class LayerPlanner;

struct CompiledNetwork {
  dnnl::engine engine;  // which the stream must be of
  std::vector<LayerProgram> layers;
  std::vector<WorkingCopies> working_copies;  // by parameter
  std::vector<std::pair<int, Memory>>
      gradients_in_place;  // parameter, and its place with the caller
  Steps load_images;
  Memory images;  // FP32 NCHW, the caller's
  Memory logits;  // FP32, plain
  std::vector<float> statistics;
  Arena arena;
  Arena scratchpad;
};

class Compiler {
 public:
  // `arithmetic` is the storage type, or FP32: then every number that is stored is rounded to the
  // storage type and held in FP32.
  Compiler(const models::Network& network, const TrainableNetworkOptions& options,
           const std::vector<ParameterPlace>& places, models::NumberType arithmetic);
  ~Compiler();
  // Throws InputError that names the layer; dnnl::error if oneDNN has no primitive for a layer in
  // this arithmetic on this CPU.
  [[nodiscard]] CompiledNetwork compile();

  // The rest of this section is for the planners of layers. These speak of the layer at hand:
  [[nodiscard]] int layer() const { return layer_; }
  [[nodiscard]] const std::string& layer_name() const;
  [[nodiscard]] int input_count() const;
  [[nodiscard]] const Value& input(int index) const;
  [[nodiscard]] const Value& output() const;
  [[nodiscard]] const TrainableNetworkOptions& options() const { return options_; }
  [[nodiscard]] LayerProgram& program();
  [[nodiscard]] Workshop& workshop() { return workshop_; }
  [[nodiscard]] const dnnl::engine& engine() const { return workshop_.engine(); }

  // Layouts.
  [[nodiscard]] dnnl::memory::dims dims(const models::Shape& shape) const;
  // The type of activations and working copies in memory, which is that of the arithmetic.
  [[nodiscard]] dnnl::memory::data_type storage() const;
  [[nodiscard]] Description any_layout(const models::Shape& shape) const;  // of storage type
  // NCHW; of a sequence the features of each element stand together.
  [[nodiscard]] Description plain_layout(const models::Shape& shape,
                                         dnnl::memory::data_type type) const;
  // The layout in which a value is rows: that of a sequence, NHWC.
  [[nodiscard]] Description row_layout(const models::Shape& shape) const;
  // The same as a matrix: (samples x places, features).
  [[nodiscard]] Description rows(const models::Shape& shape) const;

  // The forward pass. Adds a step to training and to evaluation.
  void add_forward(const Step& step);
  // The layout that the input has; the network's input takes NCHW if nobody chose before.
  [[nodiscard]] Description input_layout(int index);
  // The input's data in a layout, reordered by a step of both passes where it must be.
  [[nodiscard]] Memory forward_input(int index, const Description& wanted);
  // The same for a backward step; `steps` takes the reorder.
  [[nodiscard]] Memory kept_input(int index, const Description& wanted, Steps& steps);
  [[nodiscard]] bool may_overwrite(int index) const;
  // Gives the output a place: `block`, or a new block where there is none.
  Memory make_output(const Description& layout, Block block = no_block);
  // Makes the output a view of the input: the same bytes in another layout.
  void make_view(const Description& layout);
  // Adds steps that round the output to the storage type, where arithmetic is wider. Call it after
  // the output's own step.
  void round_output();
  // Where ranks share the tensors of the network out: this one's place; whether it adds the bias of the layer at hand,
  // of whose outputs one rank's have it before they are summed; and the share of the loss, null where it has all classes.
  [[nodiscard]] TensorPlace tensor_place() const;
  [[nodiscard]] bool adds_bias() const;
  [[nodiscard]] const TensorShare* loss_share() const;
  // Backward will read the data of the input, or of the output.
  void keep_input(int index) { kept_.insert(input(index).data); }
  void keep_output() { kept_.insert(output().data); }
  [[nodiscard]] Memory kept_output();
  // Whether the output goes to a single ReLU, whose work the layer then does.
  [[nodiscard]] bool takes_over_relu(ReluState state);
  [[nodiscard]] ReluState relu_state() const;
  [[nodiscard]] Memory& logits() { return logits_; }
  // The caller's batch, in FP32 and the plain layout. It is there in the forward pass only.
  [[nodiscard]] const Memory& images() const { return images_; }

  // Parameters. `plain` is the layout in the caller's array.
  [[nodiscard]] int parameter(ParameterRole role) const { return parameter(layer_, role); }
  [[nodiscard]] int parameter(int layer, ParameterRole role) const;
  [[nodiscard]] const ParameterPlace& place(int parameter) const {
    return places_[to_size(parameter)];
  }
  // The layer that the input comes from.
  [[nodiscard]] int producer(int index) const { return input(index).producer; }
  // Whether a tied layer reads the table of the embedding at hand.
  [[nodiscard]] bool is_tied() const;
  [[nodiscard]] Memory working_copy(int parameter, const Description& plain,
                                    const Description& wanted);
  [[nodiscard]] Memory working_copy(ParameterRole role, const Description& plain,
                                    const Description& wanted) {
    return working_copy(parameter(role), plain, wanted);
  }
  // The memory to write a parameter's gradient to, in FP32: the caller's array where `wanted` is
  // the plain layout, else a temporary.
  [[nodiscard]] Memory parameter_gradient(int parameter, const Description& plain,
                                          const Description& wanted);
  [[nodiscard]] Memory parameter_gradient(ParameterRole role, const Description& plain,
                                          const Description& wanted) {
    return parameter_gradient(parameter(role), plain, wanted);
  }
  // Adds the steps that bring the written gradient to the caller's array, and round it where FP16
  // is stored.
  void deliver(ParameterRole role, const Description& plain, const Memory& written);
  // Adds the step that brings it there, and does not round it.
  void bring(int parameter, const Description& plain, const Memory& written);
  // The running statistics of the batch norm at hand, `channels` each.
  [[nodiscard]] float* running_mean();
  [[nodiscard]] float* running_variance();

  // Backward.
  [[nodiscard]] Memory output_gradient(const Description& wanted, Steps& steps);
  // The memory to write the gradient of an input to; deliver() follows. The second overwrites the
  // output's gradient where nobody reads that any more.
  [[nodiscard]] GradientPart gradient_part(int index, const Description& wanted);
  [[nodiscard]] GradientPart gradient_part_in_place(int index, const Description& wanted);
  void deliver(const GradientPart& part);
  // For layers whose inputs have the gradient of the output (add): shares it where it can.
  void pass_gradient_on();
  // For views: the gradient of the input is that of the output, in another layout.
  void pass_gradient_through_view();

 private:
  [[nodiscard]] Value& value(int producer) { return values_[to_size(producer + 1)]; }
  [[nodiscard]] const Value& value(int producer) const { return values_[to_size(producer + 1)]; }
  [[nodiscard]] Value& input_value(int index);
  [[nodiscard]] Value& output_value() { return value(layer_); }
  [[nodiscard]] int forward_time(int layer) const { return 1 + layer; }
  [[nodiscard]] int backward_time(int layer) const {
    return 2 * static_cast<int>(network_.layers().size()) - layer;
  }
  void make_values();
  void number_statistics();
  void sweep_forward();
  void sweep_backward();
  // Whether ranks share the network out, and sum the outputs or their gradients of the layer at hand, as `what` says.
  [[nodiscard]] bool sums(const std::vector<bool> models::TensorPart::*what) const;
  void sum_output();
  void sum_output_gradient();
  void add_sum(Steps& steps, const Memory& memory) const;
  void choose_layout(Value& value, const Description& wanted);
  [[nodiscard]] Steps load_images();
  // Adds a step that rounds to the storage type where arithmetic is wider; elsewhere none.
  void add_rounding(Steps& steps, const Memory& memory) const;
  void copy_gradient(Value& to, const Memory& from);
  void add_to_gradient(Value& to, const Memory& part);
  [[nodiscard]] std::vector<int> sharers_of_gradient();
  // The times of the pass at which the gradient is next changed after the layer at hand, and at
  // which it is last read.
  [[nodiscard]] int next_change(const Value& of) const;
  [[nodiscard]] int last_read(const Value& of) const { return backward_time(of.producer); }

  const models::Network& network_;
  const TrainableNetworkOptions& options_;
  const std::vector<ParameterPlace>& places_;
  models::NumberType arithmetic_;
  Workshop workshop_;
  int layer_ = 0;
  std::vector<Value> values_;  // the network's input, then by layer
  std::vector<std::unique_ptr<LayerPlanner>> planners_;
  std::vector<LayerProgram> programs_;
  std::vector<ReluState> relu_states_;
  std::unordered_set<Block> kept_;
  std::vector<std::size_t> statistics_offsets_;  // by layer
  std::vector<float> statistics_;
  std::vector<WorkingCopies> working_copies_;
  std::vector<std::pair<int, Memory>> gradients_in_place_;
  Memory logits_;
  Memory images_;
};

}  // namespace paceline::runtime::onednn
