// A device for tests whose kernels complete late, and which finds every missing wait.
//
// A kernel that is started goes into the queue of its stream. It runs when a token behind it is
// waited for, or when the seeded scheduler says so while tokens are tested: as late as possible
// (Lateness::latest), at once (eager), or at random. So what does not wait gets wrong numbers.
//
// Lateness alone does not find every missing wait (a buffer that is written too early is still read
// in time by a kernel that runs early). So the device also keeps what happens before what, by vector
// clocks over its streams and the host, and compares the memory that kernels and messages touch:
// two accesses to one byte, one of them a write, with nothing that orders them, are a hazard, in
// every mode. A LateTransport tells it of messages.
//
// Memory is poisoned (every number is NaN) when it is allocated. The host cannot touch memory of
// kind device: its pages are closed except while a kernel runs.
//
// Thread safety: any thread may start kernels and test tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "models/base/random.h"
#include "runtime/device/device.h"
#include "runtime/transport/transport.h"

namespace paceline::test {

enum class Lateness { eager, latest, random };

class LateDevice final : public runtime::Device {
 public:
  LateDevice(Lateness lateness, std::uint64_t seed) : lateness_(lateness), random_(seed) {}
  ~LateDevice() override;

  [[nodiscard]] std::string_view name() const override { return "late"; }
  [[nodiscard]] runtime::MemoryKinds takes() const override {
    return {runtime::MemoryKind::pinned, runtime::MemoryKind::device};
  }
  [[nodiscard]] runtime::MemoryKind fastest() const override { return runtime::MemoryKind::device; }
  [[nodiscard]] runtime::Memory allocate(std::size_t bytes, runtime::MemoryKind kind) override;
  [[nodiscard]] std::unique_ptr<runtime::Stream> make_stream() override;

  // What touched memory without waiting for what touched it before, in words.
  [[nodiscard]] std::vector<std::string> hazards() const;
  // Kernels that ran.
  [[nodiscard]] int kernels() const;

  // The host, or the transport on its behalf, touches memory from now on: for as long as the
  // message is open (give its number to close), or for the moment (touch).
  [[nodiscard]] std::uint64_t open(std::span<const std::byte> bytes, bool writes,
                                   const std::string& what);
  void close(std::uint64_t message);
  void touch(std::span<const std::byte> bytes, bool writes, const std::string& what);

 private:
  class LateStream;
  // A vector clock: element s counts the operations of stream s that have happened before.
  using Clock = std::vector<std::uint64_t>;

  struct Operation {
    std::uint64_t point = 0;
    runtime::Kernel kernel;
    bool is_wait = false;
    std::size_t awaited_stream = 0;
    std::uint64_t awaited_point = 0;
  };
  // The memory that a kernel touches, kept until the host has seen the kernel done.
  struct Touched {
    std::size_t stream = 0;
    std::uint64_t point = 0;
    std::vector<runtime::MemoryAccess> accesses;
    std::string what;
  };
  struct Message {
    runtime::MemoryAccess access;
    std::string what;
  };
  struct Queue {
    std::deque<Operation> waiting;
    std::uint64_t started = 0;  // operations
    std::uint64_t done = 0;
    Clock clock;                             // what happens before its next operation
    std::map<std::uint64_t, Clock> records;  // the clock at each token
  };

  static void join(Clock& clock, const Clock& other);
  static bool has_passed(const Clock& clock, std::size_t stream, std::uint64_t point);
  void run_one(std::size_t stream);
  void run_until(std::size_t stream, std::uint64_t point);
  void run_some();
  // The host saw the token done.
  void observe(std::size_t stream, std::uint64_t point);
  void report(const std::string& later, const std::string& earlier, const runtime::MemoryAccess& a);
  void check_kernel(const Touched& touched, const Clock& before);
  void check_host(const runtime::MemoryAccess& access, const std::string& what);
  void open_device_memory(bool open);

  mutable std::mutex mutex_;
  Lateness lateness_;
  Random random_;
  std::vector<Queue> queues_;  // by the stream's number
  Clock host_;
  std::vector<Touched> touched_;
  std::map<std::uint64_t, Message> messages_;
  std::uint64_t next_message_ = 1;
  std::vector<std::string> hazards_;
  std::map<std::byte*, std::size_t> device_memory_;
  int kernels_ = 0;
};

// Passes everything on to another transport, and tells a device what memory messages touch, from
// their post until they are found to be done.
class LateTransport final : public runtime::Transport {
 public:
  LateTransport(runtime::Transport& inner, LateDevice& device) : inner_(inner), device_(device) {}
  ~LateTransport() override;

  [[nodiscard]] const runtime::TransportTraits& traits() const override { return inner_.traits(); }
  [[nodiscard]] Request post_send(int stream, int to, std::span<const std::byte> message) override;
  [[nodiscard]] Request post_receive(int stream, int from, std::span<std::byte> room) override;
  [[nodiscard]] bool test(Request request) override;
  void wait_any(std::span<const Request> requests) override;
  void abort() noexcept override { inner_.abort(); }

 private:
  struct Posted {
    Request inner;
    std::uint64_t message = 0;
  };
  Request keep(const Posted& posted);

  runtime::Transport& inner_;
  LateDevice& device_;
  std::vector<Posted> posted_;  // of request i + 1
  std::vector<std::uint32_t> free_;
};

}  // namespace paceline::test
