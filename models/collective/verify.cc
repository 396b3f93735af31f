// Tests: tests/models/verify_test.cc.
#include "models/collective/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

namespace paceline::models {
namespace {

using Elements = Span<std::int64_t>;

[[nodiscard]] bool overlap(Elements a, Elements b) {
  return a.begin < b.end() && b.begin < a.end();
}

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
    if (collective == Collective::broadcast) source_.assign(static_cast<std::size_t>(chunks), 0);
    if (collective == Collective::all_gather || collective == Collective::all_to_all)
      source_ = owners(bucket, ranks);
    if (collective == Collective::reduce_scatter) target_ = owners(bucket, ranks);
    if (collective == Collective::all_to_all) {
      for (int row = 0; row < ranks; ++row) {
        const std::vector<int> columns = owners(part(bucket, row, ranks), ranks);
        target_.insert(target_.end(), columns.begin(), columns.end());
      }
    }
  }
  // Does `rank` start with a contribution to the chunk?
  [[nodiscard]] bool starts(int rank, std::int64_t chunk) const {
    return source_.empty() || source_[static_cast<std::size_t>(chunk)] == rank;
  }
  // Must `rank` end with the chunk?
  [[nodiscard]] bool ends(int rank, std::int64_t chunk) const {
    return target_.empty() || target_[static_cast<std::size_t>(chunk)] == rank;
  }
  [[nodiscard]] bool all_start() const { return source_.empty(); }

 private:
  static std::vector<int> owners(Elements bucket, int ranks) {
    std::vector<int> owners;
    owners.reserve(static_cast<std::size_t>(bucket.size));
    for (int rank = 0; rank < ranks; ++rank)
      owners.insert(owners.end(), static_cast<std::size_t>(part(bucket, rank, ranks).size), rank);
    return owners;
  }

  std::vector<int> source_;  // the only rank that contributes to a chunk; empty: all do
  std::vector<int> target_;  // the only rank that must end with a chunk; empty: all must
};

// The symbolic state of all ranks for one block of chunks.
//
// Invariant: bit r of contributors(rank, chunk) is set iff the chunk at `rank` contains the
// contribution of r, once. Transfers that would break "once" are reported, not applied.
class Symbolic {
 public:
  Symbolic(int ranks, Elements block, const Promise& promise)
      : ranks_(ranks),
        block_(block),
        promise_(promise),
        words_((static_cast<std::size_t>(ranks) + 63) / 64),
        bits_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(block.size) * words_) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t chunk = block.begin; chunk < block.end(); ++chunk) {
        if (promise.starts(rank, chunk))
          at(rank, chunk)[rank / 64] |= std::uint64_t{1} << (rank % 64);
      }
    }
  }

  // Applies one step. Transfers are clipped to the block already.
  [[nodiscard]] std::optional<Counterexample> apply(
      int step, const std::vector<Transfer<std::int64_t>>& transfers) {
    std::vector<std::vector<Write>> writes(static_cast<std::size_t>(ranks_));
    for (const auto& t : transfers)
      writes[static_cast<std::size_t>(t.to)].push_back({t.span, t.reduce});
    for (int rank = 0; rank < ranks_; ++rank) {
      auto& own = writes[static_cast<std::size_t>(rank)];
      if (auto fault = conflicting_writes(step, rank, own)) return fault;
      merge(own);
    }
    // A chunk that is sent and reduced into in the same step is read as it was before.
    std::vector<std::vector<std::uint64_t>> before(transfers.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto& t = transfers[i];
      const std::vector<Write>& own = writes[static_cast<std::size_t>(t.from)];
      auto write = std::partition_point(
          own.begin(), own.end(), [&](const Write& w) { return w.span.end() <= t.span.begin; });
      for (; write != own.end() && overlap(write->span, t.span); ++write) {
        if (!write->reduce) {
          return Counterexample{
              step, t.from, std::max(write->span.begin, t.span.begin),
              fmt::format("rank {} sends the chunk while a message replaces it", t.from)};
        }
        if (before[i].empty()) {
          const std::uint64_t* first = at(t.from, t.span.begin);
          before[i].assign(first, first + static_cast<std::size_t>(t.span.size) * words_);
        }
      }
      if (auto fault = nothing_to_send(step, t)) return fault;
    }
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto& t = transfers[i];
      const std::uint64_t* source = before[i].empty() ? at(t.from, t.span.begin) : before[i].data();
      if (auto fault = land(step, t, source)) return fault;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Counterexample> incomplete(int steps) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::int64_t chunk = block_.begin; chunk < block_.end(); ++chunk) {
        if (!promise_.ends(rank, chunk)) continue;
        const std::uint64_t* set = at(rank, chunk);
        for (int other = 0; other < ranks_; ++other) {
          if ((set[other / 64] >> (other % 64) & 1) != 0 || !promise_.starts(other, chunk))
            continue;
          return Counterexample{
              steps, rank, chunk,
              fmt::format("rank {} ends without the contribution of rank {}", rank, other)};
        }
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::uint64_t* at(int rank, std::int64_t chunk) {
    return bits_.data() + index(rank, chunk);
  }
  [[nodiscard]] const std::uint64_t* at(int rank, std::int64_t chunk) const {
    return bits_.data() + index(rank, chunk);
  }
  [[nodiscard]] std::size_t index(int rank, std::int64_t chunk) const {
    return (static_cast<std::size_t>(rank) * static_cast<std::size_t>(block_.size) +
            static_cast<std::size_t>(chunk - block_.begin)) *
           words_;
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
        return Counterexample{step, rank, write.span.begin,
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

  std::optional<Counterexample> nothing_to_send(int step, const Transfer<std::int64_t>& t) const {
    if (promise_.all_start()) return std::nullopt;
    for (std::int64_t chunk = t.span.begin; chunk < t.span.end(); ++chunk) {
      const std::uint64_t* set = at(t.from, chunk);
      if (std::any_of(set, set + words_, [](std::uint64_t word) { return word != 0; })) continue;
      return Counterexample{step, t.from, chunk,
                            fmt::format("rank {} sends a chunk of which it has nothing", t.from)};
    }
    return std::nullopt;
  }

  std::optional<Counterexample> land(int step, const Transfer<std::int64_t>& t,
                                     const std::uint64_t* source) {
    std::uint64_t* target = at(t.to, t.span.begin);
    const std::size_t count = static_cast<std::size_t>(t.span.size) * words_;
    for (std::size_t w = 0; w < count; ++w) {
      const std::uint64_t twice = source[w] & target[w];
      if (t.reduce && twice != 0) {
        const int contributor = static_cast<int>(w % words_ * 64) + std::countr_zero(twice);
        return Counterexample{
            step, t.to, t.span.begin + static_cast<std::int64_t>(w / words_),
            fmt::format("rank {} would add the contribution of rank {} a second time, from rank {}",
                        t.to, contributor, t.from)};
      }
      target[w] = t.reduce ? target[w] | source[w] : source[w];
    }
    return std::nullopt;
  }

  int ranks_;
  Elements block_;
  const Promise& promise_;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

std::optional<Counterexample> malformed(int step, int ranks, std::int64_t chunks,
                                        const Transfer<std::int64_t>& t) {
  const auto is_rank = [ranks](int rank) { return rank >= 0 && rank < ranks; };
  if (!is_rank(t.from) || !is_rank(t.to) || t.from == t.to) {
    return Counterexample{step, is_rank(t.from) ? t.from : 0, t.span.begin,
                          fmt::format("a message goes from rank {} to rank {}", t.from, t.to)};
  }
  if (t.span.begin < 0 || t.span.size < 0 || t.span.size > chunks - t.span.begin) {
    return Counterexample{step, t.from, t.span.begin, "a message lies outside of the bucket"};
  }
  return std::nullopt;
}

}  // namespace

Verdict verify(Collective collective, int ranks, int steps, std::int64_t chunks,
               const TransferSource& source) {
  const Promise promise(collective, ranks, chunks);
  constexpr std::int64_t most_words = 256'000'000 / 8;
  const std::int64_t words_per_chunk = static_cast<std::int64_t>(ranks) * ((ranks + 63) / 64);
  const std::int64_t block_size =
      std::clamp<std::int64_t>(most_words / words_per_chunk, 1, std::max<std::int64_t>(chunks, 1));

  Proof proof{chunks, 0};
  std::vector<Transfer<std::int64_t>> transfers;
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
    if (auto fault = state.incomplete(steps)) return *fault;
  }
  return proof;
}

Verdict verify(Collective collective, const Schedule& schedule, std::int64_t chunks) {
  return verify(collective, schedule.ranks(), schedule.steps(), chunks,
                [&](int step, const TransferSink& sink) {
                  for_each_transfer(schedule, step, Span<std::int64_t>{0, chunks}, sink);
                });
}

Verdict verify_all_reduce(int ranks, int steps, std::int64_t chunks, const TransferSource& source) {
  return verify(Collective::all_reduce, ranks, steps, chunks, source);
}

Verdict verify_all_reduce(const Schedule& schedule, std::int64_t chunks) {
  return verify(Collective::all_reduce, schedule, chunks);
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
