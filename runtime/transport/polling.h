// How a thread waits that must look for itself whether a message has come.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace paceline::runtime {

// Between two looks, after having waited so long. A message that comes soon costs yields; for one
// that takes long, whoever else uses the cores comes first, and it is seen at most 1 % late.
inline void pause_between_looks(std::chrono::nanoseconds waited) {
  constexpr std::chrono::milliseconds patient_after{10};
  constexpr std::chrono::nanoseconds longest_nap = std::chrono::milliseconds(1);
  if (waited < patient_after)
    ::sched_yield();
  else
    std::this_thread::sleep_for(std::min(waited / 100, longest_nap));
}

}  // namespace paceline::runtime
