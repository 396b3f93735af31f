// Work that several threads share.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace paceline::experiments {

// Calls `call` once for each job, on so many threads, this one among them. What a call throws ends
// its thread's work, and is thrown again at the end.
template <class Job>
void for_all(std::vector<Job>& jobs, int threads, void (*call)(const Job&)) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(threads < 1 ? 1 : threads));
  const auto work = [&](std::size_t thread) {
    try {
      for (std::size_t i = next++; i < jobs.size(); i = next++) call(jobs[i]);
    } catch (...) {
      thrown[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < thrown.size(); ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
}

}  // namespace paceline::experiments
