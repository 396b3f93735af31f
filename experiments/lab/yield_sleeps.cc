// Loaded into ranks of the lab (LD_PRELOAD): sched_yield sleeps for 20 us.
//
// A rank that polls has a host, and its cores, to itself on a cluster. In the lab all hosts share a
// few cores, and a rank that polls there takes them from those that have work; the kernel lets a
// thread that yields go on at once if all others have had their share.
#include <sys/prctl.h>
#include <time.h>

namespace {

// The default slack of timers, 50 us, would be longer than the sleep.
[[gnu::constructor]] void make_timers_exact() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

}  // namespace

extern "C" int sched_yield() noexcept {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
  nanosleep(&pause, nullptr);
  return 0;
}
