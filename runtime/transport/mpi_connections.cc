// Tests: tests/runtime/mpi_executor_test.cc.
#include "runtime/transport/mpi_connections.h"

#include <mpi.h>

#include <vector>

namespace paceline::runtime {
namespace {

// Messages of no bytes, from each rank to those that are a power of two above it, or below.
int greet(int direction) {
  int rank = 0;
  int ranks = 0;
  if (const int error = MPI_Comm_rank(MPI_COMM_WORLD, &rank); error != MPI_SUCCESS) return error;
  if (const int error = MPI_Comm_size(MPI_COMM_WORLD, &ranks); error != MPI_SUCCESS) return error;
  std::vector<MPI_Request> greetings;
  const auto is_rank = [&](int other) { return other >= 0 && other < ranks; };
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int from = rank - direction * distance;
    const int to = rank + direction * distance;
    if (is_rank(from)) {
      MPI_Irecv(nullptr, 0, MPI_BYTE, from, 0, MPI_COMM_WORLD, &greetings.emplace_back());
    }
    if (is_rank(to)) {
      MPI_Isend(nullptr, 0, MPI_BYTE, to, 0, MPI_COMM_WORLD, &greetings.emplace_back());
    }
  }
  return MPI_Waitall(static_cast<int>(greetings.size()), greetings.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

int open_connections() {
  const int error = greet(+1);
  return error != MPI_SUCCESS ? error : greet(-1);
}

}  // namespace paceline::runtime
