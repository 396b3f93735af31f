// Tests: tests/cli/rendezvous_test.py (end to end), tests/runtime/tcp_transport_test.cc.
#include "runtime/channel/tcp_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/channel/messages.h"
#include "runtime/transport/tcp_transport.h"

namespace paceline::runtime {
namespace {

// A name that no other machine has, and no other container.
std::string machine() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {}", host.data(), boot);
}

}  // namespace

TcpJob::TcpJob(const Rendezvous& rendezvous, const JobIdentity& job, int rank, int ranks,
               Seconds patience)
    : meeting_(rendezvous, job, rank, ranks, patience),
      channel_(meeting_.first(), rank, patience),
      patience_(patience) {}

PlaceOnNode TcpJob::place_on_node() {
  // Rank 0 numbers the machines, and says which each rank is on.
  const std::vector<std::string> machines = gather_texts(channel_, machine());
  std::vector<std::int32_t> node_of(to_size(channel_.ranks()), 0);
  for (std::size_t i = 0; i < machines.size(); ++i)
    node_of[i] =
        static_cast<std::int32_t>(std::ranges::find(machines, machines[i]) - machines.begin());
  broadcast(channel_, std::as_writable_bytes(std::span(node_of)));
  const auto own = node_of.begin() + channel_.rank();
  return {.rank = static_cast<int>(std::count(node_of.begin(), own, *own)),
          .ranks = static_cast<int>(std::ranges::count(node_of, *own))};
}

void TcpJob::open_streams(int streams) {
  std::array<std::int32_t, 1> of_rank_0{streams};
  broadcast(channel_, std::as_writable_bytes(std::span(of_rank_0)));
  std::array<double, 1> others{of_rank_0[0] == streams ? 0.0 : 1.0};
  sum_over_ranks(channel_, others);
  if (others[0] > 0)
    throw InputError("ranks with different plans", "start all ranks with the same options");
  data_ = tcp_transport(meeting_.more(streams), channel_.rank(), channel_.ranks(), patience_);
  meeting_.close();
}

}  // namespace paceline::runtime
