#include "runtime/transport/messages.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "tests/support/rank_threads.h"

namespace paceline::runtime {
namespace {

using testing::on_ranks;

class Messages : public ::testing::TestWithParam<int> {};

TEST_P(Messages, BroadcastGivesAllRanksWhatRank0Has) {
  on_ranks(GetParam(), 1, [](Transport& t) {
    std::array<int, 3> values = {t.rank(), t.rank() + 1, t.rank() + 2};
    broadcast(t, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, (std::array<int, 3>{0, 1, 2}));
    EXPECT_EQ(broadcast_text(t, t.rank() == 0 ? "hello" : "other"), "hello");
    EXPECT_EQ(broadcast_text(t, t.rank() == 0 ? "" : "other"), "");
  });
}

TEST_P(Messages, GatherTextsHasThemInTheOrderOfRanks) {
  const int ranks = GetParam();
  on_ranks(ranks, 1, [ranks](Transport& t) {
    const auto all = gather_texts(t, std::string(static_cast<std::size_t>(t.rank()), 'x'));
    ASSERT_EQ(all.size(), t.rank() == 0 ? static_cast<std::size_t>(ranks) : 0u);
    for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank].size(), rank);
  });
}

TEST_P(Messages, GatherHasEveryRanksValues) {
  const int ranks = GetParam();
  on_ranks(ranks, 1, [ranks](Transport& t) {
    const std::array<float, 2> own = {static_cast<float>(t.rank()), 7};
    const std::vector<float> all = gather(t, own);
    if (t.rank() != 0) return;
    ASSERT_EQ(all.size(), static_cast<std::size_t>(2 * ranks));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
      EXPECT_EQ(all[2 * rank], static_cast<float>(rank));
  });
}

TEST_P(Messages, SumsAreTheSameOnAllRanks) {
  const int ranks = GetParam();
  on_ranks(ranks, 1, [ranks](Transport& t) {
    std::array<double, 2> values = {1.0, static_cast<double>(t.rank())};
    sum_over_ranks(t, values);
    EXPECT_EQ(values[0], ranks);
    EXPECT_EQ(values[1], ranks * (ranks - 1) / 2);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Messages, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace paceline::runtime
