// Tests: tests/runtime/loop/trainer_test.cc.
#include "runtime/transport/rank_threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/transport/lost_rank.h"
#include "runtime/transport/thread_transport.h"

namespace paceline::runtime {
namespace {

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
                    const std::function<void(Transport&)>& work) {
  const auto transports = thread_transports(ranks, streams, patience);
  if (ranks == 1) return work(*transports.front());
  FirstCause cause;
  {
    std::vector<std::jthread> threads;
    for (const std::unique_ptr<Transport>& transport : transports) {
      threads.emplace_back([&cause, &work, &transport = *transport] {
        try {
          work(transport);
        } catch (const LostRank&) {
          cause.is(std::current_exception(), true);
          transport.abort();
        } catch (...) {
          cause.is(std::current_exception(), false);
          transport.abort();
        }
      });
    }
  }
  cause.rethrow();
}

}  // namespace paceline::runtime
