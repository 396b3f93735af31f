// K-FAC: what each layer has beside its gradients, and which rank owns it.
//
// Natural gradient descent with the Kronecker-factored approximation of the Fisher information matrix
// (Martens & Grosse 2015, Grosse & Martens 2016), distributed as by Osawa et al. 2019 (arXiv
// 1811.12019) and their code (github.com/tyohei/chainerkfac, 3b00957, named by file below). Every rank
// computes the factors of all layers from its own batch; each layer has one rank that owns it, which
// gets the sums of its factors and gradients, inverts the former, and preconditions the latter.
//
// The block of a layer, with c_in, c_out the channels of a group of a convolution, and its bias, if it
// has one, as one more input (convolution_2d.py, linear.py):
//   convolution      A of c_in k_h k_w (+ 1) rows, G of c_out rows, of each group
//   fully connected  A of inputs (+ 1) rows, G of outputs rows; a linear layer is the same
//   batch norm       one matrix F over both of its parameters, of 2 c rows (batch_normalization.py).
//                    Unit-wise blocks of 2 x 2 come from the follow-up (Osawa et al. 2020,
//                    arXiv 2002.06015), and are not modelled
//   others           none: embeddings, layer norms and the bias of a tied layer are not in the paper.
//                    Their owner hands the summed gradients on as they are
// The gradient of a layer becomes G^-1 dW A^-1, or F^-1 dw.
//
// Factors are symmetric: the n (n + 1) / 2 elements of one triangle travel (_utility.py, get_nelems).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/network/work.h"
#include "models/plan/servers.h"

namespace paceline::models {

// How a plan uses K-FAC. It is an entry of the plan's schedules.
struct KfacUse {
  // Iterations from one refresh of the factors and their inverses to the next; 1: in each.
  int factors_every = 1;
  // How owners are chosen (owners_of below).
  ServerPlacement owners = ServerPlacement::balanced;

  bool operator==(const KfacUse&) const = default;
};

inline constexpr int most_factors_every = 1'000'000;

// The block of the Fisher matrix of one layer with parameters. Counts are doubles: a square of what a
// network may state does not fit an integer. They are exact up to 2^53.
struct FisherBlock {
  int layer = 0;             // index into NetworkWork::layers
  std::int64_t groups = 1;   // of a convolution: as many A and G of the same size
  std::int64_t inputs = 0;   // rows of A; 0: the layer has none
  std::int64_t outputs = 0;  // rows of G, or of F; 0: the layer has no factors at all
  // Rows of the matrices whose product with themselves is A or G, for each sample: the positions of
  // a convolution's output, the elements of a sequence, else 1.
  std::int64_t positions = 1;
  std::int64_t gradients = 0;  // elements

  // Elements that travel.
  [[nodiscard]] double input_triangle() const;
  [[nodiscard]] double output_triangle() const;  // of G or F
  // Elements of both factors.
  [[nodiscard]] double squares() const;
  // FLOPs of the inverses: a Cholesky decomposition of n^3 / 3, and triangular solves against the n
  // columns of the unit matrix, 2 n^3 (cholesky_inverse.py: potrf, potrs; the counts are LAPACK's,
  // Blackford & Dongarra 1999, working note 41, C). 7/3 n^3 for each factor of n rows.
  [[nodiscard]] double inversion_flops() const;
  // FLOPs of G^-1 dW A^-1: 2 g^2 a + 2 g a^2; of F^-1 dw: 2 n^2.
  [[nodiscard]] double preconditioning_flops() const;

  bool operator==(const FisherBlock&) const = default;
};

// The blocks of all layers with parameters, in forward order. O(layers).
[[nodiscard]] std::vector<FisherBlock> fisher_blocks(const NetworkWork& network);

// The rank that owns each block.
//   round_robin  block i is on rank i mod p. Where there are at least as many ranks as blocks, this is
//                what the authors' code does (kfac.py, numpy.array_split)
//   balanced     blocks by falling FLOPs of inversion and preconditioning, those without factors by
//                their gradients, and blocks of equal cost in forward order: each on the rank with the
//                least so far, the first of several (longest processing time first, Graham 1969)
// Throws InputError unless 1 <= ranks <= max_ranks (catalogue.h). O(blocks log blocks).
[[nodiscard]] std::vector<int> owners_of(std::span<const FisherBlock> blocks, int ranks,
                                         ServerPlacement rule);

// Elements of a vector whose part `shares[i]` ends on rank `owners[i]` that the busiest rank sends, if
// it goes around a ring of all ranks in pieces: all but its own part, n - c. A rank that owns nothing
// sends all of it. (A ring reduce-scatter of equal parts: n (p - 1) / p.) 0 on one rank.
[[nodiscard]] double most_sent(std::span<const double> shares, std::span<const int> owners,
                               int ranks);

}  // namespace paceline::models
