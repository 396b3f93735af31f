// Times our all-reduce by size, as timing.h says.
//
//   paceline-lab-all-reduce SCHEDULE MESSAGE_BYTES [smallest [largest [repetitions]]]
//
// SCHEDULE is an algorithm of the catalogue. With MESSAGE_BYTES 0 the executor chooses the size.
#include <fmt/format.h>
#include <mpi.h>

#include <exception>

#include "experiments/lab/peers/timing.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "runtime/collective/executor.h"
#include "runtime/transport/mpi_transport.h"

namespace paceline::lab {
namespace {

double slowest(double seconds) {
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

int run(int argc, char** argv) {
  const auto options = TimingOptions::from_arguments(argc - 2, argv + 2);
  const auto transport = runtime::mpi_transport();
  const Ranks ranks{transport->rank(), transport->ranks()};
  const auto schedule = models::all_reduce_algorithm(argv[1]).build({.ranks = ranks.ranks});
  runtime::Executor executor(*transport, {.message_bytes = to_size(std::atoll(argv[2]))});
  bool right = true;
  for (std::int64_t bytes = options.smallest_bytes; bytes <= options.largest_bytes; bytes *= 2) {
    const runtime::Collective collective =
        executor.prepare(schedule, bytes / 4, models::WireType::fp32);
    right = time_all_reduce(
                "paceline", ranks, bytes, options.repetitions, [] { MPI_Barrier(MPI_COMM_WORLD); },
                slowest,
                [&](std::vector<float>& bucket) { executor.run(collective, bucket.data()); }) &&
            right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace paceline::lab

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr,
               "usage: paceline-lab-all-reduce SCHEDULE MESSAGE_BYTES [smallest [largest "
               "[repetitions]]]\n");
    return 2;
  }
  try {
    return paceline::lab::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline-lab-all-reduce: {}\n", error.what());
    return 1;
  }
}
