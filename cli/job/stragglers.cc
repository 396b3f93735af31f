// Tests: tests/cli (end to end).
#include "cli/job/stragglers.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"

namespace paceline::job {
namespace {

// Reads "3=2,7=1.5": whole numbers from 0 to `most_index`, each with a number from `low` to `high`.
std::map<int, double> assignments(const std::string& text, int most_index, double low, double high,
                                  const char* example) {
  std::map<int, double> values;
  for (const std::string& part : comma_list(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      throw InputError(fmt::format("{} has no =", in_quotes(part)),
                       fmt::format("write it as in {}", example));
    const int index = static_cast<int>(parse_count(part.substr(0, equals), 0, most_index));
    const double value = parse_share(part.substr(equals + 1), low, high);
    if (!values.emplace(index, value).second)
      throw InputError(fmt::format("{} is named twice", index), "name each once");
  }
  return values;
}

int nodes_of_job(const models::Cluster& cluster, int ranks) {
  const int g = cluster.ranks_per_node;
  if (cluster.slots.empty()) return (ranks + g - 1) / g;
  return *std::max_element(cluster.slots.begin(), cluster.slots.begin() + ranks) / g + 1;
}

}  // namespace

std::optional<simulator::MonteCarloRequest> load_stragglers(
    const simulator::StragglerTexts& options, int ranks) {
  constexpr int most_iterations = 1'000'000;
  constexpr std::int64_t most_seed = std::int64_t{1} << 53;  // that JSON holds exactly
  constexpr double slowest = 1000;
  const bool is_given = !(options.spread.empty() && options.slow_ranks.empty() &&
                          options.slow_nodes.empty() && options.backup.empty());
  if (!is_given) {
    for (const auto& [option, text] :
         {std::pair{"--iterations", options.iterations}, std::pair{"--seed", options.seed}}) {
      if (!text.empty())
        throw InputError({option}, "nothing varies from iteration to iteration",
                         "give --spread, --slow-rank, --slow-node or --backup, too");
    }
    return std::nullopt;
  }
  simulator::MonteCarloRequest request;
  if (!options.spread.empty()) {
    request.stragglers.spread = parsing_option(
        "--spread", [&] { return models::spread_from_text(options.spread, read_input_file); });
  }
  if (!options.slow_ranks.empty()) {
    request.stragglers.slow_ranks = parsing_option("--slow-rank", [&] {
      return assignments(options.slow_ranks, ranks - 1, 1, slowest, "--slow-rank 3=2");
    });
  }
  const auto count = [](const char* option, const std::string& text, std::int64_t least,
                        std::int64_t most, std::int64_t otherwise) {
    if (text.empty()) return otherwise;
    return parsing_option(option, [&] { return parse_count(text, least, most); });
  };
  request.stragglers.backup =
      static_cast<int>(count("--backup", options.backup, 0, models::max_ranks, 0));
  request.iterations = static_cast<int>(
      count("--iterations", options.iterations, 2, most_iterations, request.iterations));
  request.seed = static_cast<std::uint64_t>(count("--seed", options.seed, 0, most_seed, 1));
  return request;
}

void slow_nodes(models::Cluster& cluster, const simulator::StragglerTexts& options, int ranks) {
  constexpr double least_share = 0.001;
  if (options.slow_nodes.empty()) return;
  parsing_option("--slow-node", [&] {
    if (cluster.platform != nullptr)
      throw InputError("a platform has links of its own", "change their bandwidth in its file");
    cluster.slow_nodes = assignments(options.slow_nodes, nodes_of_job(cluster, ranks) - 1,
                                     least_share, 1, "--slow-node 3=0.5");
  });
}

}  // namespace paceline::job
