// Does SimGrid itself load the platforms that we write, and is the time of a message on them what
// our engines say? One engine for each process, so one fabric for each child.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "models/cluster/simgrid_xml.h"
#include "simulator/engine/platform_of.h"

namespace {

namespace sg4 = simgrid::s4u;
using namespace paceline;

constexpr double bytes = 1e6;

simulator::CommunicationCost base(int g) {
  simulator::CommunicationCost cost;
  cost.ranks_per_node = g;
  cost.intra = {Seconds{3e-6}, SecondsPerByte{1e-11}};
  cost.nic = {Seconds{1.5e-6}, SecondsPerByte{8e-11}};
  cost.fabric.hop_latency = Seconds{2e-7};
  return cost;
}

std::vector<std::pair<std::string, simulator::CommunicationCost>> clusters() {
  std::vector<std::pair<std::string, simulator::CommunicationCost>> list;
  list.emplace_back("flat", base(4));
  simulator::CommunicationCost tree = base(2);
  tree.fabric.kind = models::FabricKind::fat_tree;
  tree.fabric.levels = {{2, 5.0}, {2, 2.0}};
  tree.placement = models::Placement::round_robin;
  list.emplace_back("fat tree", tree);
  simulator::CommunicationCost torus = base(1);
  torus.fabric.kind = models::FabricKind::torus;
  torus.fabric.shape = {4, 2, 2};
  torus.intra_kind = models::IntraKind::ring;
  list.emplace_back("torus", torus);
  simulator::CommunicationCost rail = base(4);
  rail.fabric.kind = models::FabricKind::rail;
  rail.fabric.oversubscription = 20;
  rail.nics_per_node = 2;
  rail.nic_use = models::NicUse::affinity;
  rail.intra_kind = models::IntraKind::all_to_all;
  list.emplace_back("rail", rail);
  return list;
}

// The time of every message, alone, in the order of senders and receivers.
std::vector<double> simulated(const std::string& file, int ranks) {
  int argc = 1;
  char name[] = "load_platform";
  char* argv[] = {name, nullptr};
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:1e30");
  engine.load_platform(file);
  std::vector<sg4::Host*> hosts;
  for (int rank = 0; rank < ranks; ++rank)
    hosts.push_back(engine.host_by_name("rank-" + std::to_string(rank)));
  std::vector<double> times;
  sg4::Actor::create("sender", hosts[0], [&] {
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from == to) continue;
        const double begin = sg4::Engine::get_clock();
        sg4::Comm::sendto(hosts[static_cast<std::size_t>(from)],
                          hosts[static_cast<std::size_t>(to)], static_cast<std::uint64_t>(bytes));
        times.push_back(sg4::Engine::get_clock() - begin);
      }
    }
  });
  engine.run();
  return times;
}

int check(const std::string& name, const simulator::CommunicationCost& cost) {
  constexpr int ranks = 16;
  const simulator::Routes routes(cost, ranks);
  const std::string file = "load_platform_test.xml";
  std::ofstream(file) << models::simgrid_xml(simulator::platform_of(routes, "cluster"));
  const std::vector<double> times = simulated(file, ranks);
  std::remove(file.c_str());
  std::size_t at = 0;
  std::vector<int> path;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      double expected = routes.path(from, to, path);
      double beta_s = 0;
      for (const int link : path) beta_s = std::max(beta_s, routes.beta_s(link));
      expected += bytes * beta_s;
      if (at >= times.size() || std::fabs(times[at] - expected) > 2e-9) {
        std::printf("%s: %d to %d takes %.12g s, not %.12g s\n", name.c_str(), from, to,
                    at < times.size() ? times[at] : -1.0, expected);
        return 1;
      }
      ++at;
    }
  }
  std::printf("%s: %zu messages as expected\n", name.c_str(), at);
  return 0;
}

}  // namespace

int main() {
  int failed = 0;
  for (const auto& [name, cost] : clusters()) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const int result = check(name, cost);
      std::fflush(stdout);
      std::_Exit(result);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      std::printf("%s: failed\n", name.c_str());
      ++failed;
    }
  }
  return failed;
}
