// Runs one function for each rank of an in-process job, each on a thread of its own.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/channel/rank_threads.h"
#include "runtime/transport/thread_transport.h"

namespace paceline::testing {

// Rethrows what the lowest rank threw that did. `work` owns its rank's transport: it is destroyed
// when the rank is done, whether it threw or not.
inline std::vector<std::exception_ptr> errors_of_ranks(
    int ranks, int streams, const std::function<void(runtime::Transport&)>& work,
    Seconds patience = Seconds{60}) {
  auto transports = runtime::thread_transports(ranks, streams, patience);
  std::vector<std::exception_ptr> errors(transports.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < transports.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          work(*transports[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
          transports[rank]->abort();
        }
      });
    }
  }
  return errors;
}

// For what needs the data transport only.
inline void on_ranks(int ranks, int streams, const std::function<void(runtime::Transport&)>& work) {
  runtime::run_as_threads(ranks, streams, Seconds{60},
                          [&work](const runtime::Endpoint& endpoint) { work(endpoint.transport); });
}

inline void on_endpoints(int ranks, int streams,
                         const std::function<void(const runtime::Endpoint&)>& work) {
  runtime::run_as_threads(ranks, streams, Seconds{60}, work);
}

}  // namespace paceline::testing
