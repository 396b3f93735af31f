#include "models/collective/verify.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "tests/support/generators.h"
#include "tests/support/schedules.h"
#include "tests/support/thoroughness.h"

namespace paceline::models {
namespace {

using Step = std::vector<Transfer<std::int64_t>>;

bool proved(const Verdict& verdict) {
  return std::holds_alternative<Proof>(verdict);
}

std::vector<Step> collected(const Schedule& schedule, std::int64_t chunks) {
  std::vector<Step> steps(static_cast<std::size_t>(schedule.steps()));
  for (int step = 0; step < schedule.steps(); ++step) {
    for_each_transfer(schedule, step, Span<std::int64_t>{0, chunks},
                      [&](const Transfer<std::int64_t>& t) {
                        if (t.span.size > 0) steps[static_cast<std::size_t>(step)].push_back(t);
                      });
  }
  return steps;
}

Verdict verify_steps(int ranks, std::int64_t chunks, const std::vector<Step>& steps) {
  return verify(Collective::all_reduce, ranks, static_cast<int>(steps.size()), chunks,
                [&](int step, const TransferSink& sink) {
                  for (const auto& t : steps[static_cast<std::size_t>(step)]) sink(t);
                });
}

// The natural number of chunks, an odd number that cuts unevenly, and fewer chunks than ranks.
std::vector<std::int64_t> chunk_counts(const Schedule& schedule) {
  const int p = schedule.ranks();
  std::vector<std::int64_t> counts = {1, p / 2, 2 * p + 1};
  if (const std::int64_t natural = schedule.natural_chunks(8 * p); natural != 0)
    counts.push_back(natural);
  return counts;
}

// A name for googletest, which does not take dashes.
std::string test_name(std::string_view algorithm) {
  std::string name(algorithm);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const CollectiveAlgorithm& algorithm : collective_catalogue())
    names.push_back(algorithm.name);
  return names;
}

class EveryNumberOfRanks : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryNumberOfRanks, IsProvenWithAllOptions) {
  const CollectiveAlgorithm& algorithm = collective_algorithm(GetParam());
  for (int p = 1; p <= 64; ++p) {
    for (const ScheduleOptions& options : test::option_sets(algorithm, p)) {
      const Schedule schedule = algorithm.build(options);
      for (const std::int64_t chunks : chunk_counts(schedule)) {
        const Verdict verdict = verify(algorithm.collective, schedule, chunks);
        ASSERT_TRUE(proved(verdict))
            << described(algorithm.name, options) << " p=" << p << " chunks=" << chunks << ": "
            << std::get<Counterexample>(verdict).why;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verifier, EveryNumberOfRanks, testing::ValuesIn(names()),
                         [](const auto& one) { return test_name(one.param); });

TEST(Verifier, ProvesEveryComposition) {
  for (int p = 1; p <= 24; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const std::int64_t chunks :
           {std::int64_t{1}, std::int64_t{p + 3}, schedule.natural_chunks()}) {
        EXPECT_TRUE(proved(verify_all_reduce(schedule, chunks)))
            << name << " p=" << p << " chunks=" << chunks;
      }
    }
  }
}

class LargeNumbersOfRanks : public testing::TestWithParam<std::tuple<int, std::string_view>> {};

TEST_P(LargeNumbersOfRanks, AreProven) {
  const auto& [p, name] = GetParam();
  const CollectiveAlgorithm& algorithm = collective_algorithm(name);
  const Schedule schedule = algorithm.build({.ranks = p});
  const std::int64_t natural = schedule.natural_chunks(p <= 600 ? 600 * 600 : 2 * p);
  const std::int64_t even = natural != 0 ? natural : p;
  for (const std::int64_t chunks : {std::int64_t{p / 2 - 1}, even, std::int64_t{p + p / 2 + 1}}) {
    const Verdict verdict = verify(algorithm.collective, schedule, chunks);
    EXPECT_TRUE(proved(verdict)) << "chunks=" << chunks << ": "
                                 << std::get<Counterexample>(verdict).why;
  }
}

INSTANTIATE_TEST_SUITE_P(Verifier, LargeNumbersOfRanks,
                         testing::Combine(testing::ValuesIn(test::cases<std::vector<int>>(
                                              {96, 100, 256}, {96, 100, 256, 600, 1000, 1024})),
                                          testing::ValuesIn(names())),
                         [](const auto& one) {
                           return test_name(std::get<1>(one.param)) + "_" +
                                  std::to_string(std::get<0>(one.param));
                         });

TEST(Verifier, ACounterexampleNamesStepRankAndChunk) {
  std::vector<Step> steps = collected(ring_all_reduce(4), 4);
  steps[1].erase(steps[1].begin() + 2);  // rank 2's send in the second step
  const Verdict verdict = verify_steps(4, 4, steps);
  const auto& fault = std::get<Counterexample>(verdict);
  EXPECT_EQ(fault.step, 6);  // found in what ranks end with
  EXPECT_NE(fault.why.find("ends without the contribution of rank"), std::string::npos);

  steps = collected(ring_all_reduce(4), 4);
  steps[3][0].reduce = true;  // rank 1 would add what it already has
  const Verdict twice = verify_steps(4, 4, steps);
  EXPECT_EQ(std::get<Counterexample>(twice).step, 3);
  EXPECT_EQ(std::get<Counterexample>(twice).rank, 1);
  EXPECT_NE(std::get<Counterexample>(twice).why.find("a second time"), std::string::npos);
}

TEST(Verifier, RefusesChunksThatAreReadWhileTheyAreReplaced) {
  // Two ranks that exchange their whole buckets and replace them.
  const std::vector<Step> steps = {{{0, 1, {0, 1}, false}, {1, 0, {0, 1}, false}}};
  EXPECT_NE(
      std::get<Counterexample>(verify_steps(2, 1, steps)).why.find("while a message replaces it"),
      std::string::npos);
  // The same, reduced from a receive buffer, is an all-reduce.
  EXPECT_TRUE(proved(verify_steps(2, 1, {{{0, 1, {0, 1}, true}, {1, 0, {0, 1}, true}}})));
}

RC_GTEST_PROP(Verifier, ProvesAnythingThatIsComposedOfParts, ()) {
  const Schedule schedule = *test::all_reduce_schedules(16);
  RC_PRE(schedule.natural_chunks(5000) != 0);
  for (const std::int64_t chunks : telling_chunk_counts(schedule))
    RC_ASSERT(proved(verify_all_reduce(schedule, chunks)));
}

// Halves of algorithms, and halves that do not fit each other, are no all-reduce.
TEST(Verifier, RefusesWhatIsOnlyAPart) {
  for (int p = 2; p <= 17; ++p) {
    for (const Schedule& schedule :
         {Schedule(RingReduceScatter{p}), Schedule(RingAllGather{p}), Schedule(BinomialReduce{p}),
          Schedule(BinomialBroadcast{p}), pipelined(3, Schedule(ChainReduce{p})),
          pipelined(3, Schedule(ChainBroadcast{p})), Schedule(ServerPush{p, p}),
          Schedule(ServerPull{p, p}),
          sequence({Schedule(RingAllGather{p}), Schedule(RingReduceScatter{p})}),
          sequence({Schedule(BinomialBroadcast{p}), Schedule(BinomialReduce{p})}),
          on_part(0, 2, ring_all_reduce(p)), sequence({ring_all_reduce(p), ring_all_reduce(p)})}) {
      EXPECT_FALSE(proved(verify_all_reduce(schedule, 2 * p))) << schedule.description();
    }
  }
  // Recursive halving leaves its parts in bit-reversed order, which is none for two ranks.
  EXPECT_TRUE(proved(
      verify_all_reduce(sequence({Schedule(RecursiveHalving{2}), Schedule(RingAllGather{2})}), 4)));
  EXPECT_FALSE(proved(
      verify_all_reduce(sequence({Schedule(RecursiveHalving{8}), Schedule(RingAllGather{8})}), 8)));
}

// With this many ranks and chunks, the chunks are taken in two blocks; the fault is in the second:
// rank 47, the end of a chain, does not get the last segment in the last step.
TEST(Verifier, FindsAFaultInTheLastOfManyChunks) {
  const Schedule schedule = hierarchical_all_reduce(600, 24);
  constexpr std::int64_t chunks = 6000;
  ASSERT_TRUE(proved(verify_all_reduce(schedule, chunks)));
  const Verdict verdict =
      verify(Collective::all_reduce, 600, schedule.steps(), chunks,
             [&](int step, const TransferSink& sink) {
               for_each_transfer(schedule, step, Span<std::int64_t>{0, chunks},
                                 [&](const Transfer<std::int64_t>& t) {
                                   if (step + 1 != schedule.steps() || t.to != 47) sink(t);
                                 });
             });
  ASSERT_FALSE(proved(verdict));
  EXPECT_EQ(std::get<Counterexample>(verdict).rank, 47);
  EXPECT_EQ(std::get<Counterexample>(verdict).chunk, chunks - chunks / 24);
}

TEST(Verifier, CountsTheMessagesThatAreNotEmpty) {
  EXPECT_EQ(std::get<Proof>(verify_all_reduce(ring_all_reduce(5), 5)).transfers, 40);
  EXPECT_EQ(std::get<Proof>(verify_all_reduce(ring_all_reduce(5), 2)).transfers, 16);
  EXPECT_EQ(std::get<Proof>(verify_all_reduce(ring_all_reduce(5), 0)).transfers, 0);
  EXPECT_EQ(std::get<Proof>(verify_all_reduce(Schedule(), 3)).transfers, 0);
}

TEST(Verifier, RefusesTwoWritesUnlessBothReduce) {
  // Three ranks; 1 and 2 write rank 0 in one step, then 0 writes both.
  const Step back = {{0, 1, {0, 2}, false}, {0, 2, {0, 2}, false}};
  const auto verdict = [&](bool first_reduces, bool second_reduces) {
    return verify_steps(
        3, 2,
        {{{1, 0, {0, 2}, first_reduces}, {2, 0, {1, 1}, second_reduces}, {2, 0, {0, 1}, true}},
         back});
  };
  EXPECT_TRUE(proved(verdict(true, true)));
  for (const auto& [first, second] : {std::pair(false, true), {true, false}, {false, false}}) {
    const Verdict refused = verdict(first, second);
    ASSERT_FALSE(proved(refused));
    EXPECT_EQ(std::get<Counterexample>(refused).rank, 0);
    EXPECT_EQ(std::get<Counterexample>(refused).step, 0);
    EXPECT_EQ(std::get<Counterexample>(refused).why, "two messages write the chunk of rank 0");
  }
}

TEST(Verifier, RefusesMessagesThatLieOutside) {
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  for (const Transfer<std::int64_t>& t : {Transfer<std::int64_t>{0, 0, {0, 1}, true},
                                          {0, 2, {0, 1}, true},
                                          {-1, 0, {0, 1}, true},
                                          {2, 1, {0, 1}, true},
                                          {0, 1, {-1, 1}, true},
                                          {0, 1, {0, 3}, true},
                                          {0, 1, {2, 1}, true},
                                          {0, 1, {1, -1}, true},
                                          {0, 1, {1, far}, true}}) {
    const Verdict verdict = verify_steps(2, 2, {{t}});
    ASSERT_FALSE(proved(verdict));
    EXPECT_EQ(std::get<Counterexample>(verdict).step, 0);
  }
}

}  // namespace
}  // namespace paceline::models
