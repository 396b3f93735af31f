// paceline verify: prove that a schedule is an all-reduce.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/job.h"
#include "models/base/parse_units.h"
#include "models/collective/all_reduce.h"
#include "models/collective/verify.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string schedule;
  std::string ranks;
  std::string group;
  std::string chunks;
  bool json = false;
};

// Beyond this a proof takes more memory and time than a desk has.
constexpr std::int64_t most_ranks = 4096;
constexpr std::int64_t most_chunks = 1 << 20;

void run(const Options& options) {
  if (options.schedule.empty())
    throw InputError("--schedule is missing", "give it, as in --schedule ring");
  if (options.ranks.empty()) throw InputError("--ranks is missing", "give it, as in --ranks 24");
  const auto& algorithm = parsing_option("--schedule", [&]() -> const models::AllReduceAlgorithm& {
    return models::all_reduce_algorithm(options.schedule);
  });
  models::AllReduceOptions build;
  build.ranks = static_cast<int>(
      parsing_option("--ranks", [&] { return parse_count(options.ranks, 1, most_ranks); }));
  if (!options.group.empty())
    build.group_size = static_cast<int>(
        parsing_option("--group", [&] { return parse_count(options.group, 1, most_ranks); }));
  const models::Schedule schedule =
      parsing_option("--group", [&] { return algorithm.build(build); });
  std::vector<std::int64_t> counts = models::telling_chunk_counts(schedule);
  if (!options.chunks.empty())
    counts = {
        parsing_option("--chunks", [&] { return parse_count(options.chunks, 1, most_chunks); })};

  nlohmann::ordered_json json = {{"schema", "paceline.proof/1"},
                                 {"schedule", options.schedule},
                                 {"ranks", build.ranks},
                                 {"steps", schedule.steps()},
                                 {"proved", true},
                                 {"chunk_counts", counts}};
  std::int64_t transfers = 0;
  for (const std::int64_t chunks : counts) {
    const models::Verdict verdict = models::verify_all_reduce(schedule, chunks);
    if (const auto* fault = std::get_if<models::Counterexample>(&verdict)) {
      json["proved"] = false;
      json["counterexample"] = {{"step", fault->step},
                                {"rank", fault->rank},
                                {"chunk", fault->chunk},
                                {"chunks", chunks},
                                {"why", fault->why}};
      fmt::print(
          "{}\n",
          options.json
              ? json.dump(2)
              : fmt::format("not an all-reduce: with {} chunks, step {}, rank {}, chunk {}: {}",
                            chunks, fault->step + 1, fault->rank, fault->chunk, fault->why));
      return;
    }
    transfers = std::max(transfers, std::get<models::Proof>(verdict).transfers);
  }
  json["transfers"] = transfers;
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
    return;
  }
  std::string list;
  for (std::size_t i = 0; i < counts.size(); ++i)
    list += (i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ") + fmt::format("{}", counts[i]);
  fmt::print(
      "proved: {} over {} ranks is an all-reduce in {} steps and {} transfers (with {} chunks)\n",
      options.schedule, build.ranks, schedule.steps(), transfers, list);
  fmt::print(
      "  every rank ends with every contribution exactly once; no chunk is read while it is "
      "replaced;\n"
      "  both ends of every message are in one step, so it cannot deadlock with synchronous sends\n"
      "  {}\n",
      schedule.description());
}

}  // namespace

void add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand("verify", "Prove that a schedule is an all-reduce");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("--schedule", options->schedule, "Name of the schedule (paceline show catalog)")
      ->option_text("NAME");
  command->add_option("--ranks", options->ranks, "Number of ranks, at most 4096")->option_text("N");
  command
      ->add_option("--group", options->group, "Group size k of hierarchical; must divide the ranks")
      ->option_text("K");
  command
      ->add_option("--chunks", options->chunks,
                   "Chunks of the bucket; by default three counts that exercise the schedule")
      ->option_text("C");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options] { run(*options); });
}

}  // namespace paceline::cli
