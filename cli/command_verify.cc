// paceline verify: prove that a schedule does what its collective promises.
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job/proof.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "models/collective/verify_json.h"

namespace paceline::cli {
namespace {

struct Options {
  job::ProofOptions proof;
  bool json = false;
};

void run(const Options& options) {
  Progress progress;
  const job::ProofOptions& asked = options.proof;
  const auto [named, proof] = job::prove(asked, [&](std::int64_t chunks, double share) {
    progress.show(fmt::format("proving {} over {} ranks with {} chunks", asked.schedule,
                              asked.build.ranks, chunks),
                  share);
  });
  progress.end();
  if (options.json) {
    print("{}\n", models::proof_document().text(proof));
    return;
  }
  const std::string promise(name(proof.collective));
  const std::string article = promise.front() == 'a' ? "an" : "a";
  if (const auto& fault = proof.fault) {
    print_lines("not {} {}: with {} chunks, step {}, rank {}, chunk {}: {}\n", article, promise,
                proof.fault_chunks, fault->step + 1, fault->rank, fault->chunk, fault->why);
    return;
  }
  const std::vector<std::int64_t>& counts = proof.chunk_counts;
  std::string list;
  for (std::size_t i = 0; i < counts.size(); ++i)
    list += (i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ") + fmt::format("{}", counts[i]);
  print_lines("proved: {} over {} ranks is {} {} in {} steps and {} transfers (with {} chunks)\n",
              proof.schedule, proof.ranks, article, promise, proof.steps, proof.transfers, list);
  print_lines(
      "  every rank ends with every contribution that it is promised, exactly once; no chunk is "
      "read while it is replaced;\n"
      "  both ends of every message are in one step, and no rank waits forever with synchronous "
      "sends\n"
      "  {}\n",
      named.schedule.description());
}

}  // namespace

void add_verify(Command& app) {
  Command& command =
      app.add_command("verify", "Prove that a schedule does what its collective promises");
  const auto options = std::make_shared<Options>();
  add_proof_options(command, options->proof);
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
