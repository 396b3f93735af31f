// paceline verify: prove that a schedule does what its collective promises.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/schedule.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"
#include "models/collective/verify.h"
#include "models/collective/verify_json.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string schedule;
  job::ScheduleOptions build;
  std::string chunks;
  bool json = false;
};

// With more ranks or chunks a proof takes more memory and time than a workstation has.
constexpr std::int64_t most_ranks = 4096;
constexpr std::int64_t most_chunks = 1 << 20;

void run(const Options& options) {
  job::require_option(options.schedule, "--schedule", "ring");
  const auto [algorithm, build, schedule] = job::load_schedule(
      job::parsing_option("--schedule",
                          [&]() -> const models::CollectiveAlgorithm& {
                            return models::collective_algorithm(options.schedule);
                          }),
      options.build, most_ranks);
  const std::string promise(name(algorithm.collective));
  const std::string article = promise.front() == 'a' ? "an" : "a";
  std::vector<std::int64_t> counts = models::telling_chunk_counts(schedule);
  if (!options.chunks.empty())
    counts = {job::parsing_option("--chunks",
                                  [&] { return parse_count(options.chunks, 1, most_chunks); })};

  models::ScheduleProof proof{.schedule = options.schedule,
                              .collective = algorithm.collective,
                              .ranks = build.ranks,
                              .steps = schedule.steps(),
                              .chunk_counts = counts};
  Progress progress;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t chunks = counts[i];
    progress.show(fmt::format("proving {} over {} ranks with {} chunks", options.schedule,
                              build.ranks, chunks),
                  static_cast<double>(i) / static_cast<double>(counts.size()));
    const models::Verdict verdict = models::verify(algorithm.collective, schedule, chunks);
    if (const auto* fault = std::get_if<models::Counterexample>(&verdict)) {
      progress.end();
      proof.fault = *fault;
      proof.fault_chunks = chunks;
      print("{}\n", options.json
                        ? to_json(proof)
                        : fmt::format("not {} {}: with {} chunks, step {}, rank {}, chunk {}: {}",
                                      article, promise, chunks, fault->step + 1, fault->rank,
                                      fault->chunk, fault->why));
      return;
    }
    proof.transfers = std::max(proof.transfers, std::get<models::Proof>(verdict).transfers);
  }
  progress.end();
  if (options.json) {
    print("{}\n", to_json(proof));
    return;
  }
  std::string list;
  for (std::size_t i = 0; i < counts.size(); ++i)
    list += (i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ") + fmt::format("{}", counts[i]);
  print("proved: {} over {} ranks is {} {} in {} steps and {} transfers (with {} chunks)\n",
        options.schedule, build.ranks, article, promise, schedule.steps(), proof.transfers, list);
  print(
      "  every rank ends with every contribution that it is promised, exactly once; no chunk is "
      "read while it is replaced;\n"
      "  both ends of every message are in one step, and no rank waits forever with synchronous "
      "sends\n"
      "  {}\n",
      schedule.description());
}

}  // namespace

void add_verify(Command& app) {
  Command& command =
      app.add_command("verify", "Prove that a schedule does what its collective promises");
  const auto options = std::make_shared<Options>();
  command
      .add_option("--schedule", options->schedule, "Name of the schedule (paceline show catalog)")
      .value("NAME");
  add_schedule_options(command, options->build);
  command
      .add_option("--chunks", options->chunks,
                  "Chunks of the bucket; by default three counts that exercise the schedule")
      .value("C");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
