// Tests: tests/cli (end to end).
#include "cli/job/scaling.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "cli/job/option_values.h"
#include "models/cluster/placement.h"

namespace paceline::job {

std::vector<int> parse_rank_range(const std::string& text, const models::Cluster& cluster) {
  if (text.empty())
    return parse_rank_range(fmt::format("1-{}", models::placed_ranks(cluster)), cluster);
  const std::size_t dash = text.find('-', 1);
  std::vector<int> ranks;
  if (dash == std::string::npos) {
    for (const std::string& part : parsing_option("--ranks", [&] { return comma_list(text); }))
      ranks.push_back(parse_ranks(part, cluster));
    return ranks;
  }
  const int first = parse_ranks(text.substr(0, dash), cluster);
  const int last = parse_ranks(text.substr(dash + 1), cluster);
  if (last < first)
    throw InputError({"--ranks"}, fmt::format("{} goes down", in_quotes(text)),
                     fmt::format("write {}-{}", last, first));
  for (std::int64_t p = first; p < last; p *= 2) ranks.push_back(static_cast<int>(p));
  ranks.push_back(last);
  return ranks;
}

void choose_baseline(Job& job, const std::vector<int>& ranks) {
  if (job.networks.size() != 1)
    throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()),
                     "scale takes one");
  const int least = *std::min_element(ranks.begin(), ranks.end());
  if (!job.question.baseline_ranks)
    job.question.baseline_ranks = simulator::baseline_ranks(job.cluster, least);
  if (*job.question.baseline_ranks > least)
    throw InputError(
        {"--baseline"},
        fmt::format("{} ranks are no baseline of {}", *job.question.baseline_ranks, least),
        fmt::format("choose 1 to {}, or a curve of more ranks", least));
}

std::vector<PredictionTable> scaling_curve(Job& job, const std::vector<int>& ranks,
                                           const ScalingObserver& observer) {
  choose_baseline(job, ranks);
  std::vector<PredictionTable> tables;
  for (const int p : ranks) {
    const auto begin = [&](const models::Strategy& strategy, std::size_t done, std::size_t all) {
      const double share = static_cast<double>(done) / static_cast<double>(all);
      if (observer.begin)
        observer.begin({.ranks = p,
                        .strategy = strategy,
                        .row = done,
                        .rows = all,
                        .share = (static_cast<double>(tables.size()) + share) /
                                 static_cast<double>(ranks.size())});
    };
    tables.push_back(predict_table(job, job.networks.front(), p, {.begin = begin}));
    if (observer.point) observer.point(tables);
  }
  return tables;
}

}  // namespace paceline::job
