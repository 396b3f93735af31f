// Tests: tests/cli/time_test.py.
#include "cli/job/measured.h"

#include <fmt/core.h>

#include "cli/job/option_values.h"
#include "cli/job/sizes.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"

namespace paceline::job {
namespace {

simulator::MeasuredAllReduce one_of(const std::string& text, int ranks,
                                    const models::Cluster& cluster) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw InputError(fmt::format("{} has no time", in_quotes(text)),
                     "write SIZE=TIME@RANKS, such as 64B=40.5us@16");
  const std::size_t at = text.find('@', equals);
  const std::string time = text.substr(equals + 1, at == std::string::npos ? at : at - equals - 1);
  simulator::MeasuredAllReduce measured{
      .ranks = ranks, .bytes = parse_size(text.substr(0, equals)), .time = parse_seconds(time)};
  if (at != std::string::npos) {
    constexpr int least_ranks = 2;
    measured.ranks = static_cast<int>(parse_count(
        text.substr(at + 1), least_ranks, std::int64_t{cluster.ranks_per_node} * cluster.nodes));
  }
  constexpr Seconds longest{86400};
  if (measured.time <= Seconds{0} || measured.time > longest)
    throw InputError(fmt::format("a collective of {}", to_text(measured.time)),
                     "give more than 0 s and at most a day");
  return measured;
}

}  // namespace

std::vector<simulator::MeasuredAllReduce> parse_measured(const std::string& text, int ranks,
                                                         const models::Cluster& cluster) {
  std::vector<simulator::MeasuredAllReduce> measured;
  if (text.empty()) return measured;
  parsing_option("--measured", [&] {
    for (const std::string& part : comma_list(text))
      measured.push_back(one_of(part, ranks, cluster));
    return 0;
  });
  return measured;
}

std::vector<MeasuredThroughput> parse_measured_throughputs(const std::string& text,
                                                           const models::Cluster& cluster) {
  std::vector<MeasuredThroughput> measured;
  if (text.empty()) return measured;
  return parsing_option("--measured", [&] {
    for (const std::string& part : comma_list(text)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos)
        throw InputError(fmt::format("{} has no throughput", in_quotes(part)),
                         "write RANKS=THROUGHPUT, such as 64=13200images/s");
      const std::int64_t most = std::int64_t{cluster.ranks_per_node} * cluster.nodes;
      measured.push_back({static_cast<int>(parse_count(part.substr(0, equals), 1, most)),
                          parse_rate(part.substr(equals + 1))});
      if (measured.back().samples <= PerSecond{0})
        throw InputError(fmt::format("{} is no throughput", in_quotes(part)),
                         "give more than 0 samples/s");
    }
    return measured;
  });
}

void check_possible(const std::vector<simulator::MeasuredAllReduce>& measured,
                    models::Collective collective, const models::Cluster& cluster,
                    const models::Profile* profile) {
  for (const simulator::MeasuredAllReduce& one : measured) {
    const Seconds least = least_time(
        one, communication_cost(cluster, profile, simulator::Bound::fast, one.ranks), collective);
    if (one.time >= least) continue;
    throw InputError(
        {"--measured"},
        fmt::format("{} among {} ranks in {} are faster than the links of {}",
                    to_text_binary(one.bytes), one.ranks, to_text(one.time), cluster.name),
        fmt::format("give at least {}, which takes twice their bandwidth, or another cluster",
                    to_text(least)));
  }
}

}  // namespace paceline::job
