// Tests: tests/runtime/loop/trainer_test.cc.
#include "runtime/channel/rank_threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/channel/transport_channel.h"
#include "runtime/transport/lost_rank.h"
#include "runtime/transport/thread_transport.h"

namespace paceline::runtime {
namespace {

// Keeps the error that says most about why a job ended.
class FirstCause {
 public:
  void is(std::exception_ptr error, bool is_loss) {
    const std::lock_guard lock(mutex_);
    if (error_ && (is_loss || !error_is_loss_)) return;
    error_ = std::move(error);
    error_is_loss_ = is_loss;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  bool error_is_loss_ = false;
};

}  // namespace

void run_as_threads(int ranks, int streams, Seconds patience,
                    const std::function<void(const Endpoint&)>& work) {
  const auto data = thread_transports(ranks, streams, patience);
  const auto control = thread_transports(ranks, 1, patience);
  const auto work_of = [&](std::size_t rank) {
    TransportChannel channel(*control[rank]);
    work({.channel = channel, .transport = *data[rank]});
  };
  if (ranks == 1) return work_of(0);
  FirstCause cause;
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < data.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          work_of(rank);
          return;
        } catch (const LostRank&) {
          cause.is(std::current_exception(), true);
        } catch (...) {
          cause.is(std::current_exception(), false);
        }
        control[rank]->abort();
        data[rank]->abort();
      });
    }
  }
  cause.rethrow();
}

}  // namespace paceline::runtime
