#include "tests/support/cuda_on_host/faults.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/support/cuda_on_host/happens_before.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"
#include "tests/support/cuda_on_host/trace.h"

namespace cuda_on_host {
namespace {

struct sigaction previous;  // NOLINT: a handler has no other place for it

[[noreturn]] void end(const std::string& what) {
  std::fprintf(stderr, "cuda_on_host: %s\n", what.c_str());
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

bool was_write(const void* context) {
#ifdef __x86_64__
  constexpr greg_t write_bit = 2;  // of the page fault's error code
  const auto* const machine = static_cast<const ucontext_t*>(context);
  return (machine->uc_mcontext.gregs[REG_ERR] & write_bit) != 0;
#else
  static_cast<void>(context);
  return true;
#endif
}

// Faults come from code of the program or of a kernel's body at the very touch, so that this may take
// the lock and allocate: neither the heap nor the lock is in use by the same thread outside of an
// operation, and the heap is not inside of one.
void handle(int signal, siginfo_t* info, void* context) {
  Thread& thread = this_thread();
  const bool inside = thread.calls_deep > 0;
  std::unique_lock<std::mutex> lock(state().mutex, std::defer_lock);
  if (!inside) lock.lock();
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  const Allocation* a = find_allocation(at);
  const bool writes = was_write(context);
  const std::string touches = writes ? " writes " : " reads ";
  if (inside && state().running != nullptr) {
    if (a != nullptr && a->freed) end(state().running->what + touches + place_of(at));
    if (a != nullptr)
      end(state().running->what + touches + place_of(at) + ", which it does not declare");
    for (const std::ptrdiff_t back : {4096, -4096}) {
      const Allocation* const beside = find_allocation(at - back);
      if (beside != nullptr)
        end(state().running->what + touches + "beyond the " + std::to_string(beside->bytes) +
            " bytes of an allocation");
    }
  }
  if (!inside && a != nullptr) {
    if (a->freed || a->kind == MemoryKind::device) end("the host" + touches + place_of(at));
    host_touches({at, 1, writes}, "the host");
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const auto first = address / page * page;
    // More of the page may be touched before it is closed again.
    const auto rest = static_cast<std::size_t>(first + page - address);
    record_touch({at, std::min(rest, a->bytes - static_cast<std::size_t>(at - a->first)), writes});
    const int opened = writes || !records_touches(at) ? PROT_READ | PROT_WRITE : PROT_READ;
    if (mprotect(reinterpret_cast<void*>(first), page, opened) == 0) return;
  }
  if (lock.owns_lock()) lock.unlock();
  sigaction(signal, &previous, nullptr);  // the touch is repeated, and comes to this one
}

}  // namespace

void catch_faults() {
  static const bool caught = [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSEGV, &action, &previous) == 0;
  }();
  static_cast<void>(caught);
}

}  // namespace cuda_on_host
