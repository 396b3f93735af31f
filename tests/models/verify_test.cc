#include "models/collective/verify.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

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
    for (const AllReduceAlgorithm& algorithm : all_reduce_catalogue()) {
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
    for (const AllReduceAlgorithm& algorithm : all_reduce_catalogue()) {
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

}  // namespace
}  // namespace paceline::models
