// Tests: tests/cli/sweep_test.py (end to end).
#include "cli/job/sweep_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "runtime/channel/messages.h"

namespace paceline::job {
namespace {

// Few cells at a time would be lost in messages between ranks and threads.
constexpr std::int64_t least_unit_cells = 64;
// By how many units each thread may be ahead of who takes the rows.
constexpr std::int64_t units_ahead = 4;

// Units of some blocks, from `first_block` on.
class Units {
 public:
  Units(const SweepRun& run, const SweepBlocks& blocks)
      : blocks_(blocks), first_block_(run.first_block) {
    const std::int64_t cells = std::min(run.sweep.inner_cells(), most_block_cells);
    per_unit_ = std::max<std::int64_t>(1, least_unit_cells / cells);
  }

  [[nodiscard]] std::int64_t count() const {
    return (blocks_.count() - first_block_ + per_unit_ - 1) / per_unit_;
  }
  [[nodiscard]] std::int64_t begin(std::int64_t unit) const {
    return std::min(blocks_.count(), first_block_ + unit * per_unit_);
  }
  [[nodiscard]] std::int64_t end(std::int64_t unit) const { return begin(unit + 1); }

 private:
  const SweepBlocks& blocks_;
  std::int64_t first_block_ = 0;
  std::int64_t per_unit_ = 1;
};

// Runs work(0), work(1), ... on threads, and hands out what they return in that order.
class InOrder {
 public:
  InOrder(int threads, std::int64_t count, std::function<std::string(std::int64_t)> work)
      : count_(count), ahead_(threads * units_ahead), work_(std::move(work)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;
  ~InOrder() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // The next one; at most `count` times. Rethrows what work() has thrown.
  [[nodiscard]] std::string next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return failure_ != nullptr || done_.contains(taken_); });
    if (!done_.contains(taken_)) std::rethrow_exception(failure_);
    std::string result = std::move(done_.extract(taken_).mapped());
    ++taken_;
    changed_.notify_all();
    return result;
  }

 private:
  void run() {
    for (;;) {
      std::int64_t mine = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] {
          return is_over_ || failure_ != nullptr || begun_ == count_ || begun_ < taken_ + ahead_;
        });
        if (is_over_ || failure_ != nullptr || begun_ == count_) return;
        mine = begun_++;
      }
      try {
        std::string result = work_(mine);
        const std::lock_guard lock(mutex_);
        done_.emplace(mine, std::move(result));
        changed_.notify_all();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
        return;
      }
    }
  }

  std::int64_t count_;
  std::int64_t ahead_;
  std::function<std::string(std::int64_t)> work_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::int64_t, std::string> done_;
  std::int64_t begun_ = 0;
  std::int64_t taken_ = 0;
  bool is_over_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

// The job as rank 0 has it.
struct Told {
  std::int64_t first_block = 0;
  std::string digest;
};

Told told_by_rank_0(const SweepRun& run) {
  runtime::Channel& channel = *run.channel;
  const std::string text =
      runtime::broadcast_text(channel, fmt::format("{} {}", run.first_block, run.sweep.digest));
  const std::size_t blank = text.find(' ');
  return {std::stoll(text.substr(0, blank)), text.substr(blank + 1)};
}

// Rank r takes the units r, r + ranks, ...
class Ranks {
 public:
  explicit Ranks(runtime::Channel* channel)
      : channel_(channel),
        rank_(channel == nullptr ? 0 : channel->rank()),
        ranks_(channel == nullptr ? 1 : channel->ranks()) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t own(std::int64_t unit) const { return rank_ + unit * ranks_; }
  [[nodiscard]] std::int64_t own_count(std::int64_t units) const {
    return units > rank_ ? (units - rank_ + ranks_ - 1) / ranks_ : 0;
  }
  [[nodiscard]] int owner(std::int64_t unit) const { return static_cast<int>(unit % ranks_); }

  // What rank 0 takes from another rank, which then may send one more.
  [[nodiscard]] std::string take(int from) const {
    std::string rows = runtime::receive_text(*channel_, from);
    const std::array<std::byte, 1> credit = {};
    channel_->send(from, credit);
    return rows;
  }
  void give(const std::string& rows) {
    if (unanswered_ == most_unanswered) wait_for_credit();
    runtime::send_text(*channel_, 0, rows);
    ++unanswered_;
  }
  void settle() {
    while (unanswered_ > 0) wait_for_credit();
  }

 private:
  static constexpr int most_unanswered = 8;

  void wait_for_credit() {
    std::array<std::byte, 1> credit = {};
    channel_->receive(0, credit);
    --unanswered_;
  }

  runtime::Channel* channel_;
  int rank_;
  int ranks_;
  int unanswered_ = 0;
};

}  // namespace

void run_sweep(const SweepRun& asked, const SweepSink& sink) {
  SweepRun run = asked;
  if (run.channel != nullptr) {
    const Told told = told_by_rank_0(run);
    if (told.digest != run.sweep.digest)
      throw InputError(fmt::format("rank {} has another sweep than rank 0", run.channel->rank()),
                       "start the same program with the same files on all ranks");
    run.first_block = told.first_block;
  }
  const SweepBlocks blocks(run.sweep);
  const Units units(run, blocks);
  Ranks ranks(run.channel);
  InOrder own(run.threads, ranks.own_count(units.count()), [&](std::int64_t unit) {
    std::string rows;
    const std::int64_t place = ranks.own(unit);
    for (std::int64_t block = units.begin(place); block < units.end(place); ++block)
      rows += sweep_rows(run.sweep, blocks, block, run.format);
    return rows;
  });
  if (ranks.rank() != 0) {
    for (std::int64_t i = 0; i < ranks.own_count(units.count()); ++i) ranks.give(own.next());
    return ranks.settle();
  }
  for (std::int64_t unit = 0; unit < units.count(); ++unit) {
    const int owner = ranks.owner(unit);
    const std::string rows = owner == 0 ? own.next() : ranks.take(owner);
    sink(rows, blocks.first_cell(units.end(unit)));
  }
}

}  // namespace paceline::job
