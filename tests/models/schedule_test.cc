#include "models/collective/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "models/collective/enumerate.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"

namespace paceline::models {
namespace {

using PlainTransfer = std::tuple<int, int, double, double, bool>;

template <class T>
std::multiset<PlainTransfer> by_step(const Schedule& schedule, int step, Span<T> bucket) {
  std::multiset<PlainTransfer> transfers;
  for_each_transfer(schedule, step, bucket, [&](const Transfer<T>& t) {
    transfers.emplace(t.from, t.to, static_cast<double>(t.span.begin),
                      static_cast<double>(t.span.size), t.reduce);
  });
  return transfers;
}

template <class T>
void expect_one_definition(const std::string& name, const Schedule& schedule, Span<T> bucket) {
  for (int step = 0; step < schedule.steps(); ++step) {
    std::multiset<PlainTransfer> sends;
    std::multiset<PlainTransfer> receives;
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      for_each_send(schedule, rank, step, bucket, [&](const Transfer<T>& t) {
        EXPECT_EQ(t.from, rank);
        sends.emplace(t.from, t.to, static_cast<double>(t.span.begin),
                      static_cast<double>(t.span.size), t.reduce);
      });
      for_each_receive(schedule, rank, step, bucket, [&](const Transfer<T>& t) {
        EXPECT_EQ(t.to, rank);
        receives.emplace(t.from, t.to, static_cast<double>(t.span.begin),
                         static_cast<double>(t.span.size), t.reduce);
      });
    }
    const std::multiset<PlainTransfer> all = by_step(schedule, step, bucket);
    EXPECT_EQ(sends, all) << name << " step " << step;
    EXPECT_EQ(receives, all) << name << " step " << step;
  }
}

TEST(Enumeration, ByRankEqualsByStep) {
  for (int p = 1; p <= 17; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      expect_one_definition(name, schedule, Span<double>{0.0, 1.0});
      for (const std::int64_t elements : {0, 1, 7, 101})
        expect_one_definition(name, schedule, Span<std::int64_t>{0, elements});
    }
  }
}

TEST(Span, PartsTileASpan) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 1000; ++trial) {
    const Span<std::int64_t> span{static_cast<std::int64_t>(random() % 100),
                                  static_cast<std::int64_t>(random() % 1000)};
    const std::int64_t of = 1 + random() % 50;
    std::int64_t at = span.begin;
    for (std::int64_t i = 0; i < of; ++i) {
      const auto piece = part(span, i, of);
      EXPECT_EQ(piece.begin, at);
      EXPECT_GE(piece.size, span.size / of);
      EXPECT_LE(piece.size, span.size / of + 1);
      at = piece.end();
    }
    EXPECT_EQ(at, span.end());
  }
}

TEST(Groups, LocateInvertsRank) {
  const std::vector<Groups> all = {blocks(24, 8),
                                   across_blocks(24, 8),
                                   block_masters(24, 8),
                                   blocks(5, 1),
                                   across_blocks(5, 5),
                                   {.members = {{1, 3, 2}, {6, 4, 1}}, .count = 1, .stride = 0},
                                   {.members = {{0, 2, 1}}, .count = 3, .stride = 2}};
  for (const Groups& groups : all) {
    std::set<int> members;
    for (int group = 0; group < groups.count; ++group) {
      for (int member = 0; member < groups.size(); ++member) {
        const int rank = groups.rank(group, member);
        EXPECT_TRUE(members.insert(rank).second);
        const auto place = groups.locate(rank);
        ASSERT_TRUE(place);
        EXPECT_EQ(place->group, group);
        EXPECT_EQ(place->member, member);
      }
    }
    for (int rank = 0; rank < 30; ++rank)
      EXPECT_EQ(groups.locate(rank).has_value(), members.contains(rank));
  }
}

TEST(Schedule, NaturalChunksAreNeverCut) {
  for (int p = 1; p <= 12; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      const auto chunks = static_cast<double>(schedule.natural_chunks());
      for (int step = 0; step < schedule.steps(); ++step) {
        for_each_transfer(schedule, step, Span<double>{0.0, chunks},
                          [&, n = &name](const Transfer<double>& t) {
                            EXPECT_NEAR(t.span.begin, std::round(t.span.begin), 1e-9) << *n;
                            EXPECT_NEAR(t.span.size, std::round(t.span.size), 1e-9) << *n;
                          });
      }
    }
  }
}

TEST(Schedule, RepeatsAreAlike) {
  const auto shape = [](const Schedule& schedule, int step) {
    std::multiset<std::tuple<int, int, double, bool>> transfers;
    for_each_transfer(schedule, step, Span<double>{0.0, 1.0}, [&](const Transfer<double>& t) {
      transfers.emplace(t.from, t.to, t.span.size, t.reduce);
    });
    return transfers;
  };
  for (int p = 1; p <= 12; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (int step = 0; step < schedule.steps();) {
        const int repeats = schedule.repeats(step);
        ASSERT_GE(repeats, 1);
        ASSERT_LE(step + repeats, schedule.steps());
        for (int i = 1; i < repeats; ++i)
          EXPECT_EQ(shape(schedule, step), shape(schedule, step + i)) << name;
        step += repeats;
      }
    }
  }
}

RC_GTEST_PROP(Span, PartsOfAnySpanTileItAndDifferByAtMostOne, ()) {
  constexpr std::int64_t large = std::int64_t{1} << 60;
  const bool is_large = test::drawn(0, 1) == 1;
  const Span<std::int64_t> span{*rc::gen::inRange<std::int64_t>(0, 1000),
                                *rc::gen::inRange<std::int64_t>(0, is_large ? large : 200)};
  const std::int64_t of = test::drawn(1, 300);
  std::int64_t at = span.begin;
  for (std::int64_t i = 0; i < of; ++i) {
    const auto piece = part(span, i, of);
    RC_ASSERT(piece.begin == at);
    RC_ASSERT(piece.size == span.size / of || piece.size == span.size / of + 1);
    at = piece.end();
  }
  RC_ASSERT(at == span.end());
}

TEST(Span, PartsOfTheLargestBucketDoNotOverflow) {
  const Span<std::int64_t> span{0, std::int64_t{1} << 62};
  const std::int64_t of = 1 << 20;
  EXPECT_EQ(part(span, of - 1, of).end(), span.end());
  EXPECT_EQ(part(span, 12345, of - 1).end(), part(span, 12346, of - 1).begin);
}

RC_GTEST_PROP(Span, FractionsAreEqualAndAdjacent, ()) {
  const Span<double> span{test::drawn_up_to(1), 1e-6 + test::drawn_up_to(1)};
  const int of = test::drawn(1, 300);
  for (int i = 0; i < of; ++i) {
    const auto piece = part(span, i, of);
    RC_ASSERT(piece.size == span.size / of);
    RC_ASSERT(std::fabs(piece.begin - (span.begin + span.size * i / of)) < 1e-14);
  }
}

RC_GTEST_PROP(Groups, LocateInvertsRankInAnyGroups, ()) {
  const Groups groups = *test::groups();
  std::set<int> members;
  for (int group = 0; group < groups.count; ++group) {
    for (int member = 0; member < groups.size(); ++member) {
      const int rank = groups.rank(group, member);
      RC_ASSERT(members.insert(rank).second);
      const auto place = groups.locate(rank);
      RC_ASSERT(place.has_value());
      RC_ASSERT(place->group == group && place->member == member);
    }
  }
  for (int rank = -10; rank < *members.rbegin() + 30; ++rank)
    RC_ASSERT(groups.locate(rank).has_value() == members.contains(rank));
}

// A schedule within groups sends what the schedule alone sends, from and to the groups' members.
RC_GTEST_PROP(Within, RunsTheInnerScheduleInEachGroup, ()) {
  const Groups groups = *test::groups();
  const Schedule inner = test::drawn_all_reduce(groups.size(), 1);
  int ranks = 0;
  for (int group = 0; group < groups.count; ++group) {
    for (int member = 0; member < groups.size(); ++member)
      ranks = std::max(ranks, groups.rank(group, member) + 1);
  }
  const Share share = test::drawn(0, 1) == 0 ? Share::whole : Share::own_part;
  const Schedule outer = within(ranks, groups, inner, share);
  const Span<std::int64_t> bucket{test::drawn(0, 3), test::drawn(0, 50)};
  RC_ASSERT(outer.steps() == inner.steps());
  for (int step = 0; step < inner.steps(); ++step) {
    std::multiset<PlainTransfer> expected;
    for (int group = 0; group < groups.count; ++group) {
      const auto span = share == Share::whole ? bucket : part(bucket, group, groups.count);
      for_each_transfer(inner, step, span, [&](const Transfer<std::int64_t>& t) {
        expected.emplace(groups.rank(group, t.from), groups.rank(group, t.to),
                         static_cast<double>(t.span.begin), static_cast<double>(t.span.size),
                         t.reduce);
      });
    }
    RC_ASSERT(by_step(outer, step, bucket) == expected);
  }
}

TEST(WithinDeathTest, RefusesGroupsThatOverlap) {
  const Schedule inner = ring_all_reduce(4);
  const auto groups = [](int first, int stride, int count) {
    return Groups{.members = {{0, 2, 1}, {first, 2, 1}}, .count = count, .stride = stride};
  };
  EXPECT_EQ(within(8, groups(2, 4, 2), inner).ranks(), 8);
  EXPECT_EQ(within(8, groups(4, 2, 2), inner).ranks(), 8);
  EXPECT_DEATH((void)within(8, groups(1, 0, 1), inner), "groups do not overlap");
  EXPECT_DEATH((void)within(8, groups(2, 2, 2), inner), "groups do not overlap");
}

TEST(ScheduleDeathTest, RefusesPrimitivesOverRanksThatTheyAreNotDefinedFor) {
  for (const ScheduleNode& node : std::initializer_list<ScheduleNode>{
           RecursiveHalving{6}, RecursiveDoubling{0}, RecursiveExchange{12}, BlockFold{4, 4},
           BlockUnfold{6, 2}, ServerPush{4, 5}, ServerPull{4, 0}, RingAllGather{0},
           PointToPoint{.ranks = 2, .from = 1, .to = 1}, PointToPoint{.ranks = 2, .to = 2}}) {
    EXPECT_DEATH((void)Schedule(node), "a primitive is over ranks that it is defined for")
        << node.index();
  }
}

RC_GTEST_PROP(Schedule, NaturalChunksAreTheFewestThatNoMessageCuts, ()) {
  const Schedule schedule = *test::all_reduce_schedules(16);
  const std::int64_t chunks = schedule.natural_chunks();
  RC_PRE(chunks > 0);
  std::int64_t divisor = chunks;
  for (int step = 0; step < schedule.steps(); ++step) {
    for_each_transfer(schedule, step, Span<double>{0.0, static_cast<double>(chunks)},
                      [&](const Transfer<double>& t) {
                        for (const double edge : {t.span.begin, t.span.end()}) {
                          RC_ASSERT(std::fabs(edge - std::round(edge)) < 1e-6);
                          divisor = std::gcd(divisor, std::llround(edge));
                        }
                      });
  }
  RC_ASSERT(divisor == 1 || schedule.steps() == 0);
}

TEST(Schedule, NaturalChunksAreAtMostTheLimit) {
  const Schedule bare(RingReduceScatter{1000});
  for (const Schedule& schedule :
       {bare, ring_all_reduce(1000), on_part(0, 2, bare), within(2000, blocks(2000, 1000), bare)}) {
    EXPECT_GE(schedule.natural_chunks(2000), 1000) << schedule.description();
    EXPECT_EQ(schedule.natural_chunks(999), 0) << schedule.description();
  }
  EXPECT_EQ(on_part(0, 2, bare).natural_chunks(1999), 0);
}

RC_GTEST_PROP(Schedule, RepeatsOfAnyScheduleAreAlike, ()) {
  const Schedule schedule = *test::all_reduce_schedules(24);
  const auto shape = [&](int step) {
    std::multiset<std::tuple<int, int, double, bool>> transfers;
    for_each_transfer(schedule, step, Span<double>{0.0, 1.0}, [&](const Transfer<double>& t) {
      transfers.emplace(t.from, t.to, t.span.size, t.reduce);
    });
    return transfers;
  };
  for (int step = 0; step < schedule.steps(); ++step) {
    const int repeats = schedule.repeats(step);
    RC_ASSERT(repeats >= 1 && step + repeats <= schedule.steps());
    RC_ASSERT(shape(step) == shape(step + repeats - 1));
    if (repeats > 1) RC_ASSERT(schedule.repeats(step + 1) == repeats - 1);
  }
}

TEST(Schedule, ASequenceDropsWhatHasNoSteps) {
  const Schedule nothing = ring_all_reduce(1);
  EXPECT_EQ(sequence({nothing, nothing}).steps(), 0);
  const Schedule groups_of_one = within(4, blocks(4, 1), nothing);
  EXPECT_EQ(sequence({groups_of_one, ring_all_reduce(4), groups_of_one}).description(),
            ring_all_reduce(4).description());
  EXPECT_EQ(Schedule().ranks(), 1);
  EXPECT_EQ(Schedule().steps(), 0);
}

}  // namespace
}  // namespace paceline::models
