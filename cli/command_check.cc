// paceline check: whether a cluster is as fast as it should be for a job, and which part of it is not.
#include <fmt/core.h>

#include <memory>

#include "cli/check_text.h"
#include "cli/command.h"
#include "cli/job/check.h"
#include "cli/job/option_values.h"
#include "cli/job/ranks.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "models/base/error.h"
#include "runtime/channel/rank_threads.h"
#include "runtime/transport/mpi_transport.h"

namespace paceline::cli {
namespace {

struct Options {
  job::CheckOptions check;
  bool wide = false;
  OutputFormat format;
};

void answer(const Options& options) {
  Progress progress("comparing with what is expected");
  const job::CheckAnswer answer = job::check(options.check);
  progress.end();
  print_answer(options.format,
               {.document = [&] { return calibration::check_document().json(answer.check); },
                .records = {{"parts"}},
                .markdown = [&] { return parts_table(answer.check).markdown(); },
                .text = [&](int width) { return to_text(answer, width); },
                .wide = options.wide});
  if (!answer.check.is_slow()) return;
  flush_output();
  throw RunError("pass this check", "the verdict says why");
}

// Measures as one rank of a job. Rank 0 answers.
void measure(Options options, runtime::Transport& transport) {
  Progress progress(OffTerminal::lines);
  std::optional<job::ClusterCalibration> here =
      job::calibrate(job::check_here(options.check), transport,
                     [&](const std::string& what, double share) { progress.show(what, share); });
  progress.end();
  if (!here) return;
  options.check.here = std::move(here->made.profile);
  answer(options);
}

void run(Options options) {
  std::vector<job::GivenPath> paths = job::given_paths(options.check.question);
  for (const std::string& file : options.check.files) paths.push_back({"FILE", file});
  check_output_format(options.format, std::move(paths));
  if (!options.check.files.empty()) return answer(options);
  const Seconds patience = job::parse_patience(job::default_patience);
  if (const auto launched = job::rank_of_job()) {
    job::refuse_ranks_option(options.check.question.ranks);
    options.check.question.ranks = std::to_string(launched->ranks);
    return measure(options, *runtime::mpi_transport(1, patience));
  }
  const auto ranks =
      job::optional_count("--ranks", options.check.question.ranks, job::most_thread_ranks);
  if (!ranks)
    throw InputError("there is nothing to check",
                     "give files of what was measured, start it under mpirun or srun, or give "
                     "--ranks to measure between threads of this machine");
  runtime::run_as_threads(*ranks, 1, patience, [&](const runtime::Endpoint& endpoint) {
    measure(options, endpoint.transport);
  });
}

}  // namespace

void add_check(Command& app) {
  Command& command = app.add_command(
      "check", "Is this cluster as fast as it should be for a job, and which part is not?");
  command.example(
      "paceline check train.log trace.json all_reduce.txt topo.txt --model llama-3-8b --cluster "
      "h100-ndr --ranks 64 --batch 1 --strategy fsdp");
  command.example("paceline check all_reduce.txt --cluster h100-ndr");
  const auto options = std::make_shared<Options>();
  command
      .add_list(
          "file", options->check.files,
          "What there is of: a training log, a trace of torch.profiler or of paceline "
          "train, the output of nccl-tests and its like, nvidia-smi topo -m, a log of NCCL, a "
          "profile of paceline calibrate. Without any, ranks of CPUs measure here")
      .value("[FILE...]");
  add_job_options(command, options->check.question);
  add_size_options(command, options->check.question);
  add_field(command, options->check.question, "plan");
  command
      .add_option("--collective", options->check.collective,
                  "Collective of tables that do not say it, such as those of nccl-tests")
      .value("NAME");
  command
      .add_option("--fail-slower", options->check.fail_slower,
                  "Exit with 1 where the iteration takes longer than expected by more than this "
                  "share; by default, longer than the interval of the expectation")
      .value("SHARE|interval");
  command
      .add_option("--time", options->check.time,
                  "Time for what is measured here, where no files are given")
      .value("TIME (10 s)");
  add_wide_option(command, options->wide);
  add_output_formats(command, options->format);
  command.on_run([options](const Words&) { run(*options); });
}

}  // namespace paceline::cli
