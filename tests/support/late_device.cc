#include "tests/support/late_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/device/cpu_device.h"

namespace paceline::test {
namespace {

using runtime::MemoryAccess;
using runtime::MemoryKind;

bool meet(const MemoryAccess& a, const MemoryAccess& b) {
  if (!a.writes && !b.writes) return false;
  return !a.bytes.empty() && !b.bytes.empty() && a.bytes.data() < b.bytes.data() + b.bytes.size() &&
         b.bytes.data() < a.bytes.data() + a.bytes.size();
}

std::string name_of(const runtime::Kernel& kernel) {
  constexpr const char* names[] = {"Cast", "CastMany",        "Add", "FindNotFinite", "Unscale",
                                   "Fill", "UpdateParameters"};
  static_assert(std::variant_size_v<runtime::Kernel> == std::size(names));
  return names[kernel.index()];
}

}  // namespace

// One stream: a number in the device's list of queues. Its tokens are points of its queue.
class LateDevice::LateStream final : public runtime::Stream, public runtime::Token::Source {
 public:
  LateStream(LateDevice& device, std::size_t number) : device_(device), number_(number) {}
  ~LateStream() override {
    const std::lock_guard lock(device_.mutex_);
    device_.run_until(number_, queue().started);
    device_.observe(number_, queue().started);
  }

  void start(const runtime::Kernel& kernel) override {
    const std::lock_guard lock(device_.mutex_);
    const std::uint64_t point = ++queue().started;
    Touched touched{
        number_, point, {}, fmt::format("{} {} of stream {}", name_of(kernel), point, number_)};
    runtime::for_each_access(kernel, [&](const MemoryAccess& a) { touched.accesses.push_back(a); });
    device_.check_kernel(touched, clock());
    device_.touched_.push_back(std::move(touched));
    queue().waiting.push_back({.point = point, .kernel = kernel});
    queue().clock[number_] = point;
    if (device_.lateness_ == Lateness::eager) device_.run_until(number_, point);
  }

  void wait_for(const runtime::Token& token) override {
    if (token.source() == nullptr) return;
    auto* const other = dynamic_cast<LateStream*>(token.source());
    if (other == nullptr || &other->device_ != &device_) {
      runtime::wait_for(token, runtime::device_patience, "go on with a late stream");
      return;
    }
    const std::lock_guard lock(device_.mutex_);
    const std::uint64_t point = ++queue().started;
    queue().waiting.push_back({.point = point,
                               .kernel = {},
                               .is_wait = true,
                               .awaited_stream = other->number_,
                               .awaited_point = token.point()});
    // Operations that the host has seen done happen before all that is started from now on.
    const auto record = other->queue().records.find(token.point());
    if (record != other->queue().records.end()) join(queue().clock, record->second);
    queue().clock[number_] = point;
    if (device_.lateness_ == Lateness::eager) device_.run_until(number_, point);
  }

  [[nodiscard]] runtime::Token record() override {
    const std::lock_guard lock(device_.mutex_);
    queue().records[queue().started] = clock();
    return {*this, queue().started};
  }

  [[nodiscard]] bool is_done(std::uint64_t point) override {
    const std::lock_guard lock(device_.mutex_);
    device_.run_some();
    if (queue().done < point) return false;
    device_.observe(number_, point);
    return true;
  }
  [[nodiscard]] bool wait(std::uint64_t point, Seconds /*longest*/) override {
    const std::lock_guard lock(device_.mutex_);
    device_.run_until(number_, point);
    device_.observe(number_, point);
    return true;
  }

 private:
  [[nodiscard]] Queue& queue() const { return device_.queues_[number_]; }
  // The clock of the operation that is started next. It covers what the stream waits for and what
  // the host has seen done.
  [[nodiscard]] Clock clock() const {
    Clock clock = queue().clock;
    join(clock, device_.host_);
    return clock;
  }

  LateDevice& device_;
  std::size_t number_;
};

LateDevice::~LateDevice() {
  for (const auto& [data, size] : device_memory_) munmap(data, size);
}

runtime::Memory LateDevice::allocate(std::size_t bytes, MemoryKind kind) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = std::max<std::size_t>(1, (bytes + page - 1) / page) * page;
  void* const mapped =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  std::memset(mapped, 0xFF, whole);  // every number is NaN
  auto* const data = static_cast<std::byte*>(mapped);
  if (kind != MemoryKind::device)
    return {data, bytes, MemoryKind::pinned, [whole](std::byte* d) { munmap(d, whole); }};
  const std::lock_guard lock(mutex_);
  mprotect(data, whole, PROT_NONE);
  device_memory_.emplace(data, whole);
  return {data, bytes, MemoryKind::device, [this](std::byte* d) {
            const std::lock_guard guard(mutex_);
            munmap(d, device_memory_.at(d));
            device_memory_.erase(d);
          }};
}

std::unique_ptr<runtime::Stream> LateDevice::make_stream() {
  const std::lock_guard lock(mutex_);
  queues_.emplace_back();
  host_.resize(queues_.size());
  for (Queue& queue : queues_) queue.clock.resize(queues_.size());
  return std::make_unique<LateStream>(*this, queues_.size() - 1);
}

std::vector<std::string> LateDevice::hazards() const {
  const std::lock_guard lock(mutex_);
  return hazards_;
}

int LateDevice::kernels() const {
  const std::lock_guard lock(mutex_);
  return kernels_;
}

void LateDevice::join(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool LateDevice::has_passed(const Clock& clock, std::size_t stream, std::uint64_t point) {
  return stream < clock.size() && clock[stream] >= point;
}

void LateDevice::open_device_memory(bool open) {
  for (const auto& [data, size] : device_memory_)
    mprotect(data, size, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// Runs what a stream waits for first.
void LateDevice::run_one(std::size_t stream) {
  const Operation operation = queues_[stream].waiting.front();
  queues_[stream].waiting.pop_front();
  if (operation.is_wait) {
    run_until(operation.awaited_stream, operation.awaited_point);
  } else {
    open_device_memory(true);
    runtime::run_on_cpu(operation.kernel);
    open_device_memory(false);
    ++kernels_;
  }
  queues_[stream].done = operation.point;
}

void LateDevice::run_until(std::size_t stream, std::uint64_t point) {
  while (queues_[stream].done < point && !queues_[stream].waiting.empty()) run_one(stream);
}

// What the scheduler runs while the host tests a token: with `latest` one operation in eight tests,
// so that who only tests gets on, too.
void LateDevice::run_some() {
  if (queues_.empty()) return;
  const std::uint64_t chance = lateness_ == Lateness::latest ? 8 : 3;
  while (random_.below(chance) == 0) {
    const auto stream = static_cast<std::size_t>(random_.below(queues_.size()));
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const std::size_t turn = (stream + i) % queues_.size();
      if (queues_[turn].waiting.empty()) continue;
      run_one(turn);
      break;
    }
    if (lateness_ == Lateness::latest) return;
  }
}

void LateDevice::observe(std::size_t stream, std::uint64_t point) {
  const auto record = queues_[stream].records.find(point);
  if (record != queues_[stream].records.end()) {
    join(host_, record->second);
    queues_[stream].records.erase(queues_[stream].records.begin(), record);
  }
  host_[stream] = std::max(host_[stream], point);
  std::erase_if(touched_, [&](const Touched& t) { return has_passed(host_, t.stream, t.point); });
}

void LateDevice::report(const std::string& later, const std::string& earlier,
                        const MemoryAccess& a) {
  hazards_.push_back(fmt::format("{} {} {} bytes and does not wait for {}", later,
                                 a.writes ? "writes" : "reads", a.bytes.size(), earlier));
}

void LateDevice::check_kernel(const Touched& touched, const Clock& before) {
  for (const MemoryAccess& access : touched.accesses) {
    for (const Touched& other : touched_) {
      if (has_passed(before, other.stream, other.point)) continue;
      for (const MemoryAccess& a : other.accesses) {
        if (meet(access, a)) report(touched.what, other.what, access);
      }
    }
    for (const auto& [number, message] : messages_) {
      if (meet(access, message.access)) report(touched.what, message.what, access);
    }
  }
}

void LateDevice::check_host(const MemoryAccess& access, const std::string& what) {
  for (const Touched& other : touched_) {
    for (const MemoryAccess& a : other.accesses) {
      if (meet(access, a)) report(what, other.what, access);
    }
  }
  for (const auto& [number, message] : messages_) {
    if (meet(access, message.access)) report(what, message.what, access);
  }
}

std::uint64_t LateDevice::open(std::span<const std::byte> bytes, bool writes,
                               const std::string& what) {
  const std::lock_guard lock(mutex_);
  const MemoryAccess access{bytes, MemoryKind::pinned, writes};
  check_host(access, what);
  messages_.emplace(next_message_, Message{access, what});
  return next_message_++;
}

void LateDevice::close(std::uint64_t message) {
  const std::lock_guard lock(mutex_);
  messages_.erase(message);
}

void LateDevice::touch(std::span<const std::byte> bytes, bool writes, const std::string& what) {
  const std::lock_guard lock(mutex_);
  check_host({bytes, MemoryKind::pinned, writes}, what);
}

LateTransport::~LateTransport() {
  for (const Posted& posted : posted_) {
    if (posted.message != 0) device_.close(posted.message);
  }
}

runtime::Transport::Request LateTransport::keep(const Posted& posted) {
  if (free_.empty()) {
    posted_.push_back(posted);
    return {static_cast<std::uint32_t>(posted_.size())};
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  posted_[slot - 1] = posted;
  return {slot};
}

// Registered before it is posted: the inner transport may copy at once.
runtime::Transport::Request LateTransport::post_send(int stream, int to,
                                                     std::span<const std::byte> message) {
  const std::uint64_t number = device_.open(message, false, fmt::format("a send to rank {}", to));
  return keep({inner_.post_send(stream, to, message), number});
}

runtime::Transport::Request LateTransport::post_receive(int stream, int from,
                                                        std::span<std::byte> room) {
  const std::uint64_t number =
      device_.open(room, true, fmt::format("a receive from rank {}", from));
  return keep({inner_.post_receive(stream, from, room), number});
}

bool LateTransport::test(Request request) {
  if (request.slot == 0) return true;
  Posted& posted = posted_[request.slot - 1];
  if (!inner_.test(posted.inner)) return false;
  device_.close(posted.message);
  posted = {};
  free_.push_back(request.slot);
  return true;
}

void LateTransport::wait_any(std::span<const Request> requests) {
  std::vector<Request> inner;
  for (const Request request : requests)
    inner.push_back(request.slot == 0 ? Request{} : posted_[request.slot - 1].inner);
  inner_.wait_any(inner);
}

}  // namespace paceline::test
