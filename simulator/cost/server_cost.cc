// Tests: tests/simulator/server_cost_test.cc.
#include "simulator/cost/server_cost.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/base/error.h"
#include "simulator/cost/prior.h"

namespace paceline::simulator {
namespace {

using models::ServerTransport;
using models::System;

constexpr Prior tensorflow_adds{15e9, 5e9, 26e9};
constexpr Prior others_add{12.5e9, 6e9, 20e9};
constexpr Prior grpc_receives{0.55e9, 0.1e9, 0.9e9};
constexpr Prior grpc_sends{2.6e9, 1.5e9, 3e9};
constexpr Prior grpc_gdr_receives{3.4e9, 2.5e9, 10e9};
constexpr Prior zmq_process{2.25e9, 1e9, 4e9};
constexpr Prior rdma_process{8.1e9, 6.25e9, 11.25e9};
constexpr Prior pinned_copy{11e9, 10e9, 12.3e9};

// Lanes, and from first_of_server on three for each server.
enum Lane {
  node,
  to_host,
  host_sum,
  worker_out,
  worker_in,
  to_device,
  back_in_node,
  first_of_server
};
enum OfServer { in, add, out, lanes_of_server };

bool is_tensorflow(System system) {
  return system == System::tf_parameter_server || system == System::tf_distributed_replicated;
}

bool sums_on_host(System system) {
  return system == System::tf_parameter_server || system == System::kvstore || system == System::p3;
}

// Seconds per byte of a rank's part in a ring among this many ranks of a node.
SecondsPerByte ring_beta(const CommunicationCost& cost, int ranks) {
  SecondsPerByte most = cost.intra.beta;
  if (!cost.host) return most;
  const HostCost& host = *cost.host;
  const int of_socket = (cost.ranks_per_node - 1) / std::max(1, host.sockets) + 1;
  const int of_switch = (cost.ranks_per_node - 1) / std::max(1, host.switches) + 1;
  if (ranks > of_socket) most = std::max(most, host.crossing);
  if (host.staged) most = std::max(most, ranks * host.memory);
  if (host.staged || ranks > of_switch)
    most = std::max(most, (host.staged ? std::min(ranks, of_switch) : 1) * host.uplink);
  return most;
}

class Phases {
 public:
  Phases(const ServedBucket& bucket, const CommunicationCost& cost, Bound bound)
      : bucket_(bucket), cost_(cost), bound_(bound) {
    in_node_ = std::min(bucket.ranks, cost.ranks_per_node);
    machines_ = (bucket.ranks - 1) / cost.ranks_per_node + 1;
  }

  ServedPhases all() {
    const bool is_over_network = machines_ > 1 || bucket_.use.own_machines;
    const bool is_byteps = bucket_.system == System::byteps;
    const bool sums_on_devices = !sums_on_host(bucket_.system);
    if (is_byteps && machines_ == 1) {
      // One all-reduce among the devices, with the ports to itself.
      by_kernels({{node, 2 * reduce_in_node(1)}});
      return std::move(phases_);
    }
    // Copies go the ports' way, except for ports on NVLink.
    const Seconds beside = cost_.by_nvlink ? Seconds{0} : copy(in_node_);
    if (is_byteps) {
      by_kernels({{node, reduce_in_node(2) + beside}});
    } else if (sums_on_devices) {
      phase({{node, reduce_in_node(1)}});
    }
    phase({{to_host, copy(sums_on_devices ? in_node_ : 1)}});
    if (!sums_on_devices && in_node_ > 1)
      phase({{host_sum, in_node_ * bucket_.bytes / add_rate()}});
    if (is_over_network) over_network();
    const bool waits = bucket_.system == System::tf_parameter_server && !is_over_network;
    phase({{to_device, copy(is_byteps ? in_node_ : 1)}}, waits);
    if (is_byteps) by_kernels({{back_in_node, reduce_in_node(2) + beside}});
    return std::move(phases_);
  }

 private:
  void phase(std::vector<Occupied> lanes, bool after_all = false) {
    phases_.push_back({std::move(lanes), after_all});
  }

  void by_kernels(std::vector<Occupied> lanes) {
    phase(std::move(lanes));
    phases_.back().runs_as_kernels = true;
  }

  // The ranks of a node reduce a bucket and each keeps its part; or, backwards, they gather it. So
  // many buckets share the ports.
  [[nodiscard]] Seconds reduce_in_node(int at_once) const {
    return (in_node_ - 1) *
           (cost_.intra.alpha + at_once * bucket_.bytes / in_node_ * ring_beta(cost_, in_node_));
  }

  [[nodiscard]] Seconds copy(int shared_by) const {
    const BytesPerSecond rate = bucket_.host_link.value_or(at(pinned_copy, true));
    return bucket_.bytes / static_cast<double>(shared_by) / rate;
  }

  [[nodiscard]] BytesPerSecond add_rate() const {
    return at(is_tensorflow(bucket_.system) ? tensorflow_adds : others_add, true);
  }

  void over_network() {
    const bool waits_for_all = bucket_.system == System::tf_parameter_server;
    const models::ServerUse& use = bucket_.use;
    const BytesPerSecond nic = static_cast<double>(cost_.nics_per_node) / cost_.nic.beta;
    const double share = use.server < 0 ? 1.0 / use.servers : 1.0;
    const int senders = use.own_machines ? machines_ : machines_ - 1;
    const int beside = use.own_machines || waits_for_all ? 0 : use.servers - 1;
    const Bytes at_server = share * bucket_.bytes;
    // A worker with a server keeps that share off the wire; where some have none, those are the
    // busiest.
    const bool all_serve = !use.own_machines && use.servers >= machines_ && use.server < 0;
    const Bytes of_worker = (all_serve ? 1 - share : 1.0) * bucket_.bytes;

    const Seconds wire = cost_.nic.alpha + of_worker / nic;
    const Seconds server_wire = (senders + beside) * at_server / nic;
    const Bytes through_server = machines_ * at_server;
    const Seconds added = through_server / add_rate();
    // Servers with equal shares do the same at the same time: the first stands for all, unless other
    // buckets of the system are on single servers.
    const bool all_are_alike = use.server < 0 && bucket_.system == System::byteps;
    const int first = std::max(0, use.server);
    const int last = use.server >= 0 || all_are_alike ? first : use.servers - 1;

    std::vector<Occupied> push = {
        {worker_out, std::max(wire, cost_.nic.alpha + sending(bucket_.bytes))}};
    std::vector<Occupied> adds;
    std::vector<Occupied> pull = {
        {worker_in, std::max(wire, cost_.nic.alpha + receiving(bucket_.bytes))}};
    for (int s = first; s <= last; ++s) {
      const auto lane = [s](OfServer which) {
        return first_of_server + s * lanes_of_server + which;
      };
      push.push_back({lane(in), std::max(server_wire, receiving(through_server))});
      adds.push_back({lane(add), added});
      pull.push_back({lane(out), std::max(server_wire, sending(through_server))});
    }
    phase(std::move(push));
    phase(std::move(adds));
    phase(std::move(pull), waits_for_all);
    phases_.back().in_no_order = waits_for_all;
    phases_.back().is_requested =
        bucket_.system == System::byteps || bucket_.system == System::kvstore;
  }

  // The time that one process takes to receive the bytes.
  [[nodiscard]] Seconds receiving(Bytes bytes) const {
    switch (bucket_.use.transport) {
      case ServerTransport::grpc:
        return bytes / at(grpc_receives, true);
      case ServerTransport::tcp:
        return bytes / at(zmq_process, true);
      case ServerTransport::rdma:
        break;
    }
    return bytes / at(is_tensorflow(bucket_.system) ? grpc_gdr_receives : rdma_process, true);
  }

  [[nodiscard]] Seconds sending(Bytes bytes) const {
    return bucket_.use.transport == ServerTransport::grpc ? bytes / at(grpc_sends, true)
                                                          : receiving(bytes);
  }

  [[nodiscard]] BytesPerSecond at(const Prior& prior, bool faster_if_larger) const {
    return BytesPerSecond{read_prior(prior, bound_, faster_if_larger)};
  }

  const ServedBucket& bucket_;
  const CommunicationCost& cost_;
  Bound bound_;
  int in_node_;
  int machines_;
  ServedPhases phases_;
};

Seconds longest(const ServedPhase& phase) {
  Seconds most;
  for (const Occupied& occupied : phase.lanes) most = std::max(most, occupied.time);
  return most;
}

}  // namespace

ServedPhases served_phases(const ServedBucket& bucket, const CommunicationCost& cost, Bound bound) {
  return Phases(bucket, cost, bound).all();
}

Seconds time_alone(const ServedPhases& phases) {
  Seconds sum;
  for (const ServedPhase& phase : phases) sum += longest(phase);
  return sum;
}

Seconds longest_on_a_lane(const ServedPhases& phases) {
  Seconds most;
  for (const ServedPhase& phase : phases) most = std::max(most, longest(phase));
  return most;
}

Seconds longest_on_lanes_in_turn(const ServedPhases& phases) {
  Seconds sum;
  Seconds most;
  for (const ServedPhase& phase : phases) {
    if (phase.after_all || phase.is_requested) sum += std::exchange(most, Seconds{0});
    most = std::max(most, longest(phase));
  }
  return sum + most;
}

std::optional<std::size_t> push_before_request(const ServedPhases& phases) {
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (!phases[i].is_requested) continue;
    for (std::size_t push = i; push-- > 0;) {
      if (phases[push].lanes.front().lane == worker_out) return push;
    }
  }
  return std::nullopt;
}

std::vector<std::size_t> last_push_before_request(std::span<const Seconds> ready,
                                                  std::span<const ServedPhases* const> phases) {
  PACELINE_ASSERT(ready.size() == phases.size(), "every bucket has its phases");
  std::map<int, Seconds> free;  // by lane
  std::vector<Seconds> queued;  // when each push waits for its lane, at the latest
  std::vector<Seconds> acknowledged;
  for (std::size_t b = 0; b < phases.size(); ++b) {
    Seconds now = ready[b];
    const std::size_t push = push_before_request(*phases[b]).value_or(0);
    for (std::size_t i = 0; i <= push; ++i) {
      if (i == push) queued.push_back(now);
      Seconds done;
      for (const Occupied& occupied : (*phases[b])[i].lanes) {
        Seconds& lane = free[occupied.lane];
        lane = std::max(lane, now) + occupied.time;
        done = std::max(done, lane);
      }
      now = done;
    }
    acknowledged.push_back(now);
  }
  std::vector<std::size_t> last(phases.size());
  for (std::size_t b = 0, behind = 0; b < phases.size(); ++b) {
    behind = std::max(behind, b);
    while (behind + 1 < phases.size() && queued[behind + 1] <= acknowledged[b]) ++behind;
    last[b] = behind;
  }
  return last;
}

}  // namespace paceline::simulator
