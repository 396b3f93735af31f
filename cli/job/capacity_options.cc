// Tests: tests/cli/capacity_test.py (end to end).
#include "cli/job/capacity_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "cli/job/option_values.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"

namespace paceline::job {
namespace {

constexpr int most_batch = 1 << 20;
constexpr int most_global_batch = 1 << 30;
constexpr int most_parts = 1 << 16;
constexpr int most_default_ranks = 1024;
constexpr double longest_s = 3650 * 86400.0;  // that a run may be asked to take
constexpr double least_usd = 1e-6;
constexpr double most_usd = 1e15;

std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  return text;
}

int parse_number_of(const std::string& text) {
  return static_cast<int>(parse_count(text, 1, models::max_ranks));
}

// Adds what one part of a list says: "16", "8-64" (doubling), "8-64:8".
void add_range(const std::string& text, std::vector<int>& numbers) {
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string::npos) {
    numbers.push_back(parse_number_of(text));
    return;
  }
  const std::size_t colon = text.find(':', dash);
  const int first = parse_number_of(text.substr(0, dash));
  const int last =
      parse_number_of(text.substr(dash + 1, colon == std::string::npos ? colon : colon - dash - 1));
  if (last < first)
    throw InputError(fmt::format("{} goes down", in_quotes(text)),
                     fmt::format("write {}-{}", last, first));
  const int step = colon == std::string::npos ? 0 : parse_number_of(text.substr(colon + 1));
  for (std::int64_t n = first; n<last; n = step> 0 ? n + step : 2 * n) {
    if (numbers.size() > most_candidates)
      throw InputError("too many numbers", fmt::format("at most {}", most_candidates));
    numbers.push_back(static_cast<int>(n));
  }
  if (step == 0 || (last - first) % step == 0) numbers.push_back(last);
}

std::vector<int> parse_numbers(const char* option, const std::string& text) {
  return parsing_option(option, [&] {
    std::vector<int> numbers;
    for (const std::string& part : comma_list(text)) add_range(part, numbers);
    return numbers;
  });
}

void refuse_twice(const char* option, const std::vector<std::string>& names) {
  for (std::size_t i = 1; i < names.size(); ++i) {
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(names.begin(), end, names[i]) == end) continue;
    throw InputError({option},
                     fmt::format("{} is there twice", names[i].empty() ? "own" : names[i]),
                     "name each once");
  }
}

// 1, 2, 3, 4, 6, 8, 12, 16, ... and the last.
std::vector<int> default_nodes(int nodes, int ranks_per_node) {
  const int most = std::min(nodes, std::max(1, most_default_ranks / ranks_per_node));
  std::vector<int> numbers;
  for (int n = 1; n < most; n *= 2) {
    numbers.push_back(n);
    if (n > 1 && n / 2 * 3 < most) numbers.push_back(n / 2 * 3);
  }
  numbers.push_back(most);
  return numbers;
}

}  // namespace

std::optional<RankBatch> Batches::of(int ranks) const {
  if (!global) return RankBatch{batch_per_rank_, accumulate_.value_or(1)};
  const std::int64_t parts = static_cast<std::int64_t>(ranks) * accumulate_.value_or(1);
  if (*global % parts != 0 || *global / parts > most_batch) return std::nullopt;
  return RankBatch{static_cast<int>(*global / parts), accumulate_.value_or(1)};
}

std::optional<RankBatch> Batches::cut(const RankBatch& whole, int largest) const {
  for (int parts = std::max(1, whole.batch / std::max(1, largest));
       parts <= std::min(whole.batch, most_parts); ++parts) {
    if (whole.batch % parts == 0 && whole.batch / parts <= largest)
      return RankBatch{whole.batch / parts, parts};
  }
  return std::nullopt;
}

std::string Batches::described() const {
  const std::string samples = std::to_string(global.value_or(batch_per_rank_));
  if (accumulate_.value_or(1) == 1) return samples;
  return fmt::format("{} in {} parts", samples, *accumulate_);
}

Batches parse_batches(const CapacityOptions& options) {
  const bool has_phases = !options.run.phases.empty();
  const bool cuts = options.accumulate == "auto";
  for (const auto& [option, is_given] :
       {std::pair{"--global-batch", !options.global_batch.empty()}, {"--accumulate", cuts}}) {
    if (is_given && has_phases)
      throw InputError(
          {option}, "the document of --phases says what a rank computes",
          "leave it out, or describe one phase by --epochs, --samples or --iterations");
  }
  Batches batches;
  if (!cuts)
    batches.accumulate_ =
        optional_count("--accumulate", options.accumulate, most_parts).value_or(1);
  if (options.global_batch.empty()) {
    batches.batch_per_rank_ =
        optional_count("--batch", options.batch, most_batch).value_or(batches.batch_per_rank_);
    return batches;
  }
  if (!options.batch.empty())
    throw InputError({"--global-batch"}, "there is --batch, too", "leave one of the two out");
  batches.global = optional_count("--global-batch", options.global_batch, most_global_batch);
  return batches;
}

simulator::Demand parse_demand(const CapacityOptions& options) {
  simulator::Demand demand;
  if (!options.within.empty()) {
    demand.within = parsing_option("--within", [&] {
      const Seconds time = parse_duration(options.within);
      if (time <= Seconds{0} || time > Seconds{longest_s})
        throw InputError(fmt::format("{} is out of range", in_quotes(options.within)),
                         "write more than 0 s, up to 3650 days");
      return time;
    });
  }
  if (!options.budget.empty()) {
    demand.budget = parsing_option("--budget", [&] {
      return Usd{parse_number(without_ending(options.budget, "USD"), least_usd, most_usd)};
    });
  }
  if (!options.efficiency.empty()) {
    demand.efficiency =
        parsing_option("--efficiency", [&] { return parse_share(options.efficiency, 1e-6, 1); });
  }
  demand.cautious = options.cautious;
  if (demand.cautious && !demand.asks_anything())
    throw InputError({"--cautious"}, "there is no limit to hold at the bad end of an interval",
                     "add --within, --budget or --efficiency");
  return demand;
}

std::vector<NamedCluster> parse_clusters(const CapacityOptions& options) {
  require_option(options.clusters, "--cluster", "aws-p3-16xlarge,sony-abci");
  std::vector<std::string> nics = {""};
  if (!options.nics.empty()) {
    nics = parsing_option("--nic", [&] { return comma_list(options.nics); });
    for (std::string& nic : nics) {
      if (nic == "own") nic.clear();
    }
  }
  const std::vector<std::string> clusters =
      parsing_option("--cluster", [&] { return comma_list(options.clusters); });
  refuse_twice("--cluster", clusters);
  refuse_twice("--nic", nics);
  std::vector<NamedCluster> all;
  for (const std::string& cluster : clusters) {
    for (const std::string& nic : nics) all.push_back({cluster, nic});
  }
  return all;
}

std::vector<int> ranks_of_candidates(const CapacityOptions& options, int nodes,
                                     int ranks_per_node) {
  const std::string& ranks = options.ranks;
  if (!ranks.empty() && !options.nodes.empty())
    throw InputError({"--nodes"}, "there is --ranks, too", "leave one of the two out");
  std::vector<int> numbers;
  if (!ranks.empty()) {
    numbers = parse_numbers("--ranks", ranks);
  } else {
    numbers = options.nodes.empty() ? default_nodes(nodes, ranks_per_node)
                                    : parse_numbers("--nodes", options.nodes);
    for (int& number : numbers)
      number = static_cast<int>(std::min<std::int64_t>(
          static_cast<std::int64_t>(number) * ranks_per_node, models::max_ranks + 1));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

NodePrices::NodePrices(const std::string& option, const std::vector<NamedCluster>& clusters) {
  if (option.find('=') == std::string::npos) {
    for_all_ = option;
    return;
  }
  parsing_option("--node-price", [&] {
    for (const std::string& part : comma_list(option)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos)
        throw InputError(fmt::format("{} names no cluster", in_quotes(part)),
                         "write CLUSTER=PRICE for each, or one price for all");
      const std::string label = without_blanks(part.substr(0, equals));
      std::vector<std::string> labels;
      for (const NamedCluster& cluster : clusters)
        labels.push_back(without_blanks(cluster.label()));
      if (std::find(labels.begin(), labels.end(), label) == labels.end())
        throw unknown_name("candidate", label, labels);
      std::string price = part.substr(equals + 1);
      price.erase(0, std::min(price.find_first_not_of(' '), price.size()));
      if (price.empty())
        throw InputError(fmt::format("{} has no price", in_quotes(part)),
                         "write CLUSTER=24.48 USD/h");
      by_label_.emplace_back(label, price);
    }
  });
}

std::string NodePrices::of(const NamedCluster& cluster) const {
  const std::string label = without_blanks(cluster.label());
  for (const auto& [named, price] : by_label_) {
    if (named == label) return price;
  }
  return for_all_;
}

}  // namespace paceline::job
