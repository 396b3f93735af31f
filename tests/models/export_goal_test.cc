#include "models/collective/export/goal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/enumerate.h"
#include "models/collective/export/messages.h"
#include "tests/support/error_of.h"
#include "tests/support/goal_replay.h"
#include "tests/support/schedules.h"

namespace paceline::models {
namespace {

// The messages of each rank, from a list of all that is made step by step.
std::vector<RankMessages> messages_of_ranks(const Schedule& schedule, std::int64_t units) {
  std::vector<RankMessages> all(static_cast<std::size_t>(schedule.ranks()));
  std::map<std::pair<int, int>, int> in_all;  // messages so far, by sender and receiver
  for (int step = 0; step < schedule.steps(); ++step) {
    std::map<std::pair<int, int>, int> in_step;
    const auto add = [&](const Transfer<std::int64_t>& t) {
      if (t.span.size == 0) return;
      const std::pair pair(t.from, t.to);
      const Message m{step, t.from, t.to, in_step[pair]++, in_all[pair]++, t.reduce, t.span};
      all[static_cast<std::size_t>(t.from)].sent.push_back(m);
      all[static_cast<std::size_t>(t.to)].received.push_back(m);
    };
    for_each_transfer(schedule, step, Span<std::int64_t>{0, units}, add);
  }
  return all;
}

// docs/formats.md, "GOAL", describes this file.
TEST(ExportGoal, RingOfThreeByHand) {
  EXPECT_EQ(goal(ring_all_reduce(3), {.title = "ring over 3 ranks", .elements = 6, .gamma = {}}),
            R"(// GOAL, for LogGOPSim and ATLAHS; written by paceline export.
// ring over 3 ranks
// 24 bytes: 6 elements of 4 bytes; 4 steps. sS_R and rS_R: message of step S to and from rank R.
// Reductions are left out: no cluster was given to say what they cost.
// A message waits for both ranks: simulate with rendezvous for every size (LogGOPSim -S 0).
num_ranks 3

rank 0 {
s1_1: send 8b to 1 tag 0
r1_2: recv 8b from 2 tag 0
s2_1: send 8b to 1 tag 1
s2_1 requires s1_1
s2_1 requires r1_2
r2_2: recv 8b from 2 tag 1
r2_2 requires s1_1
r2_2 requires r1_2
s3_1: send 8b to 1 tag 2
s3_1 requires s2_1
s3_1 requires r2_2
r3_2: recv 8b from 2 tag 2
r3_2 requires s2_1
r3_2 requires r2_2
s4_1: send 8b to 1 tag 3
s4_1 requires s3_1
s4_1 requires r3_2
r4_2: recv 8b from 2 tag 3
r4_2 requires s3_1
r4_2 requires r3_2
}

rank 1 {
s1_2: send 8b to 2 tag 0
r1_0: recv 8b from 0 tag 0
s2_2: send 8b to 2 tag 1
s2_2 requires s1_2
s2_2 requires r1_0
r2_0: recv 8b from 0 tag 1
r2_0 requires s1_2
r2_0 requires r1_0
s3_2: send 8b to 2 tag 2
s3_2 requires s2_2
s3_2 requires r2_0
r3_0: recv 8b from 0 tag 2
r3_0 requires s2_2
r3_0 requires r2_0
s4_2: send 8b to 2 tag 3
s4_2 requires s3_2
s4_2 requires r3_0
r4_0: recv 8b from 0 tag 3
r4_0 requires s3_2
r4_0 requires r3_0
}

rank 2 {
s1_0: send 8b to 0 tag 0
r1_1: recv 8b from 1 tag 0
s2_0: send 8b to 0 tag 1
s2_0 requires s1_0
s2_0 requires r1_1
r2_1: recv 8b from 1 tag 1
r2_1 requires s1_0
r2_1 requires r1_1
s3_0: send 8b to 0 tag 2
s3_0 requires s2_0
s3_0 requires r2_1
r3_1: recv 8b from 1 tag 2
r3_1 requires s2_0
r3_1 requires r2_1
s4_0: send 8b to 0 tag 3
s4_0 requires s3_0
s4_0 requires r3_1
r4_1: recv 8b from 1 tag 3
r4_1 requires s3_0
r4_1 requires r3_1
}
)");
}

// Three pushes of 400 bytes arrive at the server, which adds 1200 bytes at 0.5 ns each; it sends
// when the sum is there. What it receives is joined by the reduction.
TEST(ExportGoal, AReductionIsACalcBetweenReceiveAndSend) {
  const std::string text =
      goal(parameter_server(4, 1, 0),
           {.title = "server", .elements = 100, .gamma = SecondsPerByte{0.5e-9}});
  const std::size_t server = text.find("rank 0 {");
  EXPECT_EQ(text.substr(server, text.find("rank 1 {") - server),
            "rank 0 {\n"
            "r1_1: recv 400b from 1 tag 0\n"
            "r1_2: recv 400b from 2 tag 0\n"
            "r1_3: recv 400b from 3 tag 0\n"
            "c1: calc 600\n"
            "c1 requires r1_1\n"
            "c1 requires r1_2\n"
            "c1 requires r1_3\n"
            "s2_1: send 400b to 1 tag 0\n"
            "s2_1 requires c1\n"
            "s2_2: send 400b to 2 tag 0\n"
            "s2_2 requires c1\n"
            "s2_3: send 400b to 3 tag 0\n"
            "s2_3 requires c1\n"
            "}\n\n");
}

// Without a cost of reductions, what a step of more than two ends in is joined by a calc of 0.
TEST(ExportGoal, ManyMessagesAreJoined) {
  const std::string text = goal(parameter_server(4, 1, 0), {.title = "server", .elements = 100});
  EXPECT_NE(text.find("j1: calc 0\n"
                      "j1 requires r1_1\n"
                      "j1 requires r1_2\n"
                      "j1 requires r1_3\n"
                      "s2_1: send 400b to 1 tag 0\n"
                      "s2_1 requires j1\n"),
            std::string::npos)
      << text;
}

// Exporters go rank by rank.
TEST(ExportedMessages, OfOneRankAreThoseOfTheWholeListInItsOrder) {
  for (const int p : {2, 3, 6, 8, 12}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const std::int64_t units : {5, 100}) {
        const std::vector<RankMessages> expected = messages_of_ranks(schedule, units);
        for (int rank = 0; rank < p; ++rank) {
          const RankMessages found = messages_of_rank(schedule, rank, units);
          const RankMessages& listed = expected[static_cast<std::size_t>(rank)];
          EXPECT_EQ(found.sent, listed.sent) << name << " p=" << p << " rank " << rank;
          EXPECT_EQ(found.received, listed.received) << name << " p=" << p << " rank " << rank;
        }
      }
    }
  }
}

// The blocks are made rank by rank; the list of all messages is made step by step.
TEST(ExportGoal, EveryRankHasItsMessagesOfTheWholeList) {
  using Line = std::tuple<char, int, std::uint64_t, std::uint32_t>;
  for (const int p : {2, 3, 6, 8, 12}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      const std::int64_t elements = 100;
      const test::GoalFile file = test::parse_goal(goal(schedule, {.elements = elements}));
      const std::vector<RankMessages> expected = messages_of_ranks(schedule, elements);
      for (std::size_t rank = 0; rank < file.size(); ++rank) {
        std::multiset<Line> in_file;
        for (const test::GoalOperation& o : file[rank])
          if (o.kind != 'c') in_file.insert({o.kind, o.peer, o.size, o.tag});
        std::multiset<Line> in_list;
        const auto add = [&](char kind, int peer, const Message& m) {
          in_list.insert({kind, peer, static_cast<std::uint64_t>(4 * m.span.size),
                          static_cast<std::uint32_t>(m.serial)});
        };
        for (const Message& m : expected[rank].sent) add('s', m.to, m);
        for (const Message& m : expected[rank].received) add('r', m.from, m);
        EXPECT_EQ(in_file, in_list) << name << " p=" << p << " rank " << rank;
      }
    }
  }
}

// Written as it goes: a piece is what one rank has, so that no more than that is held at a time.
TEST(ExportGoal, IsWrittenRankByRank) {
  const Schedule ring = ring_all_reduce(64);
  const GoalOptions options{.title = "ring", .elements = 6400};
  std::string text;
  std::size_t largest = 0;
  int pieces = 0;
  write_goal(ring, options, [&](std::string_view piece) {
    text += piece;
    largest = std::max(largest, piece.size());
    ++pieces;
  });
  EXPECT_EQ(text, goal(ring, options));
  EXPECT_EQ(pieces, 1 + 64);
  EXPECT_LT(largest, text.size() / 32);
}

// 4 p^2 lines at most, where every rank talks to every other: the joins keep dependencies linear.
TEST(ExportGoal, LinesGrowWithTheMessages) {
  for (const auto& [name, schedule] : test::all_reduces(24)) {
    const std::int64_t elements = 1000;
    std::size_t count = 0;
    for (const RankMessages& rank : messages_of_ranks(schedule, elements))
      count += rank.sent.size();
    const std::string text = goal(schedule, {.title = name, .elements = elements});
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_LE(lines, 8 * count + 3 * 24 + 10) << name;
  }
}

// Ranks do not all begin with the same receiver.
TEST(ExportGoal, SendsAreRotated) {
  const test::GoalFile file = test::parse_goal(goal(parameter_server(5, 5, 0), {.elements = 25}));
  for (int rank = 0; rank < 5; ++rank) {
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(file[static_cast<std::size_t>(rank)][i].peer, (rank + 1 + static_cast<int>(i)) % 5);
  }
}

TEST(ExportGoal, RanksWithoutMessagesAreIdle) {
  const std::string one = goal(ring_all_reduce(1), {.title = "one", .elements = 7});
  EXPECT_NE(one.find("num_ranks 1\n\nrank 0 {\nidle: calc 0\n}\n"), std::string::npos) << one;
  // One element: the ring has one message in each step.
  EXPECT_EQ(test::parse_goal(goal(ring_all_reduce(8), {.elements = 1})).size(), 8U);
  EXPECT_EQ(test::parse_goal(goal(ring_all_reduce(8), {.elements = 0})).size(), 8U);
}

TEST(ExportGoal, AFileThatNobodyReadsIsRefused) {
  EXPECT_EQ(test::error_of([] { return goal(ring_all_reduce(1300), {.elements = 1 << 20}); }),
            "the schedule has more than 3000000 messages; export fewer ranks or segments: other "
            "tools read every message of the file");
}

}  // namespace
}  // namespace paceline::models
