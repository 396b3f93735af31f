// Tests: tests/cli/serve_test.py (end to end).
#include "cli/serve/workers.h"

#include <iterator>
#include <new>
#include <utility>

namespace paceline::serve {

Workers::Workers(int threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::add(std::vector<std::function<void()>> tasks) {
  return insert(std::move(tasks), false);
}

bool Workers::add_first(std::vector<std::function<void()>> tasks) {
  return insert(std::move(tasks), true);
}

bool Workers::insert(std::vector<std::function<void()>> tasks, bool first) {
  const std::lock_guard lock(mutex_);
  if (tasks_.size() + tasks.size() > most_waiting_) return false;
  tasks_.insert(first ? tasks_.begin() : tasks_.end(), std::move_iterator(tasks.begin()),
                std::move_iterator(tasks.end()));
  changed_.notify_all();
  return true;
}

void Workers::run() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_over_ || !tasks_.empty(); });
      if (is_over_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      task();
    } catch (const std::bad_alloc&) {
      continue;
    }
  }
}

}  // namespace paceline::serve
