// paceline sweep: predictions of every combination of lists, over threads and ranks.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/ranks.h"
#include "cli/job/sweep_journal.h"
#include "cli/job/sweep_run.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "models/base/parse_units.h"
#include "runtime/channel/mpi_job.h"

namespace paceline::cli {
namespace {

constexpr int most_threads = 1024;

struct Options {
  std::string file;
  std::string out;
  std::string threads;
  std::string journal_every;
  std::string patience = job::default_patience;
  bool resume = false;
  bool json = false;
  bool force = false;
};

// Says how many cells are done, of how many, and how many a second.
class Rate {
 public:
  Rate(std::int64_t first, std::int64_t all)
      : progress_(OffTerminal::lines), first_(first), all_(all) {}

  void show(std::int64_t cells) {
    const double seconds = since();
    const double done = static_cast<double>(cells - first_);
    const double rate = seconds > 0 ? done / seconds : 0;
    progress_.show(fmt::format("{} of {} cells, {:.0f} cells/s", cells, all_, rate),
                   static_cast<double>(cells) / static_cast<double>(all_));
  }
  // Takes the line away, and says what it came to.
  void end() {
    const double seconds = since();
    progress_.end();
    const auto done = static_cast<double>(all_ - first_);
    notice("{} cells in {}: {:.0f} cells/s\n", all_ - first_, to_text(Seconds{seconds}),
           seconds > 0 ? done / seconds : 0);
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double since() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  Progress progress_;
  Clock::time_point start_ = Clock::now();
  std::int64_t first_;
  std::int64_t all_;
};

job::SweepFormat format_of(const Options& options) {
  return options.json ? job::SweepFormat::json_lines : job::SweepFormat::csv;
}

int threads_of(const Options& options, int processes_on_node) {
  const unsigned here = std::max(1U, std::thread::hardware_concurrency());
  const int share = std::max(1, static_cast<int>(here) / processes_on_node);
  return job::optional_count("--threads", options.threads, most_threads).value_or(share);
}

// Rank 0, or a process by itself.
void write_rows(const Options& options, job::SweepRun run) {
  const job::SweepBlocks blocks(run.sweep);
  const std::int64_t cells = run.sweep.cells();
  const std::string header = job::sweep_header(run.format);
  std::optional<job::SweepJournal> journal;
  if (options.out.empty()) {
    print_text(header);
  } else {
    journal.emplace(job::SweepJournal::Options{
        .path = options.out,
        .digest = run.sweep.digest + (options.json ? "-json" : "-csv"),
        .header = header,
        .cells = cells,
        .resume = options.resume,
        .every_cells = job::optional_count("--journal-every", options.journal_every, 1'000'000'000)
                           .value_or(0)});
    run.first_block = blocks.block_at(journal->finished());
    if (run.first_block < 0)
      throw InputError({job::SweepJournal::journal_of(options.out)}, "the journal is damaged",
                       "remove it to begin anew");
    if (journal->finished() > 0)
      notice("{}: {} of {} cells are there\n", options.out, journal->finished(), cells);
  }
  Rate rate(blocks.first_cell(run.first_block), cells);
  run_sweep(run, [&](const std::string& rows, std::int64_t done) {
    if (journal)
      journal->add(rows, done);
    else
      print_text(rows);
    rate.show(done);
  });
  if (journal) journal->flush();
  rate.end();
}

void run(const Options& options) {
  const auto launched = job::rank_of_job();
  job::check_paths({job::output_path("--out", options.out, job::FileKind::rows),
                    {"FILE", options.file, job::PathUse::input}},
                   job::replaces(options.force));
  const auto needs_out = [&](const char* option, bool is_given) {
    if (is_given && options.out.empty())
      throw InputError({option}, "rows that go to standard output have no journal",
                       "write them to a file, with --out FILE");
  };
  needs_out("--resume", options.resume);
  needs_out("--journal-every", !options.journal_every.empty());
  const job::Sweep sweep =
      job::parse_sweep(job::read_input_file(options.file), options.file, doctor::version());
  const Seconds patience = job::parse_patience(options.patience);
  job::SweepRun run{.sweep = sweep,
                    .format = format_of(options),
                    .threads = threads_of(options, launched ? launched->ranks_on_node : 1)};
  if (!launched) return write_rows(options, run);
  runtime::MpiJob mpi(1, patience);
  run.channel = &mpi.endpoint().channel;
  if (launched->rank == 0)
    write_rows(options, run);
  else
    run_sweep(run, {});
}

}  // namespace

void add_sweep(Command& app) {
  Command& command = app.add_command(
      "sweep", "Predict every combination of lists, over threads and MPI ranks; goes on if killed");
  const auto options = std::make_shared<Options>();
  command
      .add_option("file", options->file,
                  "The sweep: lists of models, clusters, ranks, strategies, ... (YAML)")
      .required()
      .value("FILE");
  command
      .add_option("--out", options->out,
                  "Write the rows to a file, with a journal beside it (FILE.journal) by which a "
                  "sweep that was killed goes on; by default to standard output")
      .value("FILE");
  command.add_flag("--resume", options->resume,
                   "Go on where the journal of --out ends; begin where there is none");
  command
      .add_option("--threads", options->threads,
                  "Threads of each process (this process's share of the cores)")
      .value("N");
  command
      .add_option("--journal-every", options->journal_every,
                  "Bring rows to disk after this many cells (once a second)")
      .value("CELLS");
  add_patience_option(command, options->patience);
  command.add_flag("--json", options->json, "Rows as JSON lines in place of CSV");
  add_force_option(command, options->force);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
