// The steps of a training iteration of a network on one GPU: for each layer the operations that
// cuDNN is to compute, and what a kernel of our own has to. A function of the network, the batch
// and nothing else; it needs no cuDNN. planner.h makes plans of the operations.
//
// Which work is fused, and why (tried on cuDNN 9.19 for sm_80 and sm_90 without a device; nothing
// of it has been timed on a GPU):
//  1. Bias and ReLU behind a convolution or a fully connected layer: into its epilogue. cuDNN has
//     30 to 43 compiled configurations for that where the bias has the storage type, and 6 to 18
//     which it compiles at run time where it is FP32.
//  2. Batch norm, the add behind it and the ReLU behind that: one operation. Convolutions before it
//     stay by themselves: the statistics are then those of the rounded output, as the CPU network
//     takes them, and a convolution has 28 to 43 configurations instead of the 4 to 13 with
//     statistics in the epilogue. The price is that batch norm reads its input from memory. Its
//     engines want many multiprocessors at once (pytorch#80259), which a collective beside them may
//     hold; that is the first thing to look at on a GPU.
//  3. Backward through batch norm and ReLU: one operation, which computes the sign of the output
//     again. Behind an add, the gradient of the ReLU is what the add's other inputs get, too. It is
//     computed once by itself, and batch norm's backward pass reads it.
//  4. The gradients that a value gets from several readers are summed in one operation, which takes
//     the gradient of a ReLU in.
//  5. The data gradient of a convolution stays by itself. With the gradient of a ReLU behind it,
//     cuDNN offers 9 to 13 configurations in place of 40, each compiled for 2 to 3 s at run time.
//  6. The network's input has channels of zeros up to a multiple of four where convolutions alone
//     read it: a pixel of four 16-bit numbers is one aligned load, and cuDNN offers a fifth more
//     configurations than for three.
// Kernels of our own have what cuDNN refuses or does not have: the loss (softmax as five nodes),
// concatenation and its gradient (concat, strided copies), local response normalisation, dropout (a
// mask drawn as the CPU network draws it), uneven pools, and the input's cast, reorder and padding;
// and the gradients of biases: cuDNN's reduction is not deterministic unless it is told to be, and
// then version 9.19 fails to compile it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/network/network.h"
#include "runtime/network/steps/operation.h"

namespace paceline::runtime::steps {

// A tensor that steps read and write.
struct Tensor {
  enum class Kind {
    data,           // the output of a layer, or the input (models::network_input)
    gradient,       // the whole gradient of a layer's output
    gradient_part,  // what the layer gives to the gradient of its input number `part`
    parameter,      // `part` counts the layer's parameters as declared: weight or scale, then bias
    parameter_gradient,
    statistics,  // a batch norm's running mean and variance
    kept         // what a layer's forward pass keeps for its backward pass beside data
  };
  Kind kind = Kind::data;
  int layer = 0;
  int part = 0;
  auto operator<=>(const Tensor&) const = default;
};

struct Operand {
  int role = 0;  // a Role, or Role::term and the number of the term; 0 for kernels of our own
  Tensor tensor;
  bool operator==(const Operand&) const = default;
};

// Kernels of our own, which cuDNN does not plan.
enum class OwnKernel { load_input, lrn, dropout, concat, uneven_pool, channel_sums, loss, flatten };
[[nodiscard]] std::string_view name(OwnKernel kernel);

struct Step {
  // The layer at whose place it runs: of a batch norm with its ReLU the batch norm, and where an add
  // is between them the ReLU.
  int layer = 0;
  Pass pass = Pass::forward;
  std::variant<Operation, OwnKernel> work;
  std::vector<Operand> reads;
  std::vector<Operand> writes;
  bool operator==(const Step&) const = default;
};

// Steps in an order in which they may run: forward in the order of layers, then backward. No step
// writes what it reads, except for the running statistics. Views (of flattened images whose readers do
// not ask for their order) and the gradient of an add have no steps: the tensor is read where it
// stands.
//
// Throws InputError as models::infer_shapes and check_trainable_on_gpus do, and for a batch below 1.
[[nodiscard]] std::vector<Step> layer_steps(const models::Network& network, int batch);

// What a library is asked to compute of the steps, in their order.
[[nodiscard]] std::vector<Operation> operations_of(const std::vector<Step>& steps);

// The shape in which each value stands in memory: first the network's input, whose channels may be
// filled up with zeros, then the output of each layer. A view of a flattened image, and what is
// computed of its elements one by one, has the shape of the image. Throws as layer_steps does.
[[nodiscard]] std::vector<Images> stored_shapes(const models::Network& network, int batch);

}  // namespace paceline::runtime::steps
