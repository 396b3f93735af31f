#include "models/collective/schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "models/base/error.h"
#include "models/collective/draw.h"
#include "models/collective/enumerate.h"
#include "tests/support/schedules.h"

namespace paceline::models {
namespace {

using Message = std::tuple<int, int, double, double, bool>;

template <class T>
std::multiset<Message> by_step(const Schedule& schedule, int step, Span<T> bucket) {
  std::multiset<Message> messages;
  for_each_transfer(schedule, step, bucket, [&](const Transfer<T>& t) {
    messages.emplace(t.from, t.to, static_cast<double>(t.span.begin),
                     static_cast<double>(t.span.size), t.reduce);
  });
  return messages;
}

template <class T>
void expect_one_definition(const std::string& name, const Schedule& schedule, Span<T> bucket) {
  for (int step = 0; step < schedule.steps(); ++step) {
    std::multiset<Message> sends;
    std::multiset<Message> receives;
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
    const std::multiset<Message> all = by_step(schedule, step, bucket);
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
    std::multiset<std::tuple<int, int, double, bool>> messages;
    for_each_transfer(schedule, step, Span<double>{0.0, 1.0}, [&](const Transfer<double>& t) {
      messages.emplace(t.from, t.to, t.span.size, t.reduce);
    });
    return messages;
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

TEST(AllReduce, StepsAreThoseOfTheClosedForms) {
  for (int p = 2; p <= 64; ++p) {
    EXPECT_EQ(ring_all_reduce(p).steps(), 2 * (p - 1));
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
    EXPECT_EQ(halving_doubling_all_reduce(p).steps(), 2 * ceil_log2(power) + (power == p ? 0 : 2));
    for (int k = 1; k <= p; ++k) {
      if (p % k == 0)
        EXPECT_EQ(hierarchical_all_reduce(p, k).steps(), 4 * (k - 1) + 2 * (p / k - 1))
            << "Jizhi 4.3 counts 4(k-1) + 2(p/k-1)";
    }
  }
}

// The bytes that each rank sends, summed over all ranks, in buckets.
double sent(const Schedule& schedule) {
  double sum = 0;
  for (int step = 0; step < schedule.steps(); ++step) {
    for_each_transfer(schedule, step, Span<double>{0.0, 1.0},
                      [&](const Transfer<double>& t) { sum += t.span.size; });
  }
  return sum;
}

TEST(AllReduce, BytesAreThoseOfTheClosedForms) {
  for (int p = 2; p <= 48; ++p) {
    EXPECT_NEAR(sent(ring_all_reduce(p)), 2 * (p - 1), 1e-9);
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
    EXPECT_NEAR(sent(halving_doubling_all_reduce(p)), 2 * (power - 1) + 2 * (p - power), 1e-9);
    for (int k = 1; k <= p; ++k) {
      if (p % k == 0)
        EXPECT_NEAR(sent(hierarchical_all_reduce(p, k)), 2 * (k - 1) * (p / k) + 2 * (p / k - 1),
                    1e-9);
    }
  }
}

TEST(AllReduce, DefaultGroupSizeHasTheFewestSteps) {
  EXPECT_EQ(default_group_size(1024), 16);  // ties with 32
  for (int p = 1; p <= 200; ++p) {
    for (int k = 1; k <= p; ++k) {
      if (p % k == 0)
        EXPECT_LE(hierarchical_all_reduce(p, default_group_size(p)).steps(),
                  hierarchical_all_reduce(p, k).steps());
    }
  }
}

TEST(AllReduce, RefusesWhatItCannotBuild) {
  EXPECT_THROW((void)ring_all_reduce(0), InputError);
  EXPECT_THROW((void)hierarchical_all_reduce(24, 0), InputError);
  try {
    (void)hierarchical_all_reduce(24, 5);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "group size 5 does not divide 24 ranks; choose one of 1, 2, 3, 4, 6, 8, 12, 24");
  }
}

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

}  // namespace
}  // namespace paceline::models
