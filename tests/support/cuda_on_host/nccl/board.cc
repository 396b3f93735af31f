#include "tests/support/cuda_on_host/nccl/board.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/support/cuda_on_host/nccl/communicators.h"

namespace cuda_on_host::nccl {
namespace {

namespace fs = std::filesystem;

struct Head {
  std::int32_t kind;
  std::int32_t type;
  std::int32_t op;
  std::int32_t peer;
  std::uint64_t count;
};

std::string name_of_rank(int rank) {
  return "rank-" + std::to_string(rank);
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// Whether the process that locked the file is gone.
bool is_free(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool free = ::flock(file, LOCK_SH | LOCK_NB) == 0;
  ::close(file);
  return free;
}

}  // namespace

std::optional<std::string> folder_of_boards() {
  const char* const folder = std::getenv("CUDA_ON_HOST_RANKS");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  return folder;
}

std::string name_of_transfer(bool sends, int from, int to, std::uint64_t number) {
  return (sends ? "send-" : "receive-") + std::to_string(from) + "-" + std::to_string(to) + "-" +
         std::to_string(number);
}

std::string name_of_collective(int rank, std::uint64_t number) {
  return "all-" + std::to_string(rank) + "-" + std::to_string(number);
}

std::string name_on_board(const Part& part) {
  if (part.kind == Kind::send)
    return name_of_transfer(true, part.comm->rank, part.peer, part.number);
  if (part.kind == Kind::receive)
    return name_of_transfer(false, part.peer, part.comm->rank, part.number);
  return name_of_collective(part.comm->rank, part.number);
}

Board::Board(const std::string& id, int rank, int ranks, int device)
    : folder_(*folder_of_boards() + "/" + id), rank_(rank), ranks_(ranks) {
  std::error_code error;
  fs::create_directories(folder_, error);
  // Under its own name only once it is locked.
  const std::string made = path("coming-" + std::to_string(::getpid()));
  lock_ = ::open(made.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) die("the folder of CUDA_ON_HOST_RANKS cannot be written: " + folder_);
  const std::string text = std::to_string(device) + "\n";
  if (::flock(lock_, LOCK_EX) != 0 ||
      ::write(lock_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    die("the folder of CUDA_ON_HOST_RANKS cannot be used: " + folder_);
  if (::link(made.c_str(), path(name_of_rank(rank)).c_str()) != 0)
    die("ncclCommInitRank: two processes say that they are rank " + std::to_string(rank));
  ::unlink(made.c_str());
}

Board::~Board() {
  write("left-" + std::to_string(rank_), nullptr, 0, nullptr, 0);
  ::close(lock_);
  int gone = 0;
  for (int rank = 0; rank < ranks_; ++rank)
    gone += exists(path("left-" + std::to_string(rank))) ? 1 : 0;
  std::error_code error;
  if (gone == ranks_) fs::remove_all(folder_, error);
}

std::vector<int> Board::devices() const {
  std::vector<int> devices(static_cast<std::size_t>(ranks_), -1);
  for (int rank = 0; rank < ranks_; ++rank)
    std::ifstream(path(name_of_rank(rank))) >> devices[static_cast<std::size_t>(rank)];
  return devices;
}

Board::Lost Board::lost() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    const std::string number = std::to_string(rank);
    if (exists(path("aborted-" + number))) return {rank, false};
    if (is_free(path(name_of_rank(rank))) && !exists(path("left-" + number))) return {rank, true};
  }
  return {};
}

void Board::abort() const {
  write("aborted-" + std::to_string(rank_), nullptr, 0, nullptr, 0);
}

void Board::write(const std::string& name, const void* head, std::size_t head_bytes,
                  const void* data, std::size_t bytes) const {
  const std::string made = path("writing-" + std::to_string(rank_));
  std::FILE* const file = std::fopen(made.c_str(), "wb");
  bool ok = file != nullptr;
  ok = ok && (head_bytes == 0 || std::fwrite(head, head_bytes, 1, file) == 1);
  ok = ok && (bytes == 0 || std::fwrite(data, bytes, 1, file) == 1);
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  // Where all others have left, the last of them may have removed the folder.
  if (ok) static_cast<void>(std::rename(made.c_str(), path(name).c_str()));
}

void Board::announce(const Part& part) const {
  write("issued-" + name_on_board(part), nullptr, 0, nullptr, 0);
}

void Board::leave(const Part& part) const {
  const Head head{static_cast<std::int32_t>(part.kind), part.type, part.op, part.peer, part.count};
  std::size_t bytes = part.in == nullptr ? 0 : part.count * bytes_of(part.type);
  if (part.kind == Kind::broadcast && part.peer != part.comm->rank) bytes = 0;
  if (part.kind == Kind::reduce_scatter) bytes *= static_cast<std::size_t>(ranks_);
  write(name_on_board(part), &head, sizeof head, part.in, bytes);
}

bool Board::is_announced(const std::string& name) const {
  return exists(path("issued-" + name));
}

PartPointer Board::find(const std::string& name, ncclComm* of) const {
  std::FILE* const file = std::fopen(path(name).c_str(), "rb");
  if (file == nullptr) return nullptr;
  Head head{};
  auto part = std::make_shared<Part>();
  if (std::fread(&head, sizeof head, 1, file) == 1) {
    part->kind = static_cast<Kind>(head.kind);
    part->type = static_cast<ncclDataType_t>(head.type);
    part->op = static_cast<ncclRedOp_t>(head.op);
    part->peer = head.peer;
    part->count = head.count;
    std::fseek(file, 0, SEEK_END);
    part->mail.resize(static_cast<std::size_t>(std::ftell(file)) - sizeof head);
    std::fseek(file, sizeof head, SEEK_SET);
    if (!part->mail.empty() && std::fread(part->mail.data(), part->mail.size(), 1, file) != 1)
      die("a part on the board cannot be read");
  }
  std::fclose(file);
  part->in = part->mail.data();
  part->comm = of;
  part->is_remote = part->active = true;
  return part;
}

void Board::take_away(const std::string& name) const {
  ::unlink(path(name).c_str());
  ::unlink(path("issued-" + name).c_str());
}

void Board::tell(const std::string& name, int rank, int first, int second) const {
  const int values[] = {first, second};
  write(name + "-" + std::to_string(rank), values, sizeof values, nullptr, 0);
}

std::optional<std::pair<int, int>> Board::told(const std::string& name, int rank) const {
  std::FILE* const file = std::fopen(path(name + "-" + std::to_string(rank)).c_str(), "rb");
  if (file == nullptr) return std::nullopt;
  int values[2] = {};
  const bool ok = std::fread(values, sizeof values, 1, file) == 1;
  std::fclose(file);
  return ok ? std::optional(std::pair(values[0], values[1])) : std::nullopt;
}

void keep_going() {
  static bool runs = false;  // with the lock
  if (runs) return;
  runs = true;
  await_processes(true);
  std::thread([] {
    for (;;) {
      {
        const ApiCall call("cuda_on_host_nccl_keep_going");
        std::vector<Operation*> wanted;
        bool any = false;
        for (const ncclComm* comm : cliques().live) {
          any = any || comm->clique->board != nullptr;
          if (comm->clique->board == nullptr) continue;
          for (const auto& weak : comm->operations)
            if (const OperationPointer operation = weak.lock()) wanted.push_back(operation.get());
        }
        if (!any) {
          runs = false;
          await_processes(false);
          return;
        }
        try {
          while (run_one(wanted)) {
          }
        } catch (const std::logic_error&) {  // a misuse, which was printed
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  }).detach();
}

}  // namespace cuda_on_host::nccl
