// Tests: tests/cli/command_test.py (end to end).
#include "cli/job/proof.h"

#include <algorithm>
#include <variant>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"
#include "models/collective/verify.h"

namespace paceline::job {
namespace {

// With more ranks or chunks a proof takes more memory and time than a workstation has.
constexpr int most_ranks = 4096;
constexpr std::int64_t most_chunks = 1 << 20;

}  // namespace

ProvenSchedule prove(const ProofOptions& options, const ProofObserver& observer) {
  require_option(options.schedule, "--schedule", "ring");
  ProvenSchedule proven{
      load_schedule(parsing_option("--schedule",
                                   [&]() -> const models::CollectiveAlgorithm& {
                                     return models::collective_algorithm(options.schedule);
                                   }),
                    options.build, most_ranks),
      {}};
  const models::Schedule& schedule = proven.named.schedule;
  models::ScheduleProof& proof = proven.proof;
  proof = {.schedule = options.schedule,
           .collective = proven.named.algorithm.collective,
           .ranks = proven.named.options.ranks,
           .steps = schedule.steps(),
           .chunk_counts = models::telling_chunk_counts(schedule)};
  if (!options.chunks.empty())
    proof.chunk_counts = {
        parsing_option("--chunks", [&] { return parse_count(options.chunks, 1, most_chunks); })};
  for (std::size_t i = 0; i < proof.chunk_counts.size(); ++i) {
    const std::int64_t chunks = proof.chunk_counts[i];
    if (observer)
      observer(chunks, static_cast<double>(i) / static_cast<double>(proof.chunk_counts.size()));
    const models::Verdict verdict = models::verify(proof.collective, schedule, chunks);
    if (const auto* fault = std::get_if<models::Counterexample>(&verdict)) {
      proof.fault = *fault;
      proof.fault_chunks = chunks;
      return proven;
    }
    proof.transfers = std::max(proof.transfers, std::get<models::Proof>(verdict).transfers);
  }
  return proven;
}

}  // namespace paceline::job
