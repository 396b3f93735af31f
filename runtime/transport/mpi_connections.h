// The first TCP connections of an MPI job, each opened from one side.
#pragma once

namespace paceline::runtime {

// Connects ranks of MPI_COMM_WORLD that are a power of two apart; the lower one opens the
// connection. Collective, two latencies, and at most 2 log2(n) connections of a rank: those of
// rings and hypercubes. Every rank has one to another host if hosts have as many ranks each.
// Returns an MPI error code.
//
// Where two ranks send to each other first, both open a connection, and Open MPI 4.1 closes one:
// mca_btl_tcp_endpoint_close takes from its count of sockets to be polled one that had not been
// added yet. A rank whose count is 0 polls its sockets once in 10 ms. Of 60 jobs of 2 hosts 6 were
// such: each exchange took 5.3 ms instead of 0.3 (November 2026, Open MPI 4.1.4).
[[nodiscard]] int open_connections();

}  // namespace paceline::runtime
