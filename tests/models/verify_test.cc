#include "models/collective/verify.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "tests/support/generators.h"
#include "tests/support/schedules.h"

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
  return verify_all_reduce(ranks, static_cast<int>(steps.size()), chunks,
                           [&](int step, const TransferSink& sink) {
                             for (const auto& t : steps[static_cast<std::size_t>(step)]) sink(t);
                           });
}

// The judge, written without the verifier: counts how often each contribution is in each chunk.
// A chunk that is replaced while it is sent or written by another message is refused, as schedule.h
// leaves undefined what then happens.
bool oracle(int ranks, std::int64_t chunks, const std::vector<Step>& steps) {
  using Counts = std::map<int, int>;
  std::map<std::pair<int, std::int64_t>, Counts> state;
  for (int r = 0; r < ranks; ++r) {
    for (std::int64_t c = 0; c < chunks; ++c) state[{r, c}] = {{r, 1}};
  }
  for (const Step& step : steps) {
    const auto before = state;
    std::map<std::pair<int, std::int64_t>, int> replaced, written, read;
    for (const auto& t : step) {
      if (t.from == t.to || t.from < 0 || t.from >= ranks || t.to < 0 || t.to >= ranks ||
          t.span.begin < 0 || t.span.end() > chunks)
        return false;
      for (std::int64_t c = t.span.begin; c < t.span.end(); ++c) {
        ++written[{t.to, c}];
        ++read[{t.from, c}];
        if (!t.reduce) ++replaced[{t.to, c}];
        const Counts& payload = before.at({t.from, c});
        Counts& target = state[{t.to, c}];
        if (!t.reduce)
          target = payload;
        else
          for (const auto& [who, count] : payload) target[who] += count;
        for (const auto& [who, count] : target) {
          if (count > 1) return false;
        }
      }
    }
    for (const auto& [key, count] : replaced) {
      if (written[key] > 1 || read.contains(key)) return false;
    }
  }
  for (const auto& [key, counts] : state) {
    if (static_cast<int>(counts.size()) != ranks) return false;
  }
  return true;
}

TEST(Verifier, ProvesEveryAlgorithmForEveryNumberOfRanks) {
  for (int p = 1; p <= 64; ++p) {
    for (const CollectiveAlgorithm& algorithm : all_reduce_catalogue()) {
      const Schedule schedule = algorithm.build({.ranks = p, .group_size = 0});
      for (const std::int64_t chunks : telling_chunk_counts(schedule))
        EXPECT_TRUE(proved(verify_all_reduce(schedule, chunks))) << algorithm.name << p;
    }
  }
}

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

TEST(Verifier, ProvesLargeNumbersOfRanks) {
  for (const int p : {96, 100, 600}) {
    for (const CollectiveAlgorithm& algorithm : all_reduce_catalogue()) {
      const Schedule schedule = algorithm.build({.ranks = p, .group_size = 0});
      EXPECT_TRUE(proved(verify_all_reduce(schedule, 7))) << algorithm.name << p;
    }
  }
}

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

// Thousands of broken schedules: the verdict is always the oracle's.
TEST(Verifier, RejectsEveryMutantThatIsNoAllReduce) {
  std::mt19937 random(20181028);
  int rejected = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    const int p = 2 + static_cast<int>(random() % 9);
    const auto all = test::all_reduces(p);
    const Schedule& schedule = all[random() % all.size()].second;
    const std::int64_t chunks =
        1 + static_cast<std::int64_t>(random() % (2 * static_cast<unsigned>(p)));
    std::vector<Step> steps = collected(schedule, chunks);
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t i = 0; i < steps[s].size(); ++i) places.emplace_back(s, i);
    }
    const auto [s, i] = places[random() % places.size()];
    Transfer<std::int64_t>& t = steps[s][i];
    switch (random() % 7) {
      case 0:
        steps[s].erase(steps[s].begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        steps[s].push_back(t);
        break;
      case 2:
        t.to = static_cast<int>(random() % static_cast<unsigned>(p));
        break;
      case 3:
        std::swap(t.from, t.to);
        break;
      case 4:
        t.reduce = !t.reduce;
        break;
      case 5:
        t.span.begin = (t.span.begin + 1) % chunks;
        break;
      default: {
        const Transfer<std::int64_t> moved = t;
        steps[s].erase(steps[s].begin() + static_cast<std::ptrdiff_t>(i));
        steps[random() % steps.size()].push_back(moved);
      }
    }
    const bool right = oracle(p, chunks, steps);
    rejected += right ? 0 : 1;
    EXPECT_EQ(proved(verify_steps(p, chunks, steps)), right) << "trial " << trial;
  }
  EXPECT_GT(rejected, 4000);
}

TEST(Verifier, ProvesEveryGroupSize) {
  for (int p = 1; p <= 24; ++p) {
    for (int k = 1; k <= p; ++k) {
      if (p % k != 0) continue;
      const Schedule schedule = hierarchical_all_reduce(p, k);
      for (const std::int64_t chunks : telling_chunk_counts(schedule))
        EXPECT_TRUE(proved(verify_all_reduce(schedule, chunks))) << "p=" << p << " k=" << k;
    }
  }
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
      verify_all_reduce(600, schedule.steps(), chunks, [&](int step, const TransferSink& sink) {
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

// What a slow run with counts of contributions finds, independently of the verifier.
struct Findings {
  std::optional<int> conflict;  // first step that reads or writes what it replaces
  std::optional<int> twice;     // first step after which a chunk has a contribution twice
  bool complete = true;         // all ranks end with each contribution exactly once

  [[nodiscard]] std::optional<int> first_fault() const {
    return conflict && twice ? std::min(*conflict, *twice) : conflict ? conflict : twice;
  }
};

Findings findings(int ranks, std::int64_t chunks, const std::vector<Step>& steps) {
  const auto p = static_cast<std::size_t>(ranks);
  const auto c = static_cast<std::size_t>(chunks);
  // counts[rank][chunk][contributor]
  std::vector<std::vector<std::vector<int>>> counts(p);
  for (std::size_t rank = 0; rank < p; ++rank) {
    counts[rank].assign(c, std::vector<int>(p, 0));
    for (auto& chunk : counts[rank]) chunk[rank] = 1;
  }
  Findings found;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto before = counts;
    for (std::size_t rank = 0; rank < p; ++rank) {
      for (std::size_t chunk = 0; chunk < c; ++chunk) {
        int copies = 0;
        int reductions = 0;
        int reads = 0;
        for (const auto& t : steps[step]) {
          const auto at = static_cast<std::int64_t>(chunk);
          if (at < t.span.begin || at >= t.span.end()) continue;
          if (t.from == static_cast<int>(rank)) ++reads;
          if (t.to != static_cast<int>(rank)) continue;
          const auto& payload = before[static_cast<std::size_t>(t.from)][chunk];
          ++(t.reduce ? reductions : copies);
          for (std::size_t who = 0; who < p; ++who)
            counts[rank][chunk][who] = payload[who] + (t.reduce ? counts[rank][chunk][who] : 0);
        }
        const bool conflict = copies > 0 && (copies > 1 || reductions > 0 || reads > 0);
        const auto& now = counts[rank][chunk];
        const bool twice = std::any_of(now.begin(), now.end(), [](int n) { return n > 1; });
        if (conflict && !found.conflict) found.conflict = static_cast<int>(step);
        if (twice && !found.twice) found.twice = static_cast<int>(step);
      }
    }
  }
  for (const auto& rank : counts) {
    for (const auto& chunk : rank)
      found.complete = found.complete && chunk == std::vector<int>(p, 1);
  }
  return found;
}

// Schedules of any composition with one to three faults: the verifier accepts exactly those that
// are complete without a conflict and without a sum that counts a rank twice on the way; what it
// names is the first step that goes wrong.
TEST(Verifier, JudgesMutantsOfAnyCompositionAsCountsDo) {
  std::mt19937 random(20260101);
  const auto below = [&random](auto n) {
    return static_cast<std::size_t>(random() % static_cast<std::uint32_t>(n));
  };
  std::vector<std::pair<int, Schedule>> schedules;
  for (int p = 2; p <= 16; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) schedules.emplace_back(p, schedule);
  }
  int accepted = 0;
  int too_strict = 0;
  constexpr int trials = 4000;
  for (int trial = 0; trial < trials; ++trial) {
    const auto& [p, schedule] = schedules[below(schedules.size())];
    const auto chunks = static_cast<std::int64_t>(1 + below(p + 2));
    std::vector<Step> steps = collected(schedule, chunks);
    for (std::size_t faults = 1 + below(3); faults > 0; --faults) {
      const std::size_t s = below(steps.size());
      if (steps[s].empty()) continue;
      const std::size_t i = below(steps[s].size());
      const auto place = steps[s].begin() + static_cast<std::ptrdiff_t>(i);
      Transfer<std::int64_t>& t = steps[s][i];
      const auto another = [&](int rank, int not_rank) {
        const int other = static_cast<int>(below(p));
        return other == not_rank ? rank : other;
      };
      switch (below(9)) {
        case 0:
          steps[s].erase(place);
          break;
        case 1:
          steps[s].push_back(Transfer<std::int64_t>(t));
          break;
        case 2:
          t.to = another(t.to, t.from);
          break;
        case 3:
          t.from = another(t.from, t.to);
          break;
        case 4:
          std::swap(t.from, t.to);
          break;
        case 5:
          t.reduce = !t.reduce;
          break;
        case 6:
          t.span.begin = std::min(t.span.begin + 1, chunks - t.span.size);
          break;
        case 7:  // a message in two
          if (t.span.size > 1) {
            steps[s].push_back({t.from, t.to, {t.span.begin + 1, t.span.size - 1}, t.reduce});
            steps[s][i].span.size = 1;
          }
          break;
        default: {
          const Transfer<std::int64_t> moved = t;
          steps[s].erase(place);
          steps[below(steps.size())].push_back(moved);
        }
      }
    }
    const Verdict verdict = verify_steps(p, chunks, steps);
    const Findings found = findings(p, chunks, steps);
    const bool right = found.complete && !found.conflict && !found.twice;
    ASSERT_EQ(proved(verdict), right) << "trial " << trial << ": " << schedule.description();
    accepted += right ? 1 : 0;
    too_strict += found.complete && !found.conflict && found.twice ? 1 : 0;
    if (right) continue;
    const auto& fault = std::get<Counterexample>(verdict);
    EXPECT_EQ(fault.step, found.first_fault().value_or(schedule.steps())) << fault.why;
  }
  EXPECT_GT(accepted, trials / 50) << "mutants that are still right test that it does not overdo";
  EXPECT_LT(accepted, trials / 2);
  RecordProperty("complete_but_twice_on_the_way", too_strict);
}

}  // namespace
}  // namespace paceline::models
