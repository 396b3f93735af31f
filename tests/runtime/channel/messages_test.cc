#include "runtime/channel/messages.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "tests/support/rank_threads.h"

namespace paceline::runtime {
namespace {

void on_channels(int ranks, const std::function<void(Channel&)>& work) {
  testing::on_endpoints(ranks, 1, [&work](const Endpoint& endpoint) { work(endpoint.channel); });
}

class Messages : public ::testing::TestWithParam<int> {};

TEST_P(Messages, BroadcastGivesAllRanksWhatRank0Has) {
  on_channels(GetParam(), [](Channel& channel) {
    std::array<int, 3> values = {channel.rank(), channel.rank() + 1, channel.rank() + 2};
    broadcast(channel, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, (std::array<int, 3>{0, 1, 2}));
    EXPECT_EQ(broadcast_text(channel, channel.rank() == 0 ? "hello" : "other"), "hello");
    EXPECT_EQ(broadcast_text(channel, channel.rank() == 0 ? "" : "other"), "");
  });
}

TEST_P(Messages, GatherTextsHasThemInTheOrderOfRanks) {
  const int ranks = GetParam();
  on_channels(ranks, [ranks](Channel& channel) {
    const auto all =
        gather_texts(channel, std::string(static_cast<std::size_t>(channel.rank()), 'x'));
    ASSERT_EQ(all.size(), channel.rank() == 0 ? static_cast<std::size_t>(ranks) : 0u);
    for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank].size(), rank);
  });
}

TEST_P(Messages, GatherHasEveryRanksValues) {
  const int ranks = GetParam();
  on_channels(ranks, [ranks](Channel& channel) {
    const std::array<float, 2> own = {static_cast<float>(channel.rank()), 7};
    const std::vector<float> all = gather(channel, own);
    if (channel.rank() != 0) return;
    ASSERT_EQ(all.size(), static_cast<std::size_t>(2 * ranks));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
      EXPECT_EQ(all[2 * rank], static_cast<float>(rank));
  });
}

TEST_P(Messages, SumsAreTheSameOnAllRanks) {
  const int ranks = GetParam();
  on_channels(ranks, [ranks](Channel& channel) {
    std::array<double, 2> values = {1.0, static_cast<double>(channel.rank())};
    sum_over_ranks(channel, values);
    EXPECT_EQ(values[0], ranks);
    EXPECT_EQ(values[1], ranks * (ranks - 1) / 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Messages, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace paceline::runtime
