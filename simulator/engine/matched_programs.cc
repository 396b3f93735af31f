// Tests: tests/agreement/executor_engine_agreement_test.cc.
#include "simulator/engine/matched_programs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::simulator {

MatchedPrograms match_programs(const models::Schedule& schedule, std::int64_t bytes,
                               std::int64_t element_bytes, const models::MessageSizes& sizes) {
  const int ranks = schedule.ranks();
  // The window of posted receives does not matter here: messages that come early wait for free.
  // Nor does the wire type, which only decides how sums are rounded.
  const models::RankProgramOptions options{
      .message_elements = std::max<std::int64_t>(
          1, models::largest_message_bytes(schedule, bytes, sizes) / element_bytes),
      .window_elements = 1,
      .ahead_elements = sizes.ahead_bytes / element_bytes};
  const std::int64_t elements = (bytes + element_bytes - 1) / element_bytes;
  MatchedPrograms matched;
  for (int rank = 0; rank < ranks; ++rank) {
    matched.programs.push_back(
        models::compile(schedule, rank, elements, models::WireType::fp32, options));
  }
  // The messages from one rank to another are received in the order in which they are sent.
  std::map<std::pair<int, int>, std::vector<std::uint32_t>> receives;  // by sender and receiver
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& list = matched.programs[to_size(rank)].receives;
    for (std::uint32_t i = 0; i < list.size(); ++i) receives[{list[i].from, rank}].push_back(i);
  }
  std::map<std::pair<int, int>, std::size_t> next;
  for (int rank = 0; rank < ranks; ++rank) {
    auto& taken = matched.receives.emplace_back();
    for (const auto& send : matched.programs[to_size(rank)].sends) {
      const std::pair<int, int> pair{rank, send.to};
      taken.push_back(receives[pair][next[pair]++]);
    }
  }
  return matched;
}

}  // namespace paceline::simulator
