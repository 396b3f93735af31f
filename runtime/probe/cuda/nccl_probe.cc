// Tests: tests/cuda/calibration.
#include "runtime/probe/cuda/nccl_probe.h"

#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <vector>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/probe/cuda/timer.h"
#include "runtime/probe/cuda/traffic.h"

namespace paceline::runtime::cuda {
namespace {

using models::NumberType;

void check_nccl(ncclResult_t status, const std::string& operation) {
  if (status == ncclSuccess) return;
  const char* const last = ncclGetLastError(nullptr);
  const std::string detail =
      last == nullptr ? "" : std::string(last, 0, std::string(last).find('\n'));
  throw RunError(operation, detail.empty()
                                ? ncclGetErrorString(status)
                                : fmt::format("{} ({})", ncclGetErrorString(status), detail));
}

ncclDataType_t nccl_type(NumberType type) {
  return type == NumberType::fp32   ? ncclFloat32
         : type == NumberType::fp16 ? ncclFloat16
                                    : ncclBfloat16;
}

// Calls of NCCL for all ranks, which start as one. What throws on the way ends the group, too.
class Group {
 public:
  Group() { check_nccl(ncclGroupStart(), "begin a group of NCCL's calls"); }
  ~Group() {
    if (open_) static_cast<void>(ncclGroupEnd());
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  void end(const std::string& operation) {
    open_ = false;
    check_nccl(ncclGroupEnd(), operation);
  }

 private:
  bool open_ = true;
};

// One rank: its GPU, a stream and what is sent and received. It goes with its communicator, which is
// aborted where NCCL's work did not come to its end.
class Rank {
 public:
  explicit Rank(int index) : device_(index), stream_(device_.make_stream()) {}
  ~Rank() {
    if (comm != nullptr) static_cast<void>(broken ? ncclCommAbort(comm) : ncclCommDestroy(comm));
    stream_.reset();  // waits for what reads memory of this object
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] int index() const { return device_.index(); }
  [[nodiscard]] cudaStream_t handle() { return static_cast<CudaStream&>(*stream_).handle(); }
  void wait() { wait_for(stream_->record(), device_patience, "time NCCL"); }
  // Room for this many bytes to send and as many to receive.
  void reserve(std::size_t bytes) {
    if (sent.size() >= bytes) return;
    wait();
    sent = {};
    received = {};
    sent = device_.allocate(bytes, MemoryKind::device);
    received = device_.allocate(bytes, MemoryKind::device);
    for (const Memory* memory : {&sent, &received})
      stream_->start(Fill{memory->array(NumberType::fp32), 0});
  }

  Memory sent;
  Memory received;
  ncclComm_t comm = nullptr;
  bool broken = false;

 private:
  CudaDevice device_;
  std::unique_ptr<Stream> stream_;
};

// Ranks of one process, whose calls one thread makes.
class Ranks {
 public:
  explicit Ranks(int count) {
    std::vector<int> devices;
    for (int i = 0; i < count; ++i) {
      devices.push_back(i);
      ranks_.push_back(std::make_unique<Rank>(i));
    }
    std::vector<ncclComm_t> comms(devices.size());
    check_nccl(ncclCommInitAll(comms.data(), count, devices.data()),
               fmt::format("make NCCL communicators of {} GPUs", count));
    for (std::size_t i = 0; i < comms.size(); ++i) ranks_[i]->comm = comms[i];
  }

  // What is under way ends first. What cannot end is aborted.
  ~Ranks() {
    try {
      for (const auto& rank : ranks_)
        if (!rank->broken) rank->wait();
    } catch (const std::exception&) {  // who uses the device next is told
      abandon();
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] int count() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] Rank& at(int rank) { return *ranks_[to_size(rank)]; }
  void reserve(std::size_t bytes) {
    for (const auto& rank : ranks_) rank->reserve(std::max(bytes, sizeof(float)));
  }

  // `call` makes the calls of one rank.
  void start(const std::string& operation, const std::function<void(Rank&, int)>& call) {
    try {
      Group group;
      for (int i = 0; i < count(); ++i) call(at(i), i);
      group.end(operation);
    } catch (...) {
      abandon();
      throw;
    }
  }
  void all_reduce(NumberType type, std::size_t bytes) {
    const std::size_t elements = std::max<std::size_t>(1, bytes / bytes_of(type));
    start("all-reduce by NCCL", [&](Rank& rank, int) {
      check_nccl(ncclAllReduce(rank.sent.data(), rank.received.data(), elements, nccl_type(type),
                               ncclSum, rank.comm, rank.handle()),
                 "all-reduce by NCCL");
    });
  }
  // The device failed, or NCCL did: communicators can only be aborted.
  void abandon() noexcept {
    for (const auto& rank : ranks_) rank->broken = true;
  }

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

void send(Rank& rank, int to, std::size_t bytes) {
  check_nccl(ncclSend(rank.sent.data(), bytes, ncclUint8, to, rank.comm, rank.handle()),
             "send by NCCL");
}
void receive(Rank& rank, int from, std::size_t bytes) {
  check_nccl(ncclRecv(rank.received.data(), bytes, ncclUint8, from, rank.comm, rank.handle()),
             "receive by NCCL");
}

class NcclProbe final : public CollectiveProbe {
 public:
  explicit NcclProbe(int ranks) : current_(0), marks_(2), ranks_(ranks) {}

  [[nodiscard]] int ranks() const override { return ranks_.count(); }

  [[nodiscard]] double time_all_reduce(NumberType type, std::size_t bytes, int count) override {
    return time(bytes, count, [&] { ranks_.all_reduce(type, bytes); });
  }
  [[nodiscard]] double time_exchange(std::size_t bytes, int count) override {
    const int p = ranks_.count();
    return time(bytes, count, [&] {
      ranks_.start("exchange by NCCL", [&](Rank& rank, int i) {
        send(rank, (i + 1) % p, bytes);
        receive(rank, (i + p - 1) % p, bytes);
      });
    });
  }
  [[nodiscard]] double time_point_to_point(std::size_t bytes, int count) override {
    const auto one_way = [&](int from, int to) {
      ranks_.start("send by NCCL", [&](Rank& rank, int i) {
        if (i == from) send(rank, to, bytes);
        if (i == to) receive(rank, from, bytes);
      });
    };
    return time(bytes, count,
                [&] {
                  one_way(0, 1);
                  one_way(1, 0);
                }) /
           2;
  }

 private:
  template <class Work>
  double time(std::size_t bytes, int count, const Work& work) {
    try {
      ranks_.reserve(bytes);
      work();
      marks_.clear();
      marks_.put(ranks_.at(0).handle());
      for (int i = 0; i < count; ++i) work();
      marks_.put(ranks_.at(0).handle());
      marks_.wait("time NCCL");
      return marks_.seconds(0, 1) / count;
    } catch (...) {
      ranks_.abandon();
      throw;
    }
  }

  CurrentDevice current_;
  Marks marks_;
  Ranks ranks_;
};

class NcclTraffic final : public Traffic {
 public:
  NcclTraffic(int device, int ranks, std::size_t bytes)
      : device_(device), bytes_(bytes), ranks_(ranks) {
    ranks_.reserve(bytes);
  }
  [[nodiscard]] std::string description() const override {
    return fmt::format("NCCL's all-reduce of {} between {} GPUs",
                       to_text_binary(Bytes{static_cast<double>(bytes_)}), ranks_.count());
  }
  void start(int rounds) override {
    for (int i = 0; i < rounds; ++i) ranks_.all_reduce(NumberType::fp32, bytes_);
  }
  [[nodiscard]] cudaStream_t stream() override { return ranks_.at(device_).handle(); }

 private:
  int device_;
  std::size_t bytes_;
  Ranks ranks_;
};

}  // namespace

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ask for NCCL's version");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::unique_ptr<CollectiveProbe> make_nccl_probe(int ranks) {
  return std::make_unique<NcclProbe>(ranks);
}

std::unique_ptr<Traffic> make_nccl_traffic(int device, int ranks, std::size_t bucket_bytes) {
  if (ranks < 2 || device >= ranks) return nullptr;
  return std::make_unique<NcclTraffic>(device, ranks, bucket_bytes);
}

}  // namespace paceline::runtime::cuda
