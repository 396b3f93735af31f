// Tests: tests/simulator/server_cost_test.cc.
#include "simulator/cost/server_cost.h"

#include <algorithm>

#include "simulator/cost/prior.h"

namespace paceline::simulator {
namespace {

using models::ServerTransport;
using models::System;

constexpr Prior tensorflow_adds{15e9, 5e9, 26e9};
constexpr Prior others_add{12.5e9, 6e9, 20e9};
constexpr Prior grpc_channel{0.55e9, 0.1e9, 0.9e9};
constexpr Prior grpc_process{2.6e9, 1.5e9, 3e9};
constexpr Prior zmq_process{2.25e9, 1e9, 4e9};
constexpr Prior rdma_process{8.1e9, 6.25e9, 11.25e9};
constexpr Prior rdma_channel_of_tensorflow{3.4e9, 2.5e9, 10e9};
constexpr Prior pinned_copy{11e9, 10e9, 12.3e9};

// Lanes, and from first_of_server on five for each server.
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
enum OfServer { channel_out, in, add, out, channel_in, lanes_of_server };

bool is_tensorflow(System system) {
  return system == System::tf_parameter_server || system == System::tf_distributed_replicated;
}

bool sums_on_host(System system) {
  return system == System::tf_parameter_server || system == System::kvstore || system == System::p3;
}

class Phases {
 public:
  Phases(const ServedBucket& bucket, const CommunicationCost& cost, Reading reading)
      : bucket_(bucket), cost_(cost), reading_(reading) {
    in_node_ = std::min(bucket.ranks, cost.ranks_per_node);
    machines_ = (bucket.ranks - 1) / cost.ranks_per_node + 1;
  }

  std::vector<ServedPhase> all() {
    const bool is_over_network = machines_ > 1 || bucket_.use.own_machines;
    const bool stays_on_devices = bucket_.system == System::byteps && !is_over_network;
    const bool sums_on_devices = !sums_on_host(bucket_.system);
    if (sums_on_devices) phase({{node, reduce_in_node()}});
    if (!stays_on_devices) {
      phase({{to_host, copy(sums_on_devices ? in_node_ : 1)}});
      if (!sums_on_devices && in_node_ > 1)
        phase({{host_sum, in_node_ * bucket_.bytes / add_rate()}});
      if (is_over_network) over_network();
      const bool waits = bucket_.system == System::tf_parameter_server && !is_over_network;
      phase({{to_device, copy(bucket_.system == System::byteps ? in_node_ : 1)}}, waits);
    }
    if (bucket_.system == System::byteps) phase({{back_in_node, reduce_in_node()}});
    return std::move(phases_);
  }

 private:
  void phase(std::vector<Occupied> lanes, bool after_all = false) {
    phases_.push_back({std::move(lanes), after_all});
  }

  // The ranks of a node reduce a bucket and each keeps its part; or, backwards, they gather it.
  [[nodiscard]] Seconds reduce_in_node() const {
    return (in_node_ - 1) * (cost_.intra.alpha + bucket_.bytes / in_node_ * cost_.intra.beta);
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
    // A worker with a server keeps that share; where some have none, those are the busiest.
    const bool all_serve = !use.own_machines && use.servers >= machines_ && use.server < 0;
    const Bytes of_worker = (all_serve ? 1 - share : 1.0) * bucket_.bytes;

    const BytesPerSecond worker_rate =
        use.transport == ServerTransport::grpc ? std::min(nic, at(grpc_process, true)) : nic;
    const Seconds worker = cost_.nic.alpha + of_worker / worker_rate;
    const Seconds server =
        std::max(senders * at_server / process_rate(), (senders + beside) * at_server / nic);
    const Seconds channel = channel_time(at_server);
    const Seconds added = machines_ * at_server / add_rate();
    // Servers with equal shares do the same at the same time: the first stands for all, unless other
    // buckets of the system are on single servers.
    const bool all_are_alike = use.server < 0 && bucket_.system == System::byteps;
    const int first = std::max(0, use.server);
    const int last = use.server >= 0 || all_are_alike ? first : use.servers - 1;

    std::vector<Occupied> push = {{worker_out, worker}};
    std::vector<Occupied> adds;
    std::vector<Occupied> pull = {{worker_in, worker}};
    for (int s = first; s <= last; ++s) {
      const auto lane = [s](OfServer which) {
        return first_of_server + s * lanes_of_server + which;
      };
      push.push_back({lane(in), server});
      adds.push_back({lane(add), added});
      pull.push_back({lane(out), server});
      if (channel <= Seconds{0}) continue;
      push.push_back({lane(channel_out), channel});
      pull.push_back({lane(channel_in), channel});
    }
    phase(std::move(push));
    phase(std::move(adds));
    phase(std::move(pull), waits_for_all);
  }

  [[nodiscard]] Seconds channel_time(Bytes bytes) const {
    if (bucket_.use.transport == ServerTransport::grpc) return bytes / at(grpc_channel, true);
    if (bucket_.use.transport == ServerTransport::rdma && is_tensorflow(bucket_.system))
      return bytes / at(rdma_channel_of_tensorflow, true);
    return Seconds{0};
  }

  [[nodiscard]] BytesPerSecond process_rate() const {
    switch (bucket_.use.transport) {
      case ServerTransport::grpc:
        return at(grpc_process, true);
      case ServerTransport::tcp:
        return at(zmq_process, true);
      case ServerTransport::rdma:
        break;
    }
    return at(rdma_process, true);
  }

  [[nodiscard]] BytesPerSecond at(const Prior& prior, bool faster_if_larger) const {
    return BytesPerSecond{read_prior(prior, reading_, faster_if_larger)};
  }

  const ServedBucket& bucket_;
  const CommunicationCost& cost_;
  Reading reading_;
  int in_node_;
  int machines_;
  std::vector<ServedPhase> phases_;
};

Seconds longest(const ServedPhase& phase) {
  Seconds most;
  for (const Occupied& occupied : phase.lanes) most = std::max(most, occupied.time);
  return most;
}

}  // namespace

std::vector<ServedPhase> served_phases(const ServedBucket& bucket, const CommunicationCost& cost,
                                       Reading reading) {
  return Phases(bucket, cost, reading).all();
}

Seconds time_alone(const std::vector<ServedPhase>& phases) {
  Seconds sum;
  for (const ServedPhase& phase : phases) sum += longest(phase);
  return sum;
}

Seconds longest_on_a_lane(const std::vector<ServedPhase>& phases) {
  Seconds most;
  for (const ServedPhase& phase : phases) most = std::max(most, longest(phase));
  return most;
}

}  // namespace paceline::simulator
