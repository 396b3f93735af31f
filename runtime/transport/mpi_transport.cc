// Tests: tests/runtime/mpi_executor_test.cc.
//
// IMPLEMENTATION. Each stream has a communicator of its own, so that messages of different streams
// do not meet in one matching queue. Small messages are done when MPI_Isend returns; Open MPI then
// hands out one and the same request, which is recognised, and costs no slot and no test.
#include "runtime/transport/mpi_transport.h"

#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/device/polling.h"
#include "runtime/transport/mpi_connections.h"
#include "runtime/transport/patience.h"

namespace paceline::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// A test of a message takes about 0.1 us, and a switch of threads a few.
constexpr int spins_alone = 2000;
constexpr int spins_shared = 10;
// Within a node a message above 4 KiB costs a rendezvous of 1.4 us: an all-reduce of 1 MiB takes 10
// to 14 % longer in messages of 128 KiB than in messages of 512 KiB (2 ranks, November 2026). The
// size is below TCP's eager limit as we set it.
constexpr std::int64_t message_within_node = std::int64_t{1} << 19;
// Between nodes parts are cut further, so that latencies hide behind transfers: a ring of 4 hosts at
// 250 Mbit/s and 1 ms takes 15 % less time for 1 MiB with messages of 64 KiB than with 256 KiB. Two
// messages of 256 KiB may run ahead: 16 MiB at 100 Mbit/s take 2 % longer with messages of 512 KiB,
// and 4 % longer where nothing limits how far sends run ahead.
constexpr models::MessageSizes between_nodes{
    .smallest_bytes = 1 << 14, .largest_bytes = 1 << 18, .ahead_bytes = 1 << 19};
constexpr models::MessageSizes within_node{.smallest_bytes = message_within_node,
                                           .largest_bytes = message_within_node};

struct Setting {
  const char* name;
  const char* value;
};
constexpr std::array settings = {
    // Our messages are to be sent at once. TCP's rendezvous is half duplex in part, and 1.4 to 2
    // times slower for large messages between 4 hosts (November 2026, 250 Mbit/s).
    Setting{"OMPI_MCA_btl_tcp_eager_limit", "1048576"},
    Setting{"OMPI_MCA_btl_tcp_rndv_eager_limit", "1048576"},
    Setting{"OMPI_MCA_btl_tcp_max_send_size", "1048576"},
};

std::string text_of(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return std::string(text.data(), to_size(length));
}

void check(int error, const char* operation) {
  if (error != MPI_SUCCESS) throw RunError(operation, text_of(error));
}

// Initialises MPI, unless it is already. Returns whether this call did it.
bool initialise() {
  int initialised = 0;
  check(MPI_Initialized(&initialised), "ask for the state of MPI");
  if (initialised != 0) return false;
  for (const Setting& setting : settings) setenv(setting.name, setting.value, 0);
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "initialise MPI");
  if (provided < MPI_THREAD_SERIALIZED)
    throw RunError("initialise MPI", "it cannot be called from a thread other than the first");
  return true;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(int streams, Seconds patience)
      : exceptions_(std::uncaught_exceptions()),
        finalizes_(initialise()),
        traits_{.name = "open-mpi",
                .rank = rank_in(MPI_COMM_WORLD),
                .ranks = size_of(MPI_COMM_WORLD),
                .streams = streams,
                .message_sizes = within_node},
        patience_(patience, traits_.ranks) {
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "set up MPI");
    check(open_connections(), "connect to other ranks");
    MPI_Comm node = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
          "find the ranks of a node");
    const int neighbours = size_of(node);
    const bool alone =
        neighbours <= static_cast<int>(std::thread::hardware_concurrency()) && !asked_to_yield();
    spins_ = alone ? spins_alone : spins_shared;
    if (neighbours < traits_.ranks) traits_.message_sizes = between_nodes;
    MPI_Comm_free(&node);
    // Making a stream waits for all ranks, without patience.
    int most[2] = {streams, -streams};
    check(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD),
          "compare streams");
    if (most[0] != -most[1]) {
      throw InputError(fmt::format("ranks with {} to {} streams", -most[1], most[0]),
                       "start all ranks with the same options");
    }
    for (int stream = 0; stream < streams; ++stream) {
      communicators_.push_back(MPI_COMM_NULL);
      check(MPI_Comm_dup(MPI_COMM_WORLD, &communicators_.back()), "set up a stream");
      check(MPI_Comm_set_errhandler(communicators_.back(), MPI_ERRORS_RETURN), "set up a stream");
    }
    check(MPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &done_at_once_),
          "send nothing");
    slots_.emplace_back();  // slot 0 is no message
  }

  ~MpiTransport() override {
    if (left_ || std::uncaught_exceptions() > exceptions_) return;
    MPI_Wait(&done_at_once_, MPI_STATUS_IGNORE);
    for (auto& [ranks, communicator] : of_first_) MPI_Comm_free(&communicator);
    for (MPI_Comm& communicator : communicators_) MPI_Comm_free(&communicator);
    if (finalizes_) MPI_Finalize();
  }

  [[nodiscard]] const TransportTraits& traits() const override { return traits_; }

  [[nodiscard]] Request post_send(int stream, int to, std::span<const std::byte> message) override {
    MPI_Request request = MPI_REQUEST_NULL;
    checked(MPI_Isend(message.data(), count_of(message.size()), MPI_BYTE, to, 0,
                      communicators_[to_size(stream)], &request),
            to, true);
    if (request == done_at_once_) return {};
    return kept(request, to, true, message.size());
  }

  [[nodiscard]] Request post_receive(int stream, int from, std::span<std::byte> room) override {
    MPI_Request request = MPI_REQUEST_NULL;
    checked(MPI_Irecv(room.data(), count_of(room.size()), MPI_BYTE, from, 0,
                      communicators_[to_size(stream)], &request),
            from, false);
    return kept(request, from, false, room.size());
  }

  [[nodiscard]] bool test(Request request) override {
    if (request.slot == 0) return true;
    Slot& slot = slots_[request.slot];
    if (!is_done(slot)) {
      missed(slot);
      return false;
    }
    slot.next = first_free_;
    first_free_ = request.slot;
    return true;
  }

  void wait_any(std::span<const Request> requests) override {
    for (int spin = 0; spin < spins_; ++spin) {
      if (any_done(requests)) return;
    }
    const auto start = Clock::now();
    while (!any_done(requests)) pause_between_looks(Clock::now() - start);
  }

  [[nodiscard]] bool has_all_reduce() const override { return true; }
  void all_reduce(std::span<float> bucket, int ranks) override {
    check(MPI_Allreduce(MPI_IN_PLACE, bucket.data(), count_of(bucket.size()), MPI_FLOAT, MPI_SUM,
                        communicator_of_first(ranks)),
          "MPI_Allreduce");
  }

  void abort() noexcept override { left_ = true; }

 private:
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = 0;
    bool sends = false;
    bool done = false;
    int bytes = 0;
    std::uint32_t next = 0;  // free slot
    Patience::Mark mark = {};
  };

  // Whether the user set Open MPI's option for ranks that share cores, by the environment or by
  // mpirun --mca.
  static bool asked_to_yield() {
    const char* value = std::getenv("OMPI_MCA_mpi_yield_when_idle");
    return value != nullptr && std::string_view(value) != "0";
  }
  // Returns the communicator of ranks 0 .. ranks - 1. These ranks, and no others, make it together
  // when they first ask for it.
  MPI_Comm communicator_of_first(int ranks) {
    PACELINE_ASSERT(ranks <= traits_.ranks && traits_.rank < ranks, "only these ranks call it");
    if (ranks == traits_.ranks) return communicators_.front();
    const auto [place, is_new] = of_first_.try_emplace(ranks, MPI_COMM_NULL);
    if (is_new) {
      MPI_Group all = MPI_GROUP_NULL;
      MPI_Group some = MPI_GROUP_NULL;
      int range[1][3] = {{0, ranks - 1, 1}};
      check(MPI_Comm_group(MPI_COMM_WORLD, &all), "find the ranks");
      check(MPI_Group_range_incl(all, 1, range, &some), "choose some of the ranks");
      check(MPI_Comm_create_group(MPI_COMM_WORLD, some, ranks, &place->second),
            "set up some of the ranks");
      check(MPI_Comm_set_errhandler(place->second, MPI_ERRORS_RETURN), "set up some of the ranks");
      MPI_Group_free(&some);
      MPI_Group_free(&all);
    }
    return place->second;
  }

  static int rank_in(MPI_Comm communicator) {
    int rank = 0;
    check(MPI_Comm_rank(communicator, &rank), "set up MPI");
    return rank;
  }
  static int size_of(MPI_Comm communicator) {
    int size = 0;
    check(MPI_Comm_size(communicator, &size), "set up MPI");
    return size;
  }
  static int count_of(std::size_t bytes) {
    PACELINE_ASSERT(bytes <= INT_MAX, "MPI counts the bytes of a message in an int");
    return static_cast<int>(bytes);
  }

  void checked(int error, int peer, bool sends) {
    if (error == MPI_SUCCESS) return;
    left_ = true;
    throw_lost(peer, sends, text_of(error));
  }

  void missed(Slot& slot) {
    try {
      patience_.missed(slot.peer, slot.sends, slot.mark);
    } catch (...) {
      left_ = true;
      throw;
    }
  }

  [[nodiscard]] Request kept(MPI_Request request, int peer, bool sends, std::size_t bytes) {
    if (first_free_ == 0) {
      slots_.emplace_back();
      first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const Request made{first_free_};
    Slot& slot = slots_[made.slot];
    first_free_ = slot.next;
    slot = {.request = request, .peer = peer, .sends = sends, .bytes = static_cast<int>(bytes)};
    return made;
  }

  [[nodiscard]] bool is_done(Slot& slot) {
    if (slot.done) return true;
    int done = 0;
    MPI_Status status;
    checked(MPI_Test(&slot.request, &done, &status), slot.peer, slot.sends);
    if (done == 0) return false;
    if (!slot.sends) {
      int came = 0;
      MPI_Get_count(&status, MPI_BYTE, &came);
      if (came != slot.bytes) {
        left_ = true;
        throw_lost(slot.peer, false,
                   fmt::format("{} bytes were sent where {} are received", came, slot.bytes));
      }
    }
    slot.done = true;
    patience_.heard(slot.peer);
    return true;
  }

  [[nodiscard]] bool any_done(std::span<const Request> requests) {
    for (const Request request : requests) {
      if (request.slot == 0 || is_done(slots_[request.slot])) return true;
      missed(slots_[request.slot]);
    }
    return false;
  }

  int exceptions_;
  bool finalizes_;
  bool left_ = false;
  TransportTraits traits_;
  int spins_ = spins_shared;
  Patience patience_;
  std::vector<MPI_Comm> communicators_;  // one for each stream
  std::map<int, MPI_Comm> of_first_;     // of the first this many ranks
  MPI_Request done_at_once_ = MPI_REQUEST_NULL;
  std::vector<Slot> slots_;
  std::uint32_t first_free_ = 0;
};

}  // namespace

std::unique_ptr<Transport> mpi_transport(int streams, Seconds patience) {
  if (streams < 1) throw InputError(fmt::format("{} streams", streams), "give at least one");
  if (!(patience.value() > 0))
    throw InputError(fmt::format("a patience of {} s", patience.value()), "give more than 0 s");
  return std::make_unique<MpiTransport>(streams, patience);
}

}  // namespace paceline::runtime
