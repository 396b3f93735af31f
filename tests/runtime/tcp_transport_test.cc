// The transport by TCP, its ranks as threads of this process.
#include "runtime/transport/tcp_transport.h"

#include <gtest/gtest.h>

#include "runtime/channel/tcp_job.h"
#include "tests/support/free_port.h"
#include "tests/support/transport_contract.h"

namespace paceline::test {
namespace {

using runtime::JobIdentity;
using runtime::Rendezvous;
using runtime::TcpJob;

const JobIdentity identity{.description = "model: of the test\n"};

TransportJob job_of(int size) {
  return {.name = "tcp",
          .ranks = size,
          .run = [](int ranks, int streams, Seconds patience, const TransportJob::Work& work) {
            const Rendezvous place{"127.0.0.1", free_port()};
            on_ranks(ranks, [&](int rank) {
              TcpJob job(place, identity, rank, ranks, patience);
              EXPECT_EQ(job.place_on_node().rank, rank);
              EXPECT_EQ(job.place_on_node().ranks, ranks);
              job.open_streams(streams);
              work(job.endpoint());
            });
          }};
}

INSTANTIATE_TEST_SUITE_P(OfTcp, TransportContract,
                         testing::Values(job_of(1), job_of(2), job_of(3), job_of(4)));
INSTANTIATE_TEST_SUITE_P(OfTcp, TransportLossContract, testing::Values(job_of(3)));

TEST(TcpTransport, RefusesAPatienceOfNothing) {
  EXPECT_EQ(error_of([] { return runtime::tcp_transport({}, 0, 1, Seconds{0}); }),
            "a patience of 0 s; give more than 0 s");
}

TEST(TcpJob, RefusesRanksWithDifferentPlans) {
  const Rendezvous place{"127.0.0.1", free_port()};
  on_ranks(2, [&](int rank) {
    TcpJob job(place, identity, rank, 2, Seconds{60});
    EXPECT_EQ(error_of([&] { job.open_streams(1 + rank); }),
              "ranks with different plans; start all ranks with the same options");
  });
}

}  // namespace
}  // namespace paceline::test
