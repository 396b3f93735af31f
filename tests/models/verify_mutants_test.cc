// The verifier against broken schedules: its verdict is that of a judge that shares no code with
// it.
//
// A mutant is a set of postings: what each rank posts as a sender and as a receiver in each step. A
// fault breaks a whole message (both its ends) or only one end of it. The judge runs the
// postings: rank by rank, message by message, on counts of contributions, with sends that wait for
// their receives, over and over until nothing moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/verify.h"
#include "tests/support/schedules.h"

namespace paceline::models {
namespace {

using WholeTransfer = Transfer<std::int64_t>;

struct Postings {
  int ranks = 1;
  int steps = 0;
  std::int64_t chunks = 0;
  // [rank][step], in the order in which they are posted.
  std::vector<std::vector<std::vector<WholeTransfer>>> sends;
  std::vector<std::vector<std::vector<WholeTransfer>>> receives;
};

using Steps = std::vector<std::vector<WholeTransfer>>;

Steps written_out(const Schedule& schedule, std::int64_t chunks) {
  Steps steps(static_cast<std::size_t>(schedule.steps()));
  for (int step = 0; step < schedule.steps(); ++step) {
    for_each_transfer(schedule, step, Span<std::int64_t>{0, chunks}, [&](const WholeTransfer& t) {
      if (t.span.size > 0) steps[static_cast<std::size_t>(step)].push_back(t);
    });
  }
  return steps;
}

Postings postings(int ranks, std::int64_t chunks, const Steps& steps) {
  const auto p = static_cast<std::size_t>(ranks);
  Postings all{ranks, static_cast<int>(steps.size()), chunks, {}, {}};
  all.sends.assign(p, Steps(steps.size()));
  all.receives.assign(p, Steps(steps.size()));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const WholeTransfer& t : steps[step]) {
      all.sends[static_cast<std::size_t>(t.from)][step].push_back(t);
      all.receives[static_cast<std::size_t>(t.to)][step].push_back(t);
    }
  }
  return all;
}

Verdict verdict_of(Collective collective, const Postings& postings) {
  const auto posts = [](const auto& by_rank) {
    return [&by_rank](int rank, int step, const TransferSink& sink) {
      for (const WholeTransfer& t :
           by_rank[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)])
        sink(t);
    };
  };
  const Readings readings = {.transfers =
                                 [&](int step, const TransferSink& sink) {
                                   for (int rank = 0; rank < postings.ranks; ++rank)
                                     posts(postings.sends)(rank, step, sink);
                                 },
                             .sends = posts(postings.sends),
                             .receives = posts(postings.receives)};
  return verify(collective, postings.ranks, postings.steps, postings.chunks, readings);
}

// How often each rank's contribution is in one chunk; -1: something that nobody contributed.
using Counts = std::map<int, int>;

// Which rank contributes to a chunk, and which must end with it; -1: all.
struct Owners {
  int source = -1;
  int target = -1;
};

// The owners of a chunk by the definition of the collectives in catalogue.h.
Owners owners(Collective collective, int p, std::int64_t chunks, std::int64_t chunk) {
  const auto part_of = [](std::int64_t of, std::int64_t size, std::int64_t at) {
    int index = 0;
    while (at >= size * (index + 1) / of) ++index;
    return index;
  };
  switch (collective) {
    case Collective::all_reduce:
      return {};
    case Collective::reduce_scatter:
      return {-1, part_of(p, chunks, chunk)};
    case Collective::all_gather:
      return {part_of(p, chunks, chunk), -1};
    case Collective::broadcast:
      return {0, -1};
    case Collective::reduce:
      return {-1, 0};
    case Collective::gather:
      return {part_of(p, chunks, chunk), 0};
    case Collective::scatter:
      return {0, part_of(p, chunks, chunk)};
    case Collective::neighbour_exchange: {
      const int from = part_of(p, chunks, chunk);
      return {from, from == p - 1 ? 0 : from + 1};
    }
    case Collective::all_to_all: {
      const int row = part_of(p, chunks, chunk);
      const std::int64_t begin = chunks * row / p;
      return {row, part_of(p, chunks * (row + 1) / p - begin, chunk - begin)};
    }
  }
  return {};
}

// The fault that a run of the postings shows; nothing if they keep the promise.
std::optional<Fault> judged(Collective collective, const Postings& postings) {
  const int p = postings.ranks;
  const auto at = [](auto& table, int i) -> auto& {
    return table[static_cast<std::size_t>(i)];
  };
  for (int rank = 0; rank < p; ++rank) {
    for (int step = 0; step < postings.steps; ++step) {
      for (const bool is_send : {true, false}) {
        for (const WholeTransfer& t :
             at(at(is_send ? postings.sends : postings.receives, rank), step)) {
          if ((is_send ? t.from : t.to) != rank || t.from == t.to || std::min(t.from, t.to) < 0 ||
              std::max(t.from, t.to) >= p || t.span.begin < 0 || t.span.end() > postings.chunks)
            return Fault::malformed;
        }
      }
    }
  }

  // Who waits for what: an end is done when the same end of the other side is posted.
  struct End {
    int step;
    WholeTransfer message;
  };
  std::vector<std::vector<std::vector<End>>> sent(static_cast<std::size_t>(p));
  std::vector<std::vector<std::vector<End>>> received(static_cast<std::size_t>(p));
  for (auto* table : {&sent, &received})
    for (auto& row : *table) row.resize(static_cast<std::size_t>(p));
  std::vector<int> step_of(static_cast<std::size_t>(p), -1);
  const auto enter = [&](int rank) {
    const int step = ++at(step_of, rank);
    if (step == postings.steps) return;
    for (const WholeTransfer& t : at(at(postings.sends, rank), step))
      at(at(sent, rank), t.to).push_back({step, t});
    for (const WholeTransfer& t : at(at(postings.receives, rank), step))
      at(at(received, t.from), rank).push_back({step, t});
  };
  const auto is_done = [&](int rank) {
    for (int other = 0; other < p; ++other) {
      if (at(at(sent, rank), other).size() > at(at(received, rank), other).size()) return false;
      if (at(at(received, other), rank).size() > at(at(sent, other), rank).size()) return false;
    }
    return true;
  };
  for (int rank = 0; rank < p; ++rank) enter(rank);
  for (bool moves = true; moves;) {
    moves = false;
    for (int rank = 0; rank < p; ++rank) {
      if (at(step_of, rank) < postings.steps && is_done(rank)) {
        enter(rank);
        moves = true;
      }
    }
  }
  for (int rank = 0; rank < p; ++rank) {
    if (at(step_of, rank) < postings.steps) return Fault::deadlock;
  }
  for (int from = 0; from < p; ++from) {
    for (int to = 0; to < p; ++to) {
      const auto& s = at(at(sent, from), to);
      const auto& r = at(at(received, from), to);
      for (std::size_t i = 0; i < s.size(); ++i) {
        if (s[i].step != r[i].step || s[i].message.span != r[i].message.span ||
            s[i].message.reduce != r[i].message.reduce)
          return Fault::mismatch;
      }
    }
  }

  const auto c = static_cast<std::size_t>(postings.chunks);
  std::vector<std::vector<Counts>> held(static_cast<std::size_t>(p), std::vector<Counts>(c));
  for (int rank = 0; rank < p; ++rank) {
    for (std::size_t chunk = 0; chunk < c; ++chunk) {
      const int source =
          owners(collective, p, postings.chunks, static_cast<std::int64_t>(chunk)).source;
      at(held, rank)[chunk] = source == -1 || source == rank ? Counts{{rank, 1}} : Counts{{-1, 1}};
    }
  }
  for (int step = 0; step < postings.steps; ++step) {
    const auto before = held;
    std::map<std::pair<int, std::int64_t>, std::array<int, 3>> uses;  // reads, puts, adds
    for (int rank = 0; rank < p; ++rank) {
      for (const WholeTransfer& t : at(at(postings.sends, rank), step)) {
        for (std::int64_t chunk = t.span.begin; chunk < t.span.end(); ++chunk) {
          const Counts& payload = at(before, t.from)[static_cast<std::size_t>(chunk)];
          Counts& target = at(held, t.to)[static_cast<std::size_t>(chunk)];
          ++uses[{t.from, chunk}][0];
          ++uses[{t.to, chunk}][t.reduce ? 2 : 1];
          if (!t.reduce) target.clear();
          for (const auto& [who, count] : payload) target[who] += count;
        }
      }
    }
    for (const auto& [place, use] : uses) {
      const auto [reads, puts, adds] = use;
      if (puts > 1 || (puts == 1 && reads + adds > 0)) return Fault::race;
    }
  }
  for (int rank = 0; rank < p; ++rank) {
    for (std::size_t chunk = 0; chunk < c; ++chunk) {
      const auto [source, target] =
          owners(collective, p, postings.chunks, static_cast<std::int64_t>(chunk));
      if (target != -1 && target != rank) continue;
      Counts promised;
      for (int who = 0; who < p; ++who) {
        if (source == -1 || source == who) promised[who] = 1;
      }
      if (at(held, rank)[chunk] != promised) return Fault::wrong_sum;
    }
  }
  return std::nullopt;
}

class Mutation {
 public:
  explicit Mutation(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }

  // Breaks one message, or two; both ends alike.
  void break_whole(Steps& steps, int ranks, std::int64_t chunks) {
    const auto [s, i] = place(steps);
    WholeTransfer& t = steps[s][i];
    const WholeTransfer old = t;
    switch (below(10)) {
      case 0:
        steps[s].erase(steps[s].begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        steps[below(2) == 0 ? s : below(steps.size())].push_back(old);
        break;
      case 2: {  // two messages change places
        const auto [other_s, other_i] = place(steps);
        std::swap(t, steps[other_s][other_i]);
        break;
      }
      case 3: {  // two messages change receivers
        const auto [other_s, other_i] = place(steps);
        std::swap(t.to, steps[other_s][other_i].to);
        break;
      }
      case 4: {  // two messages change what they carry
        const auto [other_s, other_i] = place(steps);
        std::swap(t.span, steps[other_s][other_i].span);
        break;
      }
      case 5:
      case 6:
      case 7:
        misroute(t, ranks, chunks);
        break;
      case 8:
        t.reduce = !t.reduce;
        break;
      default:
        steps[s].erase(steps[s].begin() + static_cast<std::ptrdiff_t>(i));
        steps[below(steps.size())].push_back(old);
    }
  }

  // Breaks one end of one message.
  void break_end(Postings& postings) {
    auto& side = below(2) == 0 ? postings.sends : postings.receives;
    std::vector<std::size_t> busy;
    for (std::size_t rank = 0; rank < side.size(); ++rank) {
      if (has_messages(side[rank])) busy.push_back(rank);
    }
    if (busy.empty()) return;
    const std::size_t rank = busy[below(busy.size())];
    Steps& program = side[rank];
    const auto [s, i] = place(program);
    const WholeTransfer old = program[s][i];
    const auto erase = [&, s = s, i = i] {
      program[s].erase(program[s].begin() + static_cast<std::ptrdiff_t>(i));
    };
    switch (below(6)) {
      case 0:
        erase();
        break;
      case 1:
        program[s].push_back(old);
        break;
      case 2: {
        const auto [other_s, other_i] = place(program);
        std::swap(program[s][i], program[other_s][other_i]);
        break;
      }
      case 3:
      case 4:
        misroute(program[s][i], postings.ranks, postings.chunks);
        break;
      default:
        erase();
        program[below(program.size())].push_back(old);
    }
  }

  static bool has_messages(const Steps& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const auto& step) { return !step.empty(); });
  }

 private:
  std::pair<std::size_t, std::size_t> place(const Steps& steps) {
    std::size_t count = 0;
    for (const auto& step : steps) count += step.size();
    std::size_t left = below(count);
    std::size_t s = 0;
    while (left >= steps[s].size()) left -= steps[s++].size();
    return {s, left};
  }

  // Another sender, another receiver, the way back, or other chunks; now and then ones that are
  // out of bounds.
  void misroute(WholeTransfer& t, int ranks, std::int64_t chunks) {
    const auto rank = [&] { return static_cast<int>(below(static_cast<std::size_t>(ranks))); };
    switch (below(5)) {
      case 0:
        t.from = rank();
        break;
      case 1:
        t.to = below(30) == 0 ? ranks : rank();
        break;
      case 2:
        std::swap(t.from, t.to);
        break;
      case 3:
        t.span.begin = static_cast<std::int64_t>(
            below(static_cast<std::size_t>(chunks - t.span.size + 1 + (below(30) == 0 ? 1 : 0))));
        break;
      default:
        if (t.span.size > 1 && below(2) == 0) {
          --t.span.size;
        } else {
          t.span.size += t.span.end() < chunks ? 1 : 0;
        }
    }
  }

  std::mt19937 random_;
};

struct Tally {
  int mutants = 0;
  int equivalent = 0;
  std::map<std::string, int> rejected;
};

// Thousands of mutants of one algorithm, over several numbers of ranks, with its options.
class Mutants : public testing::TestWithParam<std::string_view> {};

TEST_P(Mutants, AreJudgedAsTheirExecutionShows) {
  const CollectiveAlgorithm& algorithm = collective_algorithm(GetParam());
  constexpr int trials = 2000;
  Tally tally;
  for (std::uint32_t seed = 1; tally.mutants < trials; ++seed) {
    Mutation mutation(seed);
    const int p = 2 + static_cast<int>(mutation.below(11));
    const auto sets = test::option_sets(algorithm, p);
    const ScheduleOptions& options = sets[mutation.below(sets.size())];
    const auto chunks =
        static_cast<std::int64_t>(1 + mutation.below(2 * static_cast<std::size_t>(p) + 1));
    Steps steps = written_out(algorithm.build(options), chunks);
    if (!Mutation::has_messages(steps)) continue;
    const bool breaks_one_end = mutation.below(3) == 0;
    for (std::size_t faults = 1 + mutation.below(2); faults > 0; --faults) {
      if (!breaks_one_end && Mutation::has_messages(steps)) mutation.break_whole(steps, p, chunks);
    }
    Postings mutant{p, static_cast<int>(steps.size()), chunks, {}, {}};
    const bool is_in_bounds = std::all_of(steps.begin(), steps.end(), [p](const auto& step) {
      return std::all_of(step.begin(), step.end(),
                         [p](const WholeTransfer& t) { return t.to < p; });
    });
    if (!is_in_bounds) continue;
    mutant = postings(p, chunks, steps);
    if (breaks_one_end) mutation.break_end(mutant);
    ++tally.mutants;

    const std::optional<Fault> expected = judged(algorithm.collective, mutant);
    const Verdict verdict = verdict_of(algorithm.collective, mutant);
    const auto* fault = std::get_if<Counterexample>(&verdict);
    const std::string where = std::string(described(algorithm.name, options)) +
                              " p=" + std::to_string(p) + " seed " + std::to_string(seed);
    ASSERT_EQ(fault != nullptr, expected.has_value())
        << where << ": " << (fault != nullptr ? fault->why : "proven, but it is broken");
    if (fault == nullptr) {
      ++tally.equivalent;
      continue;
    }
    ASSERT_EQ(name(fault->fault), name(*expected)) << where << ": " << fault->why;
    ASSERT_FALSE(fault->why.empty());
    ++tally.rejected[std::string(name(fault->fault))];
  }
  std::string line = std::string(algorithm.name) + ": " + std::to_string(tally.mutants) +
                     " mutants, " + std::to_string(tally.equivalent) + " equivalent";
  for (const auto& [kind, count] : tally.rejected)
    line += ", " + std::to_string(count) + " " + kind;
  std::printf("%s\n", line.c_str());
  EXPECT_GT(tally.mutants - tally.equivalent, trials / 2);
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const CollectiveAlgorithm& algorithm : collective_catalogue())
    names.push_back(algorithm.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Verifier, Mutants, testing::ValuesIn(names()), [](const auto& one) {
  std::string name(one.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The deadlocks of a textbook: what a rank posts does not wait, what it is left with is named.
TEST(Deadlock, IsNamedByTheRanksThatWaitForEachOther) {
  // Rank 0 sends to 1 in step 1 and receives in step 2; rank 1 likewise.
  const WholeTransfer there{0, 1, {0, 1}, true};
  const WholeTransfer back{1, 0, {0, 1}, true};
  Postings both_send{2, 2, 1, {{{there}, {}}, {{back}, {}}}, {{{}, {back}}, {{}, {there}}}};
  const Verdict verdict = verdict_of(Collective::all_reduce, both_send);
  const auto& fault = std::get<Counterexample>(verdict);
  EXPECT_EQ(fault.fault, Fault::deadlock);
  EXPECT_EQ(fault.why,
            "rank 0 waits in step 1 for rank 1 to receive, rank 1 waits in step 1 for rank 0 to "
            "receive");
  // In one step it is an exchange.
  const Postings exchange = postings(2, 1, {{there, back}});
  EXPECT_TRUE(std::holds_alternative<Proof>(verdict_of(Collective::all_reduce, exchange)));
}

TEST(Deadlock, OfARankThatIsDoneIsNamed) {
  Postings lost = postings(3, 1, written_out(ring_all_reduce(3), 1));
  std::size_t dropped = 0;
  for (auto& step : lost.receives[2]) {
    dropped += step.size();
    step.clear();
  }
  ASSERT_GT(dropped, 0U);
  const Verdict verdict = verdict_of(Collective::all_reduce, lost);
  const auto& fault = std::get<Counterexample>(verdict);
  EXPECT_EQ(fault.fault, Fault::deadlock);
  EXPECT_NE(fault.why.find("for rank 2 to receive"), std::string::npos) << fault.why;
}

TEST(Deadlock, OneEndInALaterStepIsAMismatchWhereRanksGoOn) {
  // Rank 1 sends in step 2 what rank 0 waits for in step 1: rank 0 is late, and that is all.
  const WholeTransfer back{1, 0, {0, 1}, true};
  const WholeTransfer there{0, 1, {0, 1}, false};
  Postings late{
      2, 3, 1, {{{}, {}, {there}}, {{}, {back}, {}}}, {{{back}, {}, {}}, {{}, {}, {there}}}};
  const Verdict verdict = verdict_of(Collective::all_reduce, late);
  const auto& fault = std::get<Counterexample>(verdict);
  EXPECT_EQ(fault.fault, Fault::mismatch) << fault.why;
  EXPECT_EQ(fault.step, 1);
}

// A sum that counts a rank twice is harmless where the right one takes its place.
TEST(Verifier, AcceptsASpoiledChunkThatIsReplaced) {
  const Steps steps = {{{0, 1, {0, 1}, true}}, {{0, 1, {0, 1}, true}, {1, 0, {0, 1}, true}}};
  const Postings twice = postings(2, 1, steps);
  const Verdict verdict = verdict_of(Collective::all_reduce, twice);
  const auto& fault = std::get<Counterexample>(verdict);
  EXPECT_EQ(fault.fault, Fault::wrong_sum);
  EXPECT_EQ(fault.step, 1);
  Steps healed = steps;
  healed[1] = {{1, 0, {0, 1}, false}};
  EXPECT_TRUE(
      std::holds_alternative<Proof>(verdict_of(Collective::all_reduce, postings(2, 1, healed))));
}

}  // namespace
}  // namespace paceline::models
