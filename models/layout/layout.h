// How the ranks of a job are arranged: a mesh whose axes are, innermost first, tensor, context, data and
// stage (Narayanan 2021, arXiv 2104.04473, 3; Megatron-LM's order tp-cp-dp-pp).
//
//   tensor    the weights of layers are split over neighbours, inside a node where they fit
//             (rank_work.h)
//   context   the elements of a sequence are split; weights are not
//   data      ranks with the same weights, for which a strategy says how gradients travel and what is
//             sharded (sharding.h); those of one context count, too
//   stage     the network is cut into stages, each of which has its own ranks (stages.h)
//
// The experts of a network are shared out to neighbouring ranks of a stage, whichever of the first three axes
// these are on (Megatron-LM's expert parallelism, whose experts' tensors are not split; DeepSpeed-MoE, Rajbhandari
// 2022, arXiv 2201.05596). Ranks with the same experts sum these experts' gradients.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace paceline::models {

// In which order a stage takes the passes of an iteration's batches.
enum class PipelineSchedule {
  one_f_one_b,  // a forward pass, then a backward pass, after a few forward passes (PipeDream-flush)
  gpipe,        // all forward passes, then all backward passes (Huang 2018, arXiv 1811.06965)
};
inline constexpr std::array<std::pair<PipelineSchedule, std::string_view>, 2> pipeline_schedules = {
    {{PipelineSchedule::one_f_one_b, "1f1b"}, {PipelineSchedule::gpipe, "gpipe"}}};

inline constexpr int most_of_an_axis = 1 << 10;

struct Layout {
  int tensor = 1;
  // Whether what tensor parallelism leaves whole, norms and residuals, is split by elements of the
  // sequence (Korthikanti 2022, arXiv 2205.05198, 4.2.2).
  bool sequence_parallel = true;
  // Whether the exchanges of tensor parallelism travel in parts beside the products that make or read them
  // (userbuffers of NVIDIA's Transformer Engine).
  bool tensor_overlap = false;
  int context = 1;
  int expert = 1;  // ranks that have different experts, where that is more than `tensor`
  // Whether a token goes once to each node, or each rank of the only node, that has some of its experts, and is copied
  // there (DeepEP; HybridEP). Else it goes to each of its experts by itself.
  bool tokens_once = false;
  int pipeline = 1;  // stages
  // Parts of the network that each stage has: with more than one, stages are interleaved
  // (Narayanan 2021, 2.2).
  int chunks = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;

  // The ranks that together hold one copy of the network's weights.
  [[nodiscard]] int ranks_of_copy() const { return tensor * pipeline; }
  // The ranks that work on one sample at a time.
  [[nodiscard]] int ranks_of_sample() const { return ranks_of_copy() * context; }
  [[nodiscard]] bool is_data_parallel() const { return ranks_of_sample() == 1; }
  // Whether ranks are those with the same weights, and neighbours that share tensors without sequence parallelism, and
  // no others: what our runtime runs.
  [[nodiscard]] bool is_data_and_tensor() const {
    return *this == Layout{} ||
           (tensor > 1 && *this == Layout{.tensor = tensor, .sequence_parallel = false});
  }
  // The number of neighbours that experts are shared out to, and how many of them one data-parallel group has.
  [[nodiscard]] int expert_ranks() const { return expert > tensor ? expert : tensor; }
  [[nodiscard]] int expert_parts() const { return expert_ranks() / tensor; }

  bool operator==(const Layout&) const = default;
};

// "tensor 8 with sequence parallelism, pipeline 4 (1f1b), data 16"; of a job of this many ranks.
[[nodiscard]] std::string described(const Layout& layout, int ranks);

// Throws InputError that names the option unless the layout's parts are in range and its axes divide the
// ranks, batches (of a data-parallel rank, in an iteration) fit an interleaved schedule, and its parts fit
// each other.
void check_layout(const Layout& layout, int ranks, int batches);

}  // namespace paceline::models
