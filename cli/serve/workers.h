// Threads that work off a queue of tasks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline::serve {

class Workers {
 public:
  // `most_waiting` tasks may wait for a thread.
  Workers(int threads, std::size_t most_waiting);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Drops the tasks that wait, and waits for those that run.
  ~Workers();

  // Adds tasks, all or none: returns false where too many would wait. A task must not throw; one that
  // runs out of memory is dropped.
  [[nodiscard]] bool add(std::vector<std::function<void()>> tasks);
  // The same, before those that wait: for parts of what has begun.
  [[nodiscard]] bool add_first(std::vector<std::function<void()>> tasks);

 private:
  void run();
  bool insert(std::vector<std::function<void()>> tasks, bool first);

  std::size_t most_waiting_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace paceline::serve
