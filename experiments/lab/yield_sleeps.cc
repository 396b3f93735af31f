// Loaded into ranks of the lab (LD_PRELOAD): sched_yield sleeps until something happens on a TCP
// socket of the process, or for 200 us.
//
// A rank that polls has a host, and its cores, to itself on a cluster. In the lab all hosts share a
// few cores, and a rank that polls there takes them from those that have work; the kernel lets a
// thread that yields go on at once if all others have had their share.
//
// Sockets are watched for edges: what is there and stays unread wakes nobody twice, and what came
// since the last look is not lost. Of several threads that yield, one is woken.
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

namespace {

// Whom another thread has work for sees it then at the latest.
constexpr timespec longest_sleep{.tv_sec = 0, .tv_nsec = 200'000};
// Open MPI may look at its sockets only each eighth time that it is asked for progress.
constexpr int looks = 8;

int watched() {
  static const int descriptor = epoll_create1(EPOLL_CLOEXEC);
  return descriptor;
}

// Sockets that are closed leave by themselves.
int watch(int socket) {
  int domain = 0;
  int type = 0;
  socklen_t size = sizeof domain;
  if (socket >= 0 && getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
      getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
      (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    epoll_ctl(watched(), EPOLL_CTL_ADD, socket, &event);
  }
  return socket;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The default slack of timers, 50 us, would be longer than naps of ranks.
[[gnu::constructor]] void make_timers_exact() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

}  // namespace

extern "C" {

int sched_yield() noexcept {
  thread_local int awake = 0;  // for so many calls more
  if (awake > 0) {
    --awake;
    return 0;
  }
  epoll_event event{};
  if (epoll_pwait2(watched(), &event, 1, &longest_sleep, nullptr) > 0) awake = looks;
  return 0;
}

int socket(int domain, int type, int protocol) noexcept {
  static auto* const made = next<int(int, int, int)>("socket");
  return watch(made(domain, type, protocol));
}

int accept(int listener, sockaddr* address, socklen_t* size) {
  static auto* const made = next<int(int, sockaddr*, socklen_t*)>("accept");
  return watch(made(listener, address, size));
}

int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  static auto* const made = next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  return watch(made(listener, address, size, flags));
}

}  // extern "C"
