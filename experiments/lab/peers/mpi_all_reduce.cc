// Times MPI_Allreduce by size, as timing.h says. Open MPI's algorithm is chosen by its settings.
#include <mpi.h>

#include "experiments/lab/peers/timing.h"

int main(int argc, char** argv) {
  using namespace paceline::lab;
  MPI_Init(&argc, &argv);
  const auto options = TimingOptions::from_arguments(argc, argv);
  Ranks ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.ranks);
  const auto slowest = [](double seconds) {
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
  };
  bool right = true;
  for (std::int64_t bytes = options.smallest_bytes; bytes <= options.largest_bytes; bytes *= 2) {
    right = time_all_reduce(
                "open-mpi", ranks, bytes, options.repetitions, [] { MPI_Barrier(MPI_COMM_WORLD); },
                slowest,
                [](std::vector<float>& bucket) {
                  MPI_Allreduce(MPI_IN_PLACE, bucket.data(), static_cast<int>(bucket.size()),
                                MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                }) &&
            right;
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
