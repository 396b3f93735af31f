// The pauses of a thread that has to look for itself whether a message has come.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace paceline::runtime {

// Pauses between two looks, after having waited for `waited`. In the first 10 ms the thread yields
// the core. Later it sleeps for a hundredth of the time that it has waited, at most 1 ms, so that
// others get the cores and the message is seen at most 1 % late.
inline void pause_between_looks(std::chrono::nanoseconds waited) {
  constexpr std::chrono::milliseconds patient_after{10};
  constexpr std::chrono::nanoseconds longest_nap = std::chrono::milliseconds(1);
  if (waited < patient_after)
    ::sched_yield();
  else
    std::this_thread::sleep_for(std::min(waited / 100, longest_nap));
}

}  // namespace paceline::runtime
