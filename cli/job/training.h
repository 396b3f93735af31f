// What the options of `paceline train` name: a recipe, a plan and a data set, loaded and checked.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/job/ranks.h"
#include "models/network/network.h"
#include "models/plan/plan.h"
#include "runtime/training/cuda_module.h"
#include "runtime/training/data/dataset.h"
#include "runtime/training/recipe.h"
#include "simulator/question/question.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct TrainingOptions {
  std::string model;
  std::string data;
  std::string recipe;
  std::string epochs;
  std::string batch;
  std::string learning_rate;
  std::string seed;
  std::string precision;
  std::string storage;
  simulator::Question travel;  // --strategy, --wire, --overlap, --plan and thresholds
  std::string device = "cpu";
  std::string cuda_graphs;
  std::string layers;
  std::string layer_plans;
  std::string ranks;
  std::string rendezvous;
  std::string rank;
  std::string threads;
  std::string workers;
  std::string patience = default_patience;
  std::string checkpoint;
  std::string checkpoint_every;
  std::string resume;
  std::string stop_after;
  std::string metrics;
  std::string timeline;
  bool json = false;
  bool force = false;
};

// The recipe that --recipe names, or the default, with what other options change.
[[nodiscard]] runtime::Recipe load_recipe(const TrainingOptions& options,
                                          const models::Network& network);

// "fp32", "mixed (bf16)".
[[nodiscard]] std::string precision_text(const runtime::Recipe& recipe);

// The plan of --plan, or that of --strategy, for this network on `ranks` ranks, `ranks_per_node` of
// them on one node (the default of --group). Throws InputError that names the option, or the file of
// the plan.
[[nodiscard]] models::Plan load_plan(const TrainingOptions& options, const models::Network& network,
                                     const runtime::Recipe& recipe, int ranks, int ranks_per_node);

// The device that --device names.
struct NamedDevice {
  bool is_cuda = false;
  std::optional<int> index = {};  // of the GPU; nothing where each rank takes the next
};
// Throws InputError that names the option.
[[nodiscard]] NamedDevice named_device(const std::string& device);

// Whether --cuda-graphs wants them, which is so where it says nothing. Throws InputError that names the
// option, also where it is given beside another device than a GPU.
[[nodiscard]] bool wants_cuda_graphs(const std::string& choice, const NamedDevice& device);

// What --layers and --layer-plans say of layers on GPUs. Throws InputError that names the option, also
// where there is no GPU in use.
[[nodiscard]] runtime::CudaLayers named_layers(const TrainingOptions& options,
                                               const NamedDevice& device);

// The number of the GPU of a rank that is number `rank` on its node, of this many GPUs: ranks take them
// in turn. Throws InputError that names the option if there is no such GPU.
[[nodiscard]] int device_of_rank(const NamedDevice& device, int rank, int devices);

// The images that --data names, in the shape that the network takes, with as many classes as its
// loss tells apart. Throws InputError that names the option.
[[nodiscard]] std::unique_ptr<runtime::Dataset> load_dataset(const TrainingOptions& options,
                                                             const models::Network& network,
                                                             const runtime::Recipe& recipe);

}  // namespace paceline::job
