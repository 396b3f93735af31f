// Tests: tests/simulator/question_test.cc.
#include "simulator/question/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::simulator {
namespace {

constexpr std::int64_t most_of_batch = std::int64_t{1} << 40;

int accumulated(std::int64_t global_batch, const PredictionOptions& options, int ranks) {
  if (options.accumulate > 1)
    throw InputError({"--global-batch"}, "there is --accumulate, too", "leave one of the two out");
  const std::int64_t groups = std::max(1, ranks / options.layout.ranks_of_sample());
  const std::int64_t at_once = groups * options.batch_per_rank;
  if (global_batch % at_once != 0 || global_batch / at_once > most_accumulated)
    throw InputError(
        {"--global-batch"},
        fmt::format("{} samples are no multiple of {} ({} ranks of samples x batch {})",
                    global_batch, at_once, groups, options.batch_per_rank),
        "choose a multiple, of at most 65536 batches");
  return static_cast<int>(global_batch / at_once);
}

}  // namespace

std::int64_t GlobalBatch::samples(std::int64_t tokens_of_sample) const {
  if (!is_of_tokens) return count;
  if (tokens_of_sample == 0)
    throw InputError({"--global-batch"}, "a sample has no tokens here", "give the samples");
  if (count % tokens_of_sample != 0)
    throw InputError({"--global-batch"},
                     fmt::format("{} tokens are no whole number of samples of {} tokens", count,
                                 tokens_of_sample),
                     "choose a multiple, or another --sequence");
  return count / tokens_of_sample;
}

GlobalBatch parse_global_batch(std::string_view text) {
  constexpr std::string_view unit = "tokens";
  if (!text.ends_with(unit)) return {parse_count(text, 1, most_of_batch)};
  text.remove_suffix(unit.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> factors = {
      {{"Ki", 1024}, {"Mi", 1024 * 1024}, {"k", 1000}, {"K", 1000}, {"M", 1'000'000}}};
  std::int64_t factor = 1;
  for (const auto& [prefix, times] : factors)
    if (factor == 1 && text.ends_with(prefix)) {
      factor = times;
      text.remove_suffix(prefix.size());
    }
  return {factor * parse_count(text, 1, most_of_batch / factor), true};
}

Question with_batches(Question question, int ranks) {
  if (question.global_batch) {
    // Loading a job has made samples of its tokens.
    question.accumulate = accumulated(question.global_batch->samples(0), question, ranks);
  }
  question.global_batch.reset();
  return question;
}

PredictionRequest request_for(const Question& question, const models::NetworkWork& network,
                              Bytes stored_sample, const models::Cluster& cluster,
                              const models::Profile* profile, int ranks, models::WireType wire) {
  return {with_batches(question, ranks), network, cluster, profile, ranks, wire, stored_sample};
}

}  // namespace paceline::simulator
