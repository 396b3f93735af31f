#include "models/collective/catalogue.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/enumerate.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

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

// How much each rank sends, in buckets.
std::vector<double> sent_by_rank(const Schedule& schedule) {
  std::vector<double> sum(static_cast<std::size_t>(schedule.ranks()), 0.0);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    for (int step = 0; step < schedule.steps(); ++step) {
      for_each_send(schedule, rank, step, Span<double>{0.0, 1.0}, [&](const Transfer<double>& t) {
        sum[static_cast<std::size_t>(rank)] += t.span.size;
      });
    }
  }
  return sum;
}

TEST(AllReduce, ARingSendsTheLeastFromEveryRank) {
  for (int p = 1; p <= 40; ++p) {
    for (const double bytes : sent_by_rank(ring_all_reduce(p)))
      EXPECT_NEAR(bytes, 2.0 * (p - 1) / p, 1e-12) << "p=" << p;
  }
}

TEST(AllReduce, HalvingDoublingSendsTheLeastFromEveryRankOfAPowerOfTwo) {
  for (int p = 1; p <= 128; p *= 2) {
    for (const double bytes : sent_by_rank(halving_doubling_all_reduce(p)))
      EXPECT_NEAR(bytes, 2.0 * (p - 1) / p, 1e-12) << "p=" << p;
  }
}

// With six ranks, 0 and 2 fold into 1 and 3; those send their neighbours the result, and 1, 3, 4, 5
// halve and double: 3/4 + 3/4.
TEST(AllReduce, HalvingDoublingFoldsTheFirstRanks) {
  const std::vector<double> sent = sent_by_rank(halving_doubling_all_reduce(6));
  const std::vector<double> expected = {1, 2.5, 1, 2.5, 1.5, 1.5};
  for (std::size_t rank = 0; rank < 6; ++rank) EXPECT_NEAR(sent[rank], expected[rank], 1e-12);
}

TEST(AllReduce, HierarchicalSendsNothingBetweenGroupsButFromMasters) {
  for (const int k : {2, 3, 4, 6}) {
    const Schedule schedule = hierarchical_all_reduce(24, k);
    for (int step = 0; step < schedule.steps(); ++step) {
      for_each_transfer(schedule, step, Span<double>{0.0, 1.0}, [&](const Transfer<double>& t) {
        const bool masters = t.from % k == 0 && t.to % k == 0;
        EXPECT_TRUE(masters || t.from / k == t.to / k) << t.from << " to " << t.to;
      });
    }
  }
}

TEST(AllReduce, OneRankHasNothingToDo) {
  for (const CollectiveAlgorithm& algorithm : all_reduce_catalogue()) {
    const Schedule schedule = algorithm.build({.ranks = 1, .group_size = 0});
    EXPECT_EQ(schedule.ranks(), 1) << algorithm.name;
    EXPECT_EQ(schedule.steps(), 0) << algorithm.name;
  }
}

TEST(AllReduce, ALargeScheduleIsStillSmall) {
  EXPECT_EQ(ring_all_reduce(max_ranks).steps(), 2 * (max_ranks - 1));
  EXPECT_EQ(halving_doubling_all_reduce(max_ranks).steps(), 40);
  EXPECT_EQ(hierarchical_all_reduce(max_ranks, max_ranks).steps(), 4 * (max_ranks - 1));
}

TEST(CollectiveCatalogue, EveryEntryIsWholeAndItsNameIsItsOwn) {
  std::set<std::string_view> names;
  for (const CollectiveAlgorithm& algorithm : collective_catalogue()) {
    EXPECT_TRUE(names.insert(algorithm.name).second) << algorithm.name;
    EXPECT_EQ(&collective_algorithm(algorithm.name), &algorithm);
    for (const std::string_view text :
         {algorithm.summary, algorithm.source, algorithm.steps, algorithm.bytes, algorithm.exact})
      EXPECT_FALSE(text.empty()) << algorithm.name;
    ASSERT_NE(algorithm.build, nullptr) << algorithm.name;
    EXPECT_EQ(algorithm.build({.ranks = 12, .group_size = 0}).ranks(), 12) << algorithm.name;
    // A form in words has one in numbers, of as many messages as there are steps.
    ASSERT_NE(algorithm.closed_form, nullptr) << algorithm.name;
    for (int p = 2; p <= 33; ++p) {
      const auto form = algorithm.closed_form({.ranks = p});
      EXPECT_TRUE(!form || !algorithm.time.empty()) << algorithm.name;
      if (form) EXPECT_EQ(form->alpha, algorithm.build({.ranks = p}).steps()) << algorithm.name;
    }
    EXPECT_EQ(algorithm.closed_form({.ranks = 8}).has_value(), !algorithm.time.empty());
  }
  EXPECT_EQ(names.size(), collective_catalogue().size());
}

TEST(AllReduceCatalogue, RefusesWhatNoneCanBuild) {
  for (const CollectiveAlgorithm& algorithm : all_reduce_catalogue()) {
    for (const int ranks : {0, -1, -2'000'000'000}) {
      EXPECT_EQ(test::error_of([&] { return algorithm.build({.ranks = ranks, .group_size = 0}); }),
                std::to_string(ranks) + " ranks; choose 1 to 1048576 ranks")
          << algorithm.name;
    }
    EXPECT_EQ(
        test::error_of([&] { return algorithm.build({.ranks = max_ranks + 1, .group_size = 0}); }),
        "1048577 ranks; choose 1 to 1048576 ranks")
        << algorithm.name;
  }
}

TEST(AllReduceCatalogue, AnUnknownNameSuggestsTheNearest) {
  const std::string error = test::error_of([] { return all_reduce_algorithm("hierarchial").name; });
  EXPECT_NE(error.find("hierarchical"), std::string::npos) << error;
}

}  // namespace
}  // namespace paceline::models
