// Tests: tests/cli/train_test.py (end to end).
#include "cli/training_options.h"

#include <fmt/core.h>

#include "cli/output_format.h"
#include "cli/shared_options.h"
#include "runtime/exchange/recorder.h"

namespace paceline::cli {
namespace {

void add_recipe_options(Command& command, job::TrainingOptions& options) {
  command
      .add_option("--recipe", options.recipe,
                  "How to train: the name of a shipped recipe (paceline show recipes) or a YAML "
                  "file; the options below take the place of what it says")
      .value(fmt::format("NAME|FILE ({}; {} for text)", runtime::default_recipe,
                         runtime::default_text_recipe));
  command.add_option("--epochs", options.epochs, "Passes over the training set; may be a fraction")
      .value("N");
  command.add_option("--batch", options.batch, "Samples per rank and iteration").value("N");
  command
      .add_option("--learning-rate", options.learning_rate,
                  "Base learning rate, before linear scaling and warm-up")
      .value("RATE");
  command
      .add_option("--seed", options.seed,
                  "Seed of initial weights, of the order of samples and of augmentation")
      .value("N");
  command
      .add_option(
          "--precision", options.precision,
          "Precision of computation: fp32, or mixed (16-bit storage with FP32 master weights)")
      .value("fp32|mixed");
  command
      .add_option("--storage", options.storage,
                  "The 16-bit type of mixed precision. Arithmetic is in it where the CPU has that "
                  "(bf16: AVX-512), and elsewhere in FP32")
      .value("bf16|fp16");
}

void add_plan_options(Command& command, simulator::Question& travel) {
  add_field(command, travel, "wire")
      .explained(
          "Number type of gradients in an all-reduce; by default fp16 for mixed precision, "
          "else fp32");
  add_field(command, travel, "strategy")
      .explained("How gradients travel (paceline show catalog)")
      .value("NAME (fused-ring)");
  add_field(command, travel, "theta").value("SIZE (4 MiB)");
  add_field(command, travel, "eta").value("SIZE (the strategy's)");
  add_field(command, travel, "group").value("K (the ranks of a node)");
  add_field(command, travel, "segments").value("S (the algorithm's)");
  add_field(command, travel, "rings");
  add_field(command, travel, "servers").value("S (1)");
  add_fields(command, travel, {"streams", "plan"});
  add_field(command, travel, "tensor")
      .explained(
          "Neighbouring ranks that share the layers of a transformer out (tensor parallelism) and "
          "compute the same samples, on CPUs; --batch is then that of such a group");
  add_field(command, travel, "overlap")
      .explained("When buckets travel, and what an update uses")
      .value("wait-free|none|double-buffered");
}

}  // namespace

void add_training_options(Command& command, job::TrainingOptions& options) {
  command
      .add_option("--model", options.model,
                  "Network: a name of the zoo (paceline show catalog) or a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--data", options.data,
                  "Images: fashion-mnist, synthetic (1,024 training images; synthetic:N has N), or "
                  "a folder "
                  "in ImageNet's layout or of TFRecord files")
      .value("NAME|FOLDER");
  add_recipe_options(command, options);
  add_plan_options(command, options.travel);
  command
      .add_option("--device", options.device,
                  "What computes: the CPU, a GPU for each rank, or GPU number N for all ranks")
      .value("cpu|cuda|cuda:N (cpu)");
  command
      .add_option(
          "--cuda-graphs", options.cuda_graphs,
          "Whether passes on a GPU are captured once and replayed as graphs, bit by bit the "
          "same")
      .value("on|off (on)");
  command
      .add_option(
          "--layers", options.layers,
          "What computes layers on GPUs: cuDNN, own kernels, which are slow, or cuDNN where "
          "it can be used")
      .value("auto|cudnn|own (auto)");
  command
      .add_option("--layer-plans", options.layer_plans,
                  "Where cuDNN's plans are kept for later runs; by default in the user's cache")
      .value("FILE");
  command
      .add_option("--ranks", options.ranks,
                  "Ranks as threads of this process; under mpirun or srun they are its processes")
      .value("N (1)");
  command
      .add_option(
          "--rendezvous", options.rendezvous,
          "Ranks as processes without MPI, which meet at this address of rank 0's machine by TCP; "
          "start one for each rank, with --ranks and --rank or by srun or torchrun. env: at "
          "MASTER_ADDR and MASTER_PORT, as torchrun sets them. Beyond loopback all ranks need the "
          "same secret in PACELINE_RENDEZVOUS_SECRET (docs/training.md)")
      .value("HOST:PORT|env");
  command
      .add_option(
          "--rank", options.rank,
          "Which rank this process is, from 0; by default what RANK (torchrun) or SLURM_PROCID "
          "(srun) says")
      .value("R");
  command
      .add_option("--threads", options.threads,
                  "Threads that compute, per rank; by default the cores of the node shared evenly")
      .value("N");
  command
      .add_option(
          "--workers", options.workers,
          "Threads that decode images, per rank; by default 1, and with --device cuda the cores of "
          "the node shared evenly, less two")
      .value("N");
  add_patience_option(command, options.patience);
  command
      .add_option("--checkpoint", options.checkpoint,
                  "Where to write a checkpoint after each epoch; the file is whole at all times")
      .value("FILE");
  command
      .add_option("--checkpoint-every", options.checkpoint_every,
                  "Write the checkpoint also after every N iterations")
      .value("N");
  command
      .add_option("--resume", options.resume,
                  "Go on from a checkpoint of the same job; what follows is the same, bit by bit")
      .value("FILE");
  command
      .add_option("--stop-after", options.stop_after,
                  "Stop after N iterations of this run, with a checkpoint if there is a path")
      .value("N");
  command.add_option("--metrics", options.metrics, "Write metrics as JSON lines").value("FILE");
  command
      .add_option("--timeline", options.timeline,
                  fmt::format("Write what rank 0 did in up to {} iterations as Chrome trace "
                              "JSON, as predict does",
                              runtime::recorded_iterations))
      .value("FILE");
  command.add_flag("--json", options.json, "Print one JSON document");
  add_force_option(command, options.force);
}

}  // namespace paceline::cli
