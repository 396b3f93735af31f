// Ranks that are processes: they meet on a board, a folder in which each leaves what the others need.
//
// A part is put on the board, with its input, by an operation of its stream; behind that an operation
// waits for those that it matches, and computes from what they left. Which rank is there shows by a
// file that it keeps locked: the lock of a process that dies is free. A thread of each process lets its
// operations go on while the program is busy elsewhere.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/nccl/parts.h"

namespace cuda_on_host::nccl {

// The folder that CUDA_ON_HOST_RANKS names, in which each communicator has a board; nothing where ranks
// are threads.
[[nodiscard]] std::optional<std::string> folder_of_boards();

class Board {
 public:
  // The own rank comes. Ends the program if another process is this rank.
  Board(const std::string& id, int rank, int ranks, int device);
  // The own rank leaves. The last one removes the folder.
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // The device of each rank that has come, or -1.
  [[nodiscard]] std::vector<int> devices() const;
  // A rank that has died or aborted, if there is one.
  struct Lost {
    int rank = -1;
    bool died = false;
  };
  [[nodiscard]] Lost lost() const;
  void abort() const;

  // Says that a part was issued; leaves it there; finds what another rank left, with its input in
  // `mail`; takes a part away that nobody asks for any more.
  void announce(const Part& part) const;
  void leave(const Part& part) const;
  [[nodiscard]] bool is_announced(const std::string& name) const;
  [[nodiscard]] PartPointer find(const std::string& name, ncclComm* of) const;
  void take_away(const std::string& name) const;

  // Values of all ranks in a call that all make; complete when all have come.
  void tell(const std::string& name, int rank, int first, int second) const;
  [[nodiscard]] std::optional<std::pair<int, int>> told(const std::string& name, int rank) const;

 private:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const void* head, std::size_t head_bytes, const void* data,
             std::size_t bytes) const;

  std::string folder_;
  int rank_;
  int ranks_;
  int lock_ = -1;
};

// "send-0-1-5", "receive-0-1-5", "all-2-7": parts that match have the same name except for the first word,
// or the rank.
[[nodiscard]] std::string name_of_transfer(bool sends, int from, int to, std::uint64_t number);
[[nodiscard]] std::string name_of_collective(int rank, std::uint64_t number);
[[nodiscard]] std::string name_on_board(const Part& part);

// Lets the operations of all communicators with boards go on, from a thread, for as long as there are
// any.
void keep_going();

}  // namespace cuda_on_host::nccl
