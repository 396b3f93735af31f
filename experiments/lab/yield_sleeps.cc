// This library is loaded into ranks of the lab (LD_PRELOAD). In it sched_yield sleeps until something
// happens on a TCP socket of the process, or for 1 ms; for 200 us where ranks share a host and its
// memory.
//
// On a cluster, a rank that polls has a host and its cores to itself. In the lab all hosts share a
// few cores, and a rank that polls takes them from those that have work: the kernel lets a thread
// that yields go on at once if all others have had their share.
//
// While something has come and is not read yet, nobody sleeps. A socket that can be written to again
// wakes once. If several threads yield, one of them is woken. A thread that has itself read or
// written since it yielded does not sleep either: it may have asked for a message before it read it.
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

// A message through memory that ranks share comes by no socket, and is seen after this time at the
// latest.
constexpr timespec longest_alone{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr timespec longest_beside_others{.tv_sec = 0, .tv_nsec = 200'000};
// So many calls return after something happened, since one may have seen only half of it.
constexpr int looks = 2;
thread_local int awake = 0;  // calls that still return at once

const timespec& longest_sleep() {
  static const char* const ranks = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  static const bool alone = ranks != nullptr && std::string_view(ranks) == "1";
  return alone ? longest_alone : longest_beside_others;
}

// Reports sockets that can be read, for as long as they can.
int readable() {
  static const int descriptor = epoll_create1(EPOLL_CLOEXEC);
  return descriptor;
}

void add(int set, int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
}

// Reports those too, and sockets that can be written to again.
int watched() {
  static const int descriptor = [] {
    const int set = epoll_create1(EPOLL_CLOEXEC);
    add(set, readable(), EPOLLIN);
    return set;
  }();
  return descriptor;
}

// Sockets that are closed leave the set by themselves.
int watch(int socket) {
  int domain = 0;
  int type = 0;
  socklen_t size = sizeof domain;
  if (socket >= 0 && getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
      getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
      (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM) {
    add(readable(), socket, EPOLLIN);
    add(watched(), socket, EPOLLOUT | EPOLLET);
  }
  return socket;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The default slack of timers, 50 us, would be longer than the naps of ranks.
[[gnu::constructor]] void make_timers_exact() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

}  // namespace

extern "C" {

int sched_yield() noexcept {
  if (awake > 0) {
    --awake;
    return 0;
  }
  epoll_event event{};
  if (epoll_pwait2(watched(), &event, 1, &longest_sleep(), nullptr) > 0) awake = looks;
  return 0;
}

ssize_t readv(int descriptor, const iovec* parts, int count) {
  static auto* const made = next<ssize_t(int, const iovec*, int)>("readv");
  const ssize_t bytes = made(descriptor, parts, count);
  if (bytes > 0) awake = looks;
  return bytes;
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  static auto* const made = next<ssize_t(int, const iovec*, int)>("writev");
  const ssize_t bytes = made(descriptor, parts, count);
  if (bytes > 0) awake = looks;
  return bytes;
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
