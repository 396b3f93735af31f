#include "models/collective/draw.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"

namespace paceline::models {
namespace {

TEST(Draw, RingOfFourByHand) {
  EXPECT_EQ(
      draw(ring_all_reduce(4)),
      "4 ranks, 6 steps, 4 chunks: ring reduce-scatter (3 steps), then ring all-gather (3 steps)\n"
      "step  rank 0  rank 1  rank 2  rank 3\n"
      "   1  c3+>1   c0+>2   c1+>3   c2+>0\n"
      "   2  c2+>1   c3+>2   c0+>3   c1+>0\n"
      "   3  c1+>1   c2+>2   c3+>3   c0+>0\n"
      "   4  c0>1    c1>2    c2>3    c3>0\n"
      "   5  c3>1    c0>2    c1>3    c2>0\n"
      "   6  c2>1    c3>2    c0>3    c1>0\n"
      "cN>R: chunk N goes to rank R and replaces what it holds; cN+>R: it is added there\n");
}

TEST(Draw, SaysWhatItLeavesOut) {
  const std::string text = draw(ring_all_reduce(100), {.most_ranks = 2, .most_steps = 3});
  EXPECT_NE(text.find("(98 more ranks are not shown)"), std::string::npos);
  EXPECT_NE(text.find("(195 more steps are not shown)"), std::string::npos);
}

// Ranks 0 and 2 are masters of two groups of two. A chain of two segments takes two steps.
TEST(Draw, HierarchicalOfFourByHand) {
  const std::string text = draw(hierarchical_all_reduce(4, 2));
  const std::string grid = text.substr(text.find('\n') + 1);
  EXPECT_EQ(grid,
            "step  rank 0  rank 1  rank 2  rank 3\n"
            "   1  .       c0+>0   .       c0+>2\n"
            "   2  .       c1+>0   .       c1+>2\n"
            "   3  c1+>2   .       c0+>0   .\n"
            "   4  c0>2    .       c1>0    .\n"
            "   5  c0>1    .       c0>3    .\n"
            "   6  c1>1    .       c1>3    .\n"
            "cN>R: chunk N goes to rank R and replaces what it holds; cN+>R: it is added there\n");
}

TEST(Draw, OneStepIsOneStep) {
  const std::string text = draw(ring_all_reduce(3), {.most_ranks = 2, .most_steps = 3});
  EXPECT_NE(text.find("(1 more rank is not shown)\n(1 more step is not shown)"), std::string::npos)
      << text;
  EXPECT_NE(draw(ring_all_reduce(2)).find("ring all-gather (1 step)"), std::string::npos);
}

TEST(Draw, RunsOfChunksAndManyMessages) {
  const std::string halving = draw(Schedule(RecursiveHalving{4}));
  EXPECT_NE(halving.find("c2-3+>1"), std::string::npos) << halving;
  const std::string direct = draw(Schedule(ServerPush{8, 8}));
  EXPECT_NE(direct.find("c1+>1 c2+>2 c3+>3 c4+>4 and 3 more"), std::string::npos) << direct;
}

TEST(Draw, OneRankHasNothingToShow) {
  const std::string text = draw(ring_all_reduce(1));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "1 rank, 0 steps, 1 chunk: ring reduce-scatter (0 steps)")
      << text;
}

// 16384 parts inside half of a bucket that is cut into 24001 chunks: most halvings end with
// nothing.
TEST(Draw, EmptyMessagesAreNotShown) {
  constexpr int p = 24'001;
  const Schedule schedule = sequence(
      {on_part(0, 2, halving_doubling_all_reduce(p)), on_part(1, 24'007, ring_all_reduce(p))});
  ASSERT_EQ(schedule.natural_chunks(), 0) << "too many chunks to be drawn as they are";
  const std::string text = draw(schedule, {.most_ranks = 4, .most_steps = 40});
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    int first = 0;
    int last = 0;
    if (std::sscanf(word.c_str(), "c%d-%d", &first, &last) == 2) EXPECT_LT(first, last) << word;
  }
}

}  // namespace
}  // namespace paceline::models
