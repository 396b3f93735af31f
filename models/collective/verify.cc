// Tests: tests/models/verify_test.cc, tests/models/verify_mutants_test.cc.
#include "models/collective/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::models {
namespace {

using Elements = Span<std::int64_t>;

[[nodiscard]] Elements clipped(Elements span, Elements block) {
  const std::int64_t begin = std::max(span.begin, block.begin);
  return {begin, std::max<std::int64_t>(0, std::min(span.end(), block.end()) - begin)};
}

struct Write {
  Elements span;
  bool reduce = false;
};

// What a collective promises, chunk by chunk.
class Promise {
 public:
  Promise(Collective collective, int ranks, std::int64_t chunks) {
    const Elements bucket{0, chunks};
    if (collective == Collective::broadcast || collective == Collective::scatter)
      source_.assign(to_size(chunks), 0);
    if (collective == Collective::all_gather || collective == Collective::gather ||
        collective == Collective::all_to_all || collective == Collective::neighbour_exchange)
      source_ = owners(bucket, ranks);
    if (collective == Collective::neighbour_exchange) {
      target_ = source_;
      for (int& rank : target_) rank = (rank + 1) % ranks;
    }
    if (collective == Collective::reduce_scatter || collective == Collective::scatter)
      target_ = owners(bucket, ranks);
    if (collective == Collective::reduce || collective == Collective::gather)
      target_.assign(to_size(chunks), 0);
    if (collective == Collective::all_to_all) {
      for (int row = 0; row < ranks; ++row) {
        const std::vector<int> columns = owners(part(bucket, row, ranks), ranks);
        target_.insert(target_.end(), columns.begin(), columns.end());
      }
    }
  }
  // Whether `rank` starts with a contribution to the chunk.
  [[nodiscard]] bool starts(int rank, std::int64_t chunk) const {
    return all_start() || only_source(chunk) == rank;
  }
  // Whether `rank` must end with the chunk.
  [[nodiscard]] bool ends(int rank, std::int64_t chunk) const {
    return target_.empty() || target_[to_size(chunk)] == rank;
  }
  [[nodiscard]] bool all_start() const { return source_.empty(); }
  [[nodiscard]] int only_source(std::int64_t chunk) const { return source_[to_size(chunk)]; }

 private:
  static std::vector<int> owners(Elements bucket, int ranks) {
    std::vector<int> owners;
    owners.reserve(to_size(bucket.size));
    for (int rank = 0; rank < ranks; ++rank)
      owners.insert(owners.end(), to_size(part(bucket, rank, ranks).size), rank);
    return owners;
  }

  std::vector<int> source_;  // the only rank that contributes to each chunk; if empty, all do
  std::vector<int> target_;  // the only rank that must end with each chunk; if empty, all must
};

// The symbolic state of all ranks for one block of chunks.
//
// Invariant: bit r of the set at(rank, chunk) is set iff the chunk at `rank` contains the
// contribution of r; where only one rank contributes to a chunk, bit 0 is its. The word after the
// set is 0 iff every contribution is contained once and nothing else is; otherwise it is the number
// of the spoiling (from 1) that the chunk goes back to.
class Symbolic {
 public:
  Symbolic(int ranks, Elements block, const Promise& promise)
      : ranks_(ranks),
        block_(block),
        promise_(promise),
        stride_(stride(ranks, promise)),
        words_(stride_ - 1),
        bits_(to_size(ranks) * to_size(block.size) * stride_) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t chunk = block.begin; chunk < block.end(); ++chunk) {
        if (!promise.starts(rank, chunk)) continue;
        const int bit = promise.all_start() ? rank : 0;
        at(rank, chunk)[bit / 64] |= std::uint64_t{1} << (bit % 64);
      }
    }
  }

  // The words that hold one chunk of one rank.
  [[nodiscard]] static std::size_t stride(int ranks, const Promise& promise) {
    return (promise.all_start() ? (to_size(ranks) + 63) / 64 : 1) + 1;
  }

  // Applies one step. Transfers are clipped to the block already.
  [[nodiscard]] std::optional<Counterexample> apply(
      int step, const std::vector<Transfer<std::int64_t>>& transfers) {
    std::vector<std::vector<Write>> writes(to_size(ranks_));
    for (const auto& t : transfers) writes[to_size(t.to)].push_back({t.span, t.reduce});
    for (int rank = 0; rank < ranks_; ++rank) {
      auto& own = writes[to_size(rank)];
      if (auto fault = conflicting_writes(step, rank, own)) return fault;
      merge(own);
    }
    // A chunk that is sent and reduced into in the same step is read as it was before.
    std::vector<std::vector<std::uint64_t>> before(transfers.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto& t = transfers[i];
      const std::vector<Write>& own = writes[to_size(t.from)];
      auto write = std::partition_point(
          own.begin(), own.end(), [&](const Write& w) { return w.span.end() <= t.span.begin; });
      for (; write != own.end() && overlap(write->span, t.span); ++write) {
        if (!write->reduce) {
          return Counterexample{
              Fault::race, step, t.from, std::max(write->span.begin, t.span.begin),
              fmt::format("rank {} sends the chunk while a message replaces it", t.from)};
        }
        if (before[i].empty()) {
          const std::uint64_t* first = at(t.from, t.span.begin);
          before[i].assign(first, first + to_size(t.span.size) * stride_);
        }
      }
    }
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto& t = transfers[i];
      land(step, t, before[i].empty() ? at(t.from, t.span.begin) : before[i].data());
    }
    return std::nullopt;
  }

  // The earliest cause of a chunk that is not as promised.
  [[nodiscard]] std::optional<Counterexample> broken_promise(int steps) const {
    std::optional<Counterexample> first;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::int64_t chunk = block_.begin; chunk < block_.end(); ++chunk) {
        if (!promise_.ends(rank, chunk)) continue;
        const std::uint64_t* set = at(rank, chunk);
        if (const std::uint64_t cause = set[words_]; cause != 0) {
          const Spoiling& spoiling = spoilings_[cause - 1];
          if (!first || spoiling.step < first->step) first = in_words(spoiling);
        } else if (!first) {
          if (const int bit = missing(set); bit >= 0) {
            first = Counterexample{Fault::wrong_sum, steps, rank, chunk,
                                   fmt::format("rank {} ends without the contribution of rank {}",
                                               rank, contributor(bit, chunk))};
          }
        }
      }
    }
    return first;
  }

 private:
  // A reduction after which the chunk at `to` is not a sum with each contribution once.
  struct Spoiling {
    int step;
    int from;
    int to;
    std::int64_t chunk;
    int twice;  // who contributes twice, or -1
    int empty;  // which rank holds nothing that could be added or added to, or -1
  };

  static Counterexample in_words(const Spoiling& s) {
    return {
        Fault::wrong_sum, s.step, s.to, s.chunk,
        s.twice >= 0
            ? fmt::format("rank {} adds the contribution of rank {} a second time, from rank {}",
                          s.to, s.twice, s.from)
            : fmt::format("rank {} adds a chunk from rank {} of which rank {} has nothing", s.to,
                          s.from, s.empty)};
  }

  // The first contributor that is not in the set, or -1.
  [[nodiscard]] int missing(const std::uint64_t* set) const {
    const int contributors = promise_.all_start() ? ranks_ : 1;
    for (std::size_t w = 0; w < words_; ++w) {
      const int bit = static_cast<int>(w) * 64 + std::countr_one(set[w]);
      if (bit < std::min(static_cast<int>(w + 1) * 64, contributors)) return bit;
    }
    return -1;
  }
  [[nodiscard]] int contributor(int bit, std::int64_t chunk) const {
    return promise_.all_start() ? bit : promise_.only_source(chunk);
  }
  [[nodiscard]] std::uint64_t* at(int rank, std::int64_t chunk) {
    return bits_.data() + index(rank, chunk);
  }
  [[nodiscard]] const std::uint64_t* at(int rank, std::int64_t chunk) const {
    return bits_.data() + index(rank, chunk);
  }
  [[nodiscard]] std::size_t index(int rank, std::int64_t chunk) const {
    return (to_size(rank) * to_size(block_.size) + to_size(chunk - block_.begin)) * stride_;
  }

  static std::optional<Counterexample> conflicting_writes(int step, int rank,
                                                          std::vector<Write>& writes) {
    std::sort(writes.begin(), writes.end(),
              [](const Write& a, const Write& b) { return a.span.begin < b.span.begin; });
    std::int64_t replaced_until = -1;  // end of the chunks that a message so far replaces
    std::int64_t reduced_until = -1;   // end of those that messages so far reduce into
    for (const Write& write : writes) {
      const bool clash =
          write.span.begin < replaced_until || (!write.reduce && write.span.begin < reduced_until);
      if (clash) {
        return Counterexample{Fault::race, step, rank, write.span.begin,
                              fmt::format("two messages write the chunk of rank {}", rank)};
      }
      (write.reduce ? reduced_until : replaced_until) =
          std::max(write.reduce ? reduced_until : replaced_until, write.span.end());
    }
    return std::nullopt;
  }

  // Sorted writes that overlap are reductions, and count as one.
  static void merge(std::vector<Write>& writes) {
    std::size_t kept = 0;
    for (std::size_t i = 1; i < writes.size(); ++i) {
      Write& last = writes[kept];
      if (overlap(last.span, writes[i].span)) {
        last.span.size = std::max(last.span.end(), writes[i].span.end()) - last.span.begin;
      } else {
        writes[++kept] = writes[i];
      }
    }
    if (!writes.empty()) writes.resize(kept + 1);
  }

  void land(int step, const Transfer<std::int64_t>& t, const std::uint64_t* source) {
    std::uint64_t* target = at(t.to, t.span.begin);
    if (!t.reduce) {
      std::copy_n(source, to_size(t.span.size) * stride_, target);
      return;
    }
    for (std::int64_t chunk = t.span.begin; chunk < t.span.end(); ++chunk) {
      std::uint64_t inherited = target[words_] != 0 ? target[words_] : source[words_];
      if (inherited == 0) inherited = spoiled(step, t, chunk, source, target);
      for (std::size_t w = 0; w < words_; ++w) target[w] |= source[w];
      target[words_] = inherited;
      source += stride_;
      target += stride_;
    }
  }

  // The number of the spoiling that adding the source to the target is; 0 if it is none.
  std::uint64_t spoiled(int step, const Transfer<std::int64_t>& t, std::int64_t chunk,
                        const std::uint64_t* source, const std::uint64_t* target) {
    int twice = -1;
    int empty = -1;
    for (std::size_t w = 0; w < words_ && twice < 0; ++w) {
      if (const std::uint64_t both = source[w] & target[w]; both != 0)
        twice = contributor(static_cast<int>(w) * 64 + std::countr_zero(both), chunk);
    }
    if (!promise_.all_start() && twice < 0) empty = source[0] == 0 ? t.from : t.to;
    if (twice < 0 && empty < 0) return 0;
    spoilings_.push_back({step, t.from, t.to, chunk, twice, empty});
    return spoilings_.size();
  }

  int ranks_;
  Elements block_;
  const Promise& promise_;
  std::size_t stride_;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
  std::vector<Spoiling> spoilings_;
};

std::optional<Counterexample> malformed(int step, int ranks, std::int64_t chunks,
                                        const Transfer<std::int64_t>& t) {
  const auto is_rank = [ranks](int rank) { return rank >= 0 && rank < ranks; };
  if (!is_rank(t.from) || !is_rank(t.to) || t.from == t.to) {
    return Counterexample{Fault::malformed, step, is_rank(t.from) ? t.from : 0, t.span.begin,
                          fmt::format("a message goes from rank {} to rank {}", t.from, t.to)};
  }
  if (t.span.begin < 0 || t.span.size < 0 || t.span.size > chunks - t.span.begin) {
    return Counterexample{Fault::malformed, step, t.from, t.span.begin,
                          "a message lies outside of the bucket"};
  }
  return std::nullopt;
}

std::string in_words(const Transfer<std::int64_t>& t) {
  return fmt::format("{} chunk{} from {} {}", t.span.size, t.span.size == 1 ? "" : "s",
                     t.span.begin, t.reduce ? "to be added" : "to be put in place");
}

// All ranks' programs, run as far as they go (MODEL in the header).
class Rendezvous {
 public:
  Rendezvous(int ranks, int steps, std::int64_t chunks, const Readings& readings)
      : ranks_(ranks),
        steps_(steps),
        chunks_(chunks),
        readings_(readings),
        step_(to_size(ranks), -1),
        open_(to_size(ranks), 0) {}

  [[nodiscard]] std::optional<Counterexample> run() {
    for (int rank = ranks_ - 1; rank >= 0; --rank) ready_.push_back(rank);
    while (!ready_.empty()) {
      const int rank = ready_.back();
      ready_.pop_back();
      advance(rank);
      if (malformed_) return malformed_;
    }
    if (auto deadlock = left_waiting()) return deadlock;
    return mismatch_;
  }

 private:
  // One end of a message that the other end's rank has not posted.
  struct End {
    int step = 0;
    bool is_send = false;
    Transfer<std::int64_t> message;

    [[nodiscard]] int rank() const { return is_send ? message.from : message.to; }
    [[nodiscard]] int peer() const { return is_send ? message.to : message.from; }
  };

  // Takes a rank from the step that it is done with to the first in which it has to wait.
  void advance(int rank) {
    int& step = step_[to_size(rank)];
    int& open = open_[to_size(rank)];
    while (open == 0 && ++step < steps_) {
      posts_.clear();
      for (const bool is_send : {false, true}) {
        const PostSource& source = is_send ? readings_.sends : readings_.receives;
        source(rank, step, [&](const Transfer<std::int64_t>& t) {
          if (t.span.size == 0) return;
          posts_.push_back({step, is_send, t});
          if (!malformed_) malformed_ = malformed(step, ranks_, chunks_, t);
          if (!malformed_ && posts_.back().rank() != rank) {
            malformed_ = Counterexample{
                Fault::malformed, step, rank, t.span.begin,
                fmt::format("rank {} posts a message of rank {}", rank, posts_.back().rank())};
          }
        });
      }
      if (malformed_) return;
      open = static_cast<int>(posts_.size());
      for (const End& end : posts_) post(end);
    }
  }

  void post(const End& end) {
    const std::uint64_t pair =
        static_cast<std::uint64_t>(end.message.from) * static_cast<std::uint64_t>(ranks_) +
        static_cast<std::uint64_t>(end.message.to);
    std::vector<End>& waiting = waiting_[pair];
    if (waiting.empty() || waiting.front().is_send == end.is_send) {
      waiting.push_back(end);
      return;
    }
    meet(end.is_send ? end : waiting.front(), end.is_send ? waiting.front() : end);
    waiting.erase(waiting.begin());
    if (waiting.empty()) waiting_.erase(pair);
    --open_[to_size(end.rank())];
    if (--open_[to_size(end.peer())] == 0) ready_.push_back(end.peer());
  }

  void meet(const End& send, const End& receive) {
    const bool same = send.step == receive.step && send.message.span == receive.message.span &&
                      send.message.reduce == receive.message.reduce;
    if (same || (mismatch_ && mismatch_->step <= send.step)) return;
    mismatch_ =
        Counterexample{Fault::mismatch, send.step, send.message.from, send.message.span.begin,
                       fmt::format("rank {} sends rank {} {}, which meets a receive of {} in step "
                                   "{}",
                                   send.message.from, send.message.to, in_words(send.message),
                                   in_words(receive.message), receive.step + 1)};
  }

  // Follows a rank that waits to the rank that it waits for, until a cycle or a rank that is done.
  [[nodiscard]] std::optional<Counterexample> left_waiting() const {
    std::vector<const End*> first(to_size(ranks_), nullptr);
    const End* start = nullptr;
    for (const auto& [pair, ends] : waiting_) {
      const End& end = ends.front();
      const End*& of_rank = first[to_size(end.rank())];
      if (of_rank == nullptr || end.peer() < of_rank->peer()) of_rank = &end;
    }
    for (const End* end : first) {
      if (end != nullptr && (start == nullptr || end->step < start->step)) start = end;
    }
    if (start == nullptr) return std::nullopt;
    std::vector<const End*> path;
    std::vector<bool> is_seen(to_size(ranks_), false);
    const End* end = start;
    for (; end != nullptr && !is_seen[to_size(end->rank())]; end = first[to_size(end->peer())]) {
      is_seen[to_size(end->rank())] = true;
      path.push_back(end);
    }
    if (end != nullptr) path.erase(path.begin(), std::find(path.begin(), path.end(), end));
    constexpr std::size_t most_named = 6;
    std::string why;
    for (std::size_t i = 0; i < std::min(path.size(), most_named); ++i) {
      why += fmt::format("{}rank {} waits in step {} for rank {} to {}", i == 0 ? "" : ", ",
                         path[i]->rank(), path[i]->step + 1, path[i]->peer(),
                         path[i]->is_send ? "receive" : "send");
    }
    if (path.size() > most_named) why += fmt::format(" and {} more", path.size() - most_named);
    if (end == nullptr) why += ", which is done";
    return Counterexample{Fault::deadlock, path.front()->step, path.front()->rank(),
                          path.front()->message.span.begin, why};
  }

  int ranks_;
  int steps_;
  std::int64_t chunks_;
  const Readings& readings_;
  std::vector<int> step_;                                        // the step of each rank
  std::vector<int> open_;                                        // ends that each rank waits for
  std::vector<int> ready_;                                       // ranks that wait for nothing
  std::unordered_map<std::uint64_t, std::vector<End>> waiting_;  // by sender and receiver
  std::vector<End> posts_;
  std::optional<Counterexample> malformed_;
  std::optional<Counterexample> mismatch_;
};

using Transfers = std::vector<Transfer<std::int64_t>>;

[[nodiscard]] std::pair<int, int> pair_of(const Transfer<std::int64_t>& t) {
  return {t.to, t.from};
}

// Sorts by receiver and sender. Messages between the same two stay in the order of their posting.
void sort_by_pair(Transfers& transfers) {
  const auto before = [](const auto& a, const auto& b) { return pair_of(a) < pair_of(b); };
  if (!std::is_sorted(transfers.begin(), transfers.end(), before))
    std::stable_sort(transfers.begin(), transfers.end(), before);
}

// The first message of a step that is not in both readings; both sorted by pair.
std::optional<Counterexample> difference(int step, const Transfers& sent, const Transfers& whole) {
  const auto same = [](const auto& a, const auto& b) {
    return pair_of(a) == pair_of(b) && a.span == b.span && a.reduce == b.reduce;
  };
  const auto [s, w] = std::mismatch(sent.begin(), sent.end(), whole.begin(), whole.end(), same);
  if (s == sent.end() && w == whole.end()) return std::nullopt;
  const bool only_sent = w == whole.end() || (s != sent.end() && pair_of(*s) <= pair_of(*w));
  const Transfer<std::int64_t>& t = only_sent ? *s : *w;
  return Counterexample{
      Fault::mismatch, step, t.from, t.span.begin,
      fmt::format("{} sends rank {} {}, which {} does not show",
                  only_sent ? fmt::format("rank {}", t.from)
                            : fmt::format("in the step as a whole rank {}", t.from),
                  t.to, in_words(t), only_sent ? "the step as a whole" : "its own program")};
}

}  // namespace

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::malformed:
      return "malformed message";
    case Fault::deadlock:
      return "deadlock";
    case Fault::mismatch:
      return "mismatch";
    case Fault::race:
      return "race";
    case Fault::wrong_sum:
      return "wrong sum";
  }
  return "unknown";
}

Verdict verify(Collective collective, int ranks, int steps, std::int64_t chunks,
               const TransferSource& source) {
  const Promise promise(collective, ranks, chunks);
  constexpr std::int64_t most_words = 256'000'000 / 8;
  const std::int64_t words_per_chunk =
      ranks * static_cast<std::int64_t>(Symbolic::stride(ranks, promise));
  const std::int64_t block_size =
      std::clamp<std::int64_t>(most_words / words_per_chunk, 1, std::max<std::int64_t>(chunks, 1));

  Proof proof{chunks, 0};
  Transfers transfers;
  for (std::int64_t begin = 0; begin < chunks || begin == 0; begin += block_size) {
    const Elements block{begin, std::min(block_size, chunks - begin)};
    Symbolic state(ranks, block, promise);
    for (int step = 0; step < steps; ++step) {
      transfers.clear();
      std::optional<Counterexample> fault;
      source(step, [&](const Transfer<std::int64_t>& t) {
        if (!fault) fault = malformed(step, ranks, chunks, t);
        if (fault) return;
        if (t.span.size > 0 && begin == 0) ++proof.transfers;
        const Elements span = clipped(t.span, block);
        if (span.size > 0) transfers.push_back({t.from, t.to, span, t.reduce});
      });
      if (!fault) fault = state.apply(step, transfers);
      if (fault) return *fault;
    }
    if (auto fault = state.broken_promise(steps)) return *fault;
  }
  return proof;
}

Verdict verify(Collective collective, int ranks, int steps, std::int64_t chunks,
               const Readings& readings) {
  if (auto fault = left_waiting(ranks, steps, chunks, readings)) return *fault;
  return verify(collective, ranks, steps, chunks, readings.transfers);
}

Verdict verify(Collective collective, const Schedule& schedule, std::int64_t chunks) {
  const Elements bucket{0, chunks};
  const Readings readings = {
      .transfers =
          [&](int step, const TransferSink& sink) {
            for_each_transfer(schedule, step, bucket, sink);
          },
      .sends = [&](int rank, int step,
                   const TransferSink& sink) { for_each_send(schedule, rank, step, bucket, sink); },
      .receives =
          [&](int rank, int step, const TransferSink& sink) {
            for_each_receive(schedule, rank, step, bucket, sink);
          }};
  return verify(collective, schedule.ranks(), schedule.steps(), chunks, readings);
}

Verdict verify_all_reduce(const Schedule& schedule, std::int64_t chunks) {
  return verify(Collective::all_reduce, schedule, chunks);
}

std::optional<Counterexample> left_waiting(int ranks, int steps, std::int64_t chunks,
                                           const Readings& readings) {
  if (auto fault = Rendezvous(ranks, steps, chunks, readings).run()) return fault;
  Transfers whole;
  Transfers sent;
  for (int step = 0; step < steps; ++step) {
    whole.clear();
    sent.clear();
    const auto collect = [](Transfers& into) {
      return [&into](const Transfer<std::int64_t>& t) {
        if (t.span.size != 0) into.push_back(t);
      };
    };
    readings.transfers(step, collect(whole));
    for (int rank = 0; rank < ranks; ++rank) readings.sends(rank, step, collect(sent));
    sort_by_pair(whole);
    sort_by_pair(sent);
    if (auto fault = difference(step, sent, whole)) return fault;
  }
  return std::nullopt;
}

std::vector<std::int64_t> telling_chunk_counts(const Schedule& schedule) {
  const std::int64_t natural = schedule.natural_chunks(1 << 16);
  const std::int64_t most =
      natural == 0 ? 2 * static_cast<std::int64_t>(schedule.ranks()) : natural;
  std::vector<std::int64_t> counts = {most, most + 1};
  if (most > 1) counts.push_back(most / 2);
  return counts;
}

}  // namespace paceline::models
