// Keeps the processors of a virtual machine from halting: there is a thread on each of them, which
// runs when nothing else does (SCHED_IDLE).
//
// A hypervisor that shares its processors gives one that halts to another machine, and gives it back
// late. With hosts that mostly wait, 40 % of the time was stolen and frames were up to 100 ms late;
// from processors that do not halt 5 % was stolen.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

void stay_awake(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  const sched_param none{};
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0 ||
      pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) != 0)
    return;  // better asleep than in the way
  for (;;) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    asm volatile("");
#endif
  }
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) {
    std::perror("paceline-lab-awake");
    return 1;
  }
  std::vector<std::thread> threads;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &processors)) threads.emplace_back(stay_awake, processor);
  }
  for (std::thread& thread : threads) thread.join();
}
