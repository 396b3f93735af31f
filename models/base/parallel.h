// Work that several threads share.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "models/base/to_size.h"

namespace paceline {

// Calls call(i) for each i from 0 to count - 1, once, on this many threads, this one among them, and in
// this order as far as threads begin. What a call throws ends its thread's work, and is thrown again at
// the end.
template <class Call>
void for_each_index(std::size_t count, int threads, Call call) {
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> thrown(to_size(threads < 1 ? 1 : threads));
  const auto work = [&](std::size_t thread) {
    try {
      for (std::size_t i = next++; i < count; i = next++) call(i);
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

}  // namespace paceline
